"""Expert iteration: a network plays, a searcher says what it should have played, the network learns that, and plays again.

Each round has three parts. The network plays itself, with noise, so that the positions are those that it comes to. The expert
labels those that are new (`train.rl.expert_data`): endgames exactly, with all best moves; what is before them by alpha-beta. Then
the network learns from all rounds so far. After each round it is judged without search: against the ladder of baselines, and by
the discs that it gives away in solved endgames.

A round depends on the options, its number and the weights before it. A folder keeps the labels and the weights of every round; a
run that was stopped in any way goes on with the round that it was in and ends, on as many threads, with the same weights.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from reversi_env import ReversiError, Rules
from reversi_env.extras import extra_libraries
from reversi_env.writing import write_atomically
from search import evaluators
from train.errors import TrainError
from train.fitting.training import provenance
from train.games.batch import BatchPlayer, EvaluatorPlayer
from train.judging.endgames import EndgameOptions, noisy_endgames
from train.judging.exact import ExactSet, Judgement
from train.judging.regret_curves import RegretCurve
from train.progress import Progress, silent
from train.rl.checkpoints import load_checkpoint, network_state, restore_network, save_checkpoint
from train.rl.expert_data import ExpertLabels, expert_labels, image_hashes, new_positions
from train.rl.expert_fit import Memory, learn, optimiser_of
from train.rl.figures import rounds_figure
from train.rl.files import SavedPolicy, read_policy
from train.rl.ladder import Ladder
from train.rl.network import PolicyValueNet
from train.rl.options import SELF, ExpertOptions
from train.rl.players import PolicyPlayer, ValuePlayer, policy_numbers
from train.run import Run, load_arrays, save_arrays, write_csv

with extra_libraries():
    import torch

LOG, PLOT, CURVE, REGRET_PLOT = "log.csv", "learning.svg", "regret.csv", "regret.svg"
#: What a run leaves in the end.
POLICY = "policy.safetensors"
#: Positions of the regret curve, for each number of empties.
REGRET_POSITIONS = 100
#: Seconds between two drawings of the plots in a run.
DRAW_SECONDS = 30.0
_COLUMNS = ("own", "opp", "policy", "value", "exact")


@dataclass(frozen=True)
class Expert:
    """What a run left: the game, the policy's file, and its figures after every round."""

    rules: Rules
    policy: Path
    figures: list[dict[str, Any]]


