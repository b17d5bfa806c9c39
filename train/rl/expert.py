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
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from reversi_env import ReversiError, batch
from reversi_env.extras import extra_libraries
from reversi_env.writing import write_atomically
from search import evaluators
from train.checkpoints import load_checkpoint, network_state, restore_network, save_checkpoint
from train.errors import TrainError
from train.fitting.training import provenance
from train.games.batch import BatchPlayer, EvaluatorPlayer
from train.judging.endgames import EndgameOptions, noisy_endgames
from train.judging.exact import Judgement
from train.judging.regret_curves import RegretCurve
from train.labels.labellers import check_probcut, check_solvable
from train.progress import Progress, silent
from train.rl.expert_data import ExpertLabels, expert_labels, new_positions
from train.rl.expert_fit import Memory, learn, optimiser_of
from train.rl.figures import rounds_figure
from train.rl.files import SavedPolicy, read_policy
from train.rl.ladder import Ladder
from train.rl.network import PolicyValueNet
from train.rl.options import SELF, ExpertOptions
from train.rl.players import BatchPolicyPlayer, ValueSearchPlayer, policy_numbers
from train.run import Rounds, Run, load_arrays, save_arrays, write_csv

with extra_libraries():
    import torch

LOG, PLOT, CURVE, REGRET_PLOT = "log.csv", "learning.svg", "regret.csv", "regret.svg"
#: What a run leaves in the end, and what it keeps of every round.
POLICY = "policy.safetensors"
LABELS, POLICIES, STATES = "labels-{:03}.npz", "policy-{:03}.safetensors", "state-{:03}.safetensors"
#: Positions of the regret curve, for each number of empties.
REGRET_POSITIONS = 100
#: Seconds between two drawings of the plots in a run.
DRAW_SECONDS = 30.0
_COLUMNS = ("own", "opp", "policy", "value", "exact")