class ExpertIteration:
    """One run in one folder, which remembers the options; others raise a `TrainError`."""

    def __init__(
        self,
        folder: Path,
        options: ExpertOptions,
        *,
        threads: int | None = None,
        command: str = "",
        cache: Path | None = None,
        progress: Progress = silent,
    ) -> None:
        self.folder, self.options, self.rules = folder, options, options.rules
        self.threads, self.command, self.cache, self.progress = threads, command, cache, progress

    @cached_property
    def _labeller(self) -> dict[str, str]:
        """Which weights label: a name such as network may mean others one day."""
        evaluator = self.options.plan.evaluator
        known = evaluator is not None and evaluator != SELF
        return {"labeller_sha256": evaluators.get(str(evaluator)).sha256(self.rules)} if known else {}

    def run(self) -> Expert:
        """All rounds that are not done yet, and what came of them."""
        with Run(self.folder, self.options, self._labeller):
            truth = noisy_endgames(
                EndgameOptions(self.options.size, self.options.variant, REGRET_POSITIONS),
                self.cache,
                threads=self.threads,
                progress=self.progress,
            )
            last = max((n for n in range(1, self.options.iterations + 1) if self._policy_path(n).exists()), default=0)
            net, optimiser, figures = self._restored(last)
            for path in {*self.folder.glob("state-*.safetensors")} - {self._state_path(last)}:
                path.unlink()  # of a round that is done again, or whose successor was all that a killed run could write
            curve = RegretCurve(self.folder / CURVE, truth, resumed_at=last + 1)
            if 0 not in curve.points:
                curve.add(0, self._judged(net, truth))
            labels = [self._read_labels(number) for number in range(1, last + 1)]
            drawn = time.monotonic()
            for number in range(last + 1, self.options.iterations + 1):
                figures.append(self._round(number, net, optimiser, labels, curve, truth))
                self._save(number, net, optimiser, figures)
                self._write_log(figures)
                if time.monotonic() - drawn >= DRAW_SECONDS:
                    self._draw(figures, curve)
                    drawn = time.monotonic()
            path = self.folder / POLICY
            write_atomically(path, self._saved(net, figures))
            self._write_log(figures)
            self._draw(figures, curve)
        return Expert(self.rules, path, figures)

    # --- a round ----------------------------------------------------------------------------------

    def _round(
        self,
        number: int,
        net: PolicyValueNet,
        optimiser: torch.optim.Optimizer,
        labels: list[ExpertLabels],
        curve: RegretCurve,
        truth: ExactSet,
    ) -> dict[str, Any]:
        """Positions, labels, learning, judgement; *labels*, the network and the optimiser are changed."""
        began = time.perf_counter()
        labels.append(self._labels(number, net, labels))
        labelled = time.perf_counter()
        memory = Memory(labels, self.rules)
        losses = learn(net, optimiser, memory, self.options, number, self._tell(number, "learning, steps"))
        learnt = time.perf_counter()
        self._tell(number, "playing the ladder")(0, 1)
        standing = self._ladder.measure(PolicyPlayer(net))
        judgement = self._judged(net, truth)
        curve.add(number, judgement)
        return {
            "iteration": number,
            "positions": len(memory),
            "new": len(labels[-1]),
            "exact": int(labels[-1].exact.sum()),
            "policy_loss": round(losses.policy, 4),
            "value_error": round(losses.value, 3),
            "regret": round(judgement.overall.regret, 3),
            "optimal": round(judgement.overall.optimal, 4),
            "elo": round(standing.elo, 1),
            "points": {name: round(score.score, 4) for name, score in standing.scores.items()},
            "label_seconds": round(labelled - began, 1),
            "learn_seconds": round(learnt - labelled, 1),
            "judge_seconds": round(time.perf_counter() - learnt, 1),
        }

    def _labels(self, number: int, net: PolicyValueNet, earlier: list[ExpertLabels]) -> ExpertLabels:
        path = self._labels_path(number)
        if path.exists():
            return self._read_labels(number)
        known = {key for part in earlier for key in image_hashes(part.own, part.opp)}
        own, opp = new_positions(net, self.options, number, known, self._tell(number, "playing, positions"))
        found = expert_labels(
            *(own, opp, self.rules, self.options.plan, self.options.temperature, net),
            threads=self.threads,
            progress=self._tell(number, "labelling, moves"),
        )
        save_arrays(path, {name: getattr(found, name) for name in _COLUMNS}, compressed=True)
        return found

    @cached_property
    def _ladder(self) -> Ladder:
        """The baselines; made when first needed, since they play each other first."""
        return Ladder(self.rules, self.options.games, self.options.seed)

    def _judged(self, net: PolicyValueNet, truth: ExactSet) -> Judgement:
        return truth.judge(policy_numbers(net, truth.own, truth.opp).argmax(axis=1))

    def _tell(self, number: int, doing: str) -> Callable[[int, int], None]:
        doing = f"round {number}/{self.options.iterations}: {doing}"
        return lambda done, total: self.progress(doing, done, total)

    # --- files ------------------------------------------------------------------------------------

    def _restored(self, last: int) -> tuple[PolicyValueNet, torch.optim.AdamW, list[dict[str, Any]]]:
        """The network, its optimiser and the figures after round *last*, 0 for none."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.options.seed)
            net = PolicyValueNet(self.options.size, self.options.architecture).eval()
        optimiser = optimiser_of(net, self.options)
        if not last:
            return net, optimiser, []
        path = self._state_path(last)
        try:
            restore_network(load_checkpoint(path) or {}, net, optimiser)
        except (TrainError, LookupError, RuntimeError) as error:
            raise TrainError(
                f"state {str(path)!r} cannot be read ({error}): expected it as it was written; delete "
                f"{self._policy_path(last).name!r} too to go back a round"
            ) from None
        return net, optimiser, list(read_policy(self._policy_path(last)).record["figures"])

    def _save(
        self, number: int, net: PolicyValueNet, optimiser: torch.optim.Optimizer, figures: list[dict[str, Any]]
    ) -> None:
        """The state first: where there is a policy, there is the state to go on from. The one before is not needed any more."""
        save_checkpoint(self._state_path(number), network_state(net, optimiser))
        write_atomically(self._policy_path(number), self._saved(net, figures))
        self._state_path(number - 1).unlink(missing_ok=True)

    def _saved(self, net: PolicyValueNet, figures: list[dict[str, Any]]) -> bytes:
        """The policy's file."""
        record = {
            "training": "expert iteration",
            "options": self.options.as_dict(),
            **self._labeller,
            "threads": self.threads,
            "figures": figures,
            **provenance(self.command),
        }
        return SavedPolicy(self.rules, net, record).to_bytes()

    def _write_log(self, figures: list[dict[str, Any]]) -> None:
        """The figures of all rounds, a line each."""
        rows = [{**row, **row["points"]} for row in figures]
        write_csv(self.folder / LOG, rows, [name for name in rows[0] if name != "points"])

    def _draw(self, figures: list[dict[str, Any]], curve: RegretCurve) -> None:
        """Both plots, where there is matplotlib."""
        game = f"{self.options.size}x{self.options.size} {self.options.variant}"
        curve.figure("rounds").save(self.folder / REGRET_PLOT, optional=True)
        rounds_figure(figures, game).save(self.folder / PLOT, optional=True)

    def _read_labels(self, number: int) -> ExpertLabels:
        return ExpertLabels(*load_arrays(self._labels_path(number), _COLUMNS))

    def _labels_path(self, number: int) -> Path:
        return self.folder / f"labels-{number:03}.npz"

    def _policy_path(self, number: int) -> Path:
        return self.folder / f"policy-{number:03}.safetensors"

    def _state_path(self, number: int) -> Path:
        return self.folder / f"state-{number:03}.safetensors"


# --- with and without search ----------------------------------------------------------------------


def examine(
    path: Path,
    *,
    games: int = 200,
    depth: int = 2,
    exact: int = 10,
    seed: int = 1,
    threads: int | None = None,
    cache: Path | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """A policy against the ladder and in solved endgames: by itself, by its value, and by a search over its value.

    The evaluator ``network`` plays too, at the same depths, if it knows the game.
    """
    saved = read_policy(path)
    net, rules = saved.net, saved.rules
    truth = noisy_endgames(EndgameOptions(rules.size, rules.variant, REGRET_POSITIONS), cache, threads=threads)
    players: dict[str, BatchPlayer] = {
        "policy alone": PolicyPlayer(net),
        "policy, 8 symmetries": PolicyPlayer(net, symmetric=True),  # as the agent `rl` plays
    }
    searches = {_searching(plies, solved): (plies, solved) for plies, solved in ((1, 0), (depth, 0), (depth, exact))}
    players |= {f"value, {words}": ValuePlayer(net, rules, *search) for words, search in searches.items()}
    with suppress(ReversiError):  # no weights for the game
        for words, (plies, solved) in searches.items():
            players[f"network, {words}"] = EvaluatorPlayer("network", rules, plies, exact=solved, threads=threads)
    found, ladder = {}, Ladder(rules, games, seed)
    for number, (name, player) in enumerate(players.items()):
        progress(name, number, len(players))
        figures = truth.batch_regret(player).overall
        found[name] = {**ladder.measure(player).as_dict(), "regret": figures.regret, "optimal": figures.optimal}
    told = {"policy": str(path), "size": rules.size, "variant": rules.variant, "games": games}
    return told | {"positions": len(truth), "players": found}


def _searching(plies: int, solved: int) -> str:
    """What a search is called in a table."""
    words = f"{plies} {'ply' if plies == 1 else 'plies'}"
    return f"{words}, solver {solved}" if solved else words