class ExpertIteration(Rounds[ExpertOptions]):
    """A training by expert iteration; ``policy`` is the file that it leaves."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.policy = self.folder / POLICY
        self.labels: list[ExpertLabels] = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.options.seed)
            self.net = PolicyValueNet(self.options.size, self.options.architecture).eval()
        self.optimiser = optimiser_of(self.net, self.options)

    def run(self) -> None:
        """All rounds that are not done yet."""
        check_solvable(min(self.options.plan.solved, self.rules.square_count - 4), self.rules, self.options.labeller)
        check_probcut(self.options.plan, self.rules)
        with Run(self.folder, self.options, self._labeller):
            positions = EndgameOptions(self.options.size, self.options.variant, REGRET_POSITIONS)
            self.truth = noisy_endgames(positions, self.cache, threads=self.threads, progress=self.progress)
            last = self._resumed()
            self.curve = RegretCurve(self.folder / CURVE, self.truth, resumed_at=last + 1)
            if 0 not in self.curve.points:
                self.curve.add(0, self._judged())
            drawn = time.monotonic()
            for number in range(last + 1, self.options.iterations + 1):
                self.figures.append(self._round(number))
                self._save(number)
                if time.monotonic() - drawn >= DRAW_SECONDS:
                    self._draw()
                    drawn = time.monotonic()
            write_atomically(self.policy, self._saved())
            self._write_log()
            self._draw()

    @cached_property
    def _labeller(self) -> dict[str, str]:
        """Which weights label: a name such as network may mean others one day."""
        evaluator = self.options.plan.evaluator
        known = evaluator is not None and evaluator != SELF
        return {"labeller_sha256": evaluators.get(str(evaluator)).sha256(self.rules)} if known else {}

    @cached_property
    def _ladder(self) -> Ladder:
        """The baselines; made when first needed, since they play each other first."""
        return Ladder(self.rules, self.options.games, self.options.seed)

    # --- a round ----------------------------------------------------------------------------------

    def _round(self, number: int) -> dict[str, Any]:
        """Positions, labels, learning, judgement; what is found out of it."""
        times = [time.perf_counter()]
        new = self._labelled(number)
        self.labels.append(new)
        times.append(time.perf_counter())
        memory = Memory(self.labels, self.rules)
        losses = learn(self.net, self.optimiser, memory, self.options, number, self._tell(number, "learning, steps"))
        times.append(time.perf_counter())
        self._tell(number, "playing the ladder")(0, 1)
        standing, judgement = self._ladder.measure(BatchPolicyPlayer(self.net)), self._judged()
        self.curve.add(number, judgement)
        times.append(time.perf_counter())
        names = ("label_seconds", "learn_seconds", "judge_seconds")
        return {
            "iteration": number,
            "positions": len(memory),
            "new": len(new),
            "exact": int(new.exact.sum()),
            "policy_loss": round(losses.policy, 4),
            "value_error": round(losses.value, 3),
            "regret": round(judgement.overall.regret, 3),
            "optimal": round(judgement.overall.optimal, 4),
            "elo": round(standing.elo, 1),
            "points": {name: round(score.score, 4) for name, score in standing.scores.items()},
            **{name: round(end - begin, 1) for name, (begin, end) in zip(names, pairwise(times), strict=True)},
        }

    def _labelled(self, number: int) -> ExpertLabels:
        """The labels of a round; they are kept before anything is learnt from them."""
        path = self._path(LABELS, number)
        if path.exists():
            return self._read_labels(number)
        known = {key for part in self.labels for key in batch.image_hash(part.own, part.opp).tolist()}
        boards = new_positions(self.net, self.options, number, known, self._tell(number, "playing, positions"))
        found = expert_labels(
            *(*boards, self.rules, self.options.plan, self.options.temperature, self.net),
            threads=self.threads,
            progress=self._tell(number, "labelling, moves"),
        )
        save_arrays(path, {name: getattr(found, name) for name in _COLUMNS}, compressed=True)
        return found

    def _judged(self) -> Judgement:
        return self.truth.judge(policy_numbers(self.net, self.truth.own, self.truth.opp).argmax(axis=1))

    def _tell(self, number: int, doing: str) -> Callable[[int, int], None]:
        return partial(self.progress, f"round {number}/{self.options.iterations}: {doing}")

    # --- files ------------------------------------------------------------------------------------

    def _resumed(self) -> int:
        """Go to the end of the last round that is done; its number, 0 for none."""
        done = [n for n in range(1, self.options.iterations + 1) if self._path(POLICIES, n).exists()]
        last = max(done, default=0)
        state, policy = self._path(STATES, last), self._path(POLICIES, last)
        try:
            if last:
                restore_network(load_checkpoint(state) or {}, self.net, self.optimiser)
        except (TrainError, LookupError, RuntimeError) as error:
            raise TrainError(
                f"state {str(state)!r} cannot be read ({error}): expected it as it was written; delete {policy.name!r} "
                "too to go back a round"
            ) from None
        for path in {*self.folder.glob("state-*.safetensors")} - {state}:
            path.unlink()  # of a round that is done again, or whose successor was all that a killed run could write
        self.figures = list(read_policy(policy).record["figures"]) if last else []
        self.labels = [self._read_labels(number) for number in range(1, last + 1)]
        return last

    def _save(self, number: int) -> None:
        """The state first: where there is a policy, there is the state to go on from. The one before is not needed any more."""
        save_checkpoint(self._path(STATES, number), network_state(self.net, self.optimiser))
        write_atomically(self._path(POLICIES, number), self._saved())
        self._path(STATES, number - 1).unlink(missing_ok=True)
        self._write_log()

    def _saved(self) -> bytes:
        """The policy's file."""
        record = {
            "training": "expert iteration",
            "options": self.options.as_dict(),
            **self._labeller,
            "threads": self.threads,
            "figures": self.figures,
            **provenance(self.command),
        }
        return SavedPolicy(self.rules, self.net, record).to_bytes()

    def _write_log(self) -> None:
        """The figures of all rounds, a line each."""
        rows = [{**row, **row["points"]} for row in self.figures]
        write_csv(self.folder / LOG, rows, [name for name in rows[0] if name != "points"])

    def _draw(self) -> None:
        """Both plots, where there is matplotlib."""
        game = f"{self.options.size}x{self.options.size} {self.options.variant}"
        self.curve.figure("rounds").save(self.folder / REGRET_PLOT, optional=True)
        rounds_figure(self.figures, game).save(self.folder / PLOT, optional=True)

    def _read_labels(self, number: int) -> ExpertLabels:
        return ExpertLabels(*load_arrays(self._path(LABELS, number), _COLUMNS))

    def _path(self, name: str, number: int) -> Path:
        return self.folder / name.format(number)


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
        "policy alone": BatchPolicyPlayer(net),
        "policy, 8 symmetries": BatchPolicyPlayer(net, symmetric=True),  # as the agent `rl` plays
    }
    searches = {_searching(plies, solved): (plies, solved) for plies, solved in ((1, 0), (depth, 0), (depth, exact))}
    players |= {f"value, {words}": ValueSearchPlayer(net, rules, *search) for words, search in searches.items()}
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
