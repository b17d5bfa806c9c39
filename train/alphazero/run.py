"""`SelfPlayRun`: a training by self-play in one folder, in generations; stopped in any way, the same call goes on where it was.

A generation depends on the options, its number and the weights before it. The folder keeps the positions of the generations that
are remembered, and where the learning is. On a CPU a run that was stopped ends with the weights that it would have had.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from models.files import WeightsError
from models.mcts.search import TreeSearch
from models.residual.net import ResidualNet, SavedResidual, ValueFromBoards, read_residual, symmetrised
from models.torch_evaluator import TorchEvaluator
from reversi_env import Rules
from reversi_env.errors import TrainError, extra_libraries
from reversi_env.storage.atomic import write_atomically
from train.alphazero.learner import WARM_UP, Learner, Losses, fast_convolutions
from train.alphazero.options import SelfPlayOptions
from train.alphazero.self_play import COLUMNS, Positions, play, search_of
from train.arena.network_players import ZeroPlayer
from train.charts import COLOURS, GREY, Figure, labels, panels
from train.evaluation.endgames import EndgameOptions, noisy_endgames
from train.evaluation.exact_set import ExactSet
from train.evaluation.exam import packaged_papers
from train.evaluation.ladder import Ladder
from train.fitting.fit import checked_device
from train.jobs.checkpoints import load_checkpoint, save_checkpoint
from train.jobs.logs import Progress, load_arrays, save_arrays, write_csv
from train.jobs.provenance import provenance
from train.jobs.run import RoundTraining, Run
from train.labels.labellers import exact_scores
from train.rl.maskable_ppo import training_figure

with extra_libraries():
    import torch

STATE, LOG, POSITIONS = "state.safetensors", "log.csv", "positions-{:04}.npz"
#: Steps of the last phase between two visits to the disk.
PIECE = 1000


@dataclass(frozen=True)
class Taught:
    """What a training left: the file, and its figures after every generation."""

    weights: Path
    figures: list[dict[str, Any]]


class SelfPlayRun(RoundTraining[SelfPlayOptions]):
    """A training in rounds that are called generations."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.device = checked_device(self.options.device)
        self.measures = Measures(self.options, self.device, self.cache, self.threads, self.progress)

    def run(self) -> Taught:
        """All generations that are not done yet, and the last steps."""
        with Run(self.folder, self.options), fast_convolutions(self.device):
            self.learner = Learner(self.options, self.device)
            for number in range(self._resumed(), self.options.generations):
                self._generation(number)
            self._last_steps()
            path = self._saved()
            draw(self.figures, self.rules, self.folder)
        return Taught(path, self.figures)

    def examined(self) -> dict[str, dict[str, Any]]:
        """The finished network on the ladder, as the agent ``zero`` plays: by its policy in eight images, and with a search."""
        logits_and_values = self.learner.logits_and_values
        players = {
            "policy": ZeroPlayer(symmetrised(logits_and_values, self.rules), self.rules, self.device),
            f"{self.options.simulations} simulations": ZeroPlayer(
                logits_and_values, self.rules, self.device, self._search
            ),
        }
        found = {}
        for number, (name, player) in enumerate(players.items()):
            self.progress("examining", number, len(players))
            found[name] = self.measures.standing(player)
        return found

    @cached_property
    def _search(self) -> TreeSearch:
        return search_of(self.learner.logits_and_values, self.options, self.device, self.threads)

    # --- a generation -----------------------------------------------------------------------------

    def _generation(self, number: int) -> None:
        began = time.perf_counter()
        self._played(number)
        played = time.perf_counter()
        tell = self._teller(f"generation {number + 1}/{self.options.generations}: learning, steps", self.options.steps)
        warm_up = (lambda step: min(1.0, (step + 1) / WARM_UP)) if not number else (lambda step: 1.0)
        losses = self.learner.learn(self._remembered(number), self.options.steps, warm_up, self._seed(number, 1), tell)
        times = {"play_seconds": played - began, "learn_seconds": time.perf_counter() - played}
        done, every = number + 1, self.options.evaluate
        last = done == self.options.generations and not self.options.final_steps
        self._note({"generation": number}, losses, times, measured=last or done % every == 0)
        for old in range(number + 1 - self.options.remembered(number)):
            self._path(old).unlink(missing_ok=True)
        self._save(number + 1, 0)

    def _played(self, number: int) -> None:
        """Play a generation's games, unless that is done; what they were worth is kept before anything is learnt from it."""
        if self._path(number).exists():
            return
        tell = partial(self.progress, f"generation {number + 1}/{self.options.generations}: playing, plies")
        solve = partial(exact_scores, rules=self.rules, device=self.device.type, threads=self.threads)
        with torch.no_grad():
            found = play(self._search, solve, self.options, self._seed(number, 0), self.device, tell)
        save_arrays(self._path(number), {name: column.cpu().numpy() for name, column in found._asdict().items()})

    def _remembered(self, number: int) -> Positions:
        """The positions that are learnt from after a generation, on the device."""
        first = max(0, number + 1 - self.options.remembered(number))
        return Positions.together([self._read(generation) for generation in range(first, number + 1)])

    def _read(self, number: int) -> Positions:
        arrays = load_arrays(self._path(number), COLUMNS, "begin anew in another folder")
        return Positions(*(torch.from_numpy(array).to(self.device) for array in arrays))

    # --- the end ----------------------------------------------------------------------------------

    def _last_steps(self) -> None:
        """Learn from all that is remembered while the rate falls to 0, piece by piece."""
        total, last = self.options.final_steps, self.options.generations - 1
        if self.done >= total:
            return
        positions = self._remembered(last)
        while self.done < total:
            began, first = time.perf_counter(), self.done
            steps = min(PIECE, total - first)
            tell = self._teller("last steps", total, first)
            seed = self._seed(last + 1, first)
            losses = self.learner.learn(positions, steps, lambda step: 1 - (first + step) / total, seed, tell)  # noqa: B023
            times, done = {"learn_seconds": time.perf_counter() - began}, first + steps
            self._note({"last_steps": done}, losses, times, measured=done == total)
            self._save(last + 1, done)

    def _saved(self) -> Path:
        """The file that is left: one that is there, if it has this network, whatever command or commit made it; or a new one."""
        there = sorted(self.folder.glob("zero-*.safetensors"))
        path = next(filter(self._is_in, there), None)
        if path is None:
            saved = self._network(provenance(self.command))
            data = saved.to_bytes()
            path = self.folder / saved.file_name(data)
            write_atomically(path, data)
        for other in {*there} - {path}:
            other.unlink()  # damaged, or of an earlier version
        return path

    def _is_in(self, path: Path) -> bool:
        """Whether a whole file has this network with all that is known of it, but for who made it."""
        try:
            record = read_residual(path).record
        except WeightsError:
            return False
        made_by = {name: record.get(name) for name in ("command", "version", "commit")}
        return path.read_bytes() == self._network(made_by).to_bytes()

    def _network(self, made_by: dict[str, Any]) -> SavedResidual:
        """The network with its record."""
        record = {"training": "zero", "options": self.options.as_dict(), "device": self.device.type}
        # the file's name must not depend on how long it took
        figures = [{k: v for k, v in row.items() if not k.endswith("_seconds")} for row in self.figures]
        return SavedResidual(self.rules, self.learner.mean, {**record, "figures": figures, **made_by})

    # --- figures ----------------------------------------------------------------------------------

    def _note(self, where: dict[str, int], losses: Losses, times: dict[str, float], *, measured: bool) -> None:
        """Remember how it went, and, if that is *measured* now, how good the network is."""
        row: dict[str, Any] = {**where, "error": round(losses.error, 3), "policy": round(losses.policy, 4)}
        found = self.measures.of(self.learner) if measured else {}
        self.figures.append({**row, **found, **{name: round(value, 1) for name, value in times.items()}})

    def _write_log(self) -> None:
        """The figures, those against every player in columns of their own."""
        rows = [{**row, **row.get("points", {})} for row in self.figures]
        write_csv(self.folder / LOG, [{name: of for name, of in row.items() if name != "points"} for row in rows])

    # --- files ------------------------------------------------------------------------------------

    def _resumed(self) -> int:
        """Go to where the state is; the number of the generation that comes next."""
        self.done = 0
        found = load_checkpoint(self.folder / STATE)
        if found is None:
            return 0
        try:
            self.learner.load(found)
        except (KeyError, RuntimeError):
            raise TrainError(
                f"{str(self.folder)!r} was started with another kind of network: expected one of this version, or another folder"
            ) from None
        told = found["run"]
        self.figures, self.done = told["figures"], told["last_steps"]
        return int(told["generations"])

    def _save(self, generations: int, last_steps: int) -> None:
        """Write where the learning is, after all else: whoever goes on from there leaves nothing undone."""
        self.done = last_steps
        self._write_log()
        told = {"generations": generations, "last_steps": last_steps, "figures": self.figures}
        save_checkpoint(self.folder / STATE, {**self.learner.state(), "run": told})

    def _path(self, number: int) -> Path:
        return self.folder / POSITIONS.format(number)

    def _seed(self, generation: int, part: int) -> int:
        return int(np.random.SeedSequence((self.options.seed, generation, part)).generate_state(1)[0])

    def _teller(self, doing: str, total: int, first: int = 0) -> Any:
        return lambda done: self.progress(doing, first + done, total)


# --- measurements ----------------------------------------------------------------------------------


with extra_libraries():
    import torch

#: Solved positions in which moves are judged, for each number of empties.
REGRET_POSITIONS = 100


class Measures:
    """What is measured as the options ask; *cache*: where solved positions are kept, by default the user's."""

    def __init__(
        self,
        options: SelfPlayOptions,
        device: torch.device,
        cache: Path | None,
        threads: int | None,
        progress: Progress,
    ) -> None:
        self.options, self.rules, self.device = options, options.rules, device
        self.cache, self.threads, self.progress = cache, threads, progress

    def of(self, learner: Learner) -> dict[str, Any]:
        """All figures of a learner's network; those against players are of its policy alone."""
        found: dict[str, Any] = self.errors(learner.mean)
        if self.options.ladder:
            self.progress("on the ladder", 0, 1)
            found |= self.standing(ZeroPlayer(learner.logits_and_values, self.rules, self.device))
        return found

    def errors(self, net: ResidualNet) -> dict[str, float]:
        """Mean error and bias in discs in the package's solved positions, by empty squares; it has none of 4x4."""
        if self.rules.size == 4:
            return {}
        evaluator = TorchEvaluator(ValueFromBoards(net), self.rules, inputs="boards", device=self.device)
        found = {int(paper.empties[0]): paper.errors(evaluator) for paper in packaged_papers(self.rules)}
        means = {f"error_{empties}": round(errors.mean, 2) for empties, errors in found.items()}
        return means | {f"bias_{empties}": round(errors.bias, 2) for empties, errors in found.items()}

    def standing(self, player: ZeroPlayer) -> dict[str, Any]:
        """Points against each rung, Elo, and what a player gives away in solved endgames, in discs a move."""
        standing, judged = self._ladder.measure(player), self._truth.batch_regret(player).overall
        points = {name: round(results.score, 4) for name, results in standing.scores.items()}
        ratings = {name: value for name, value in standing.as_dict().items() if name != "rungs"}
        figures = {name: None if value is None else round(value, 1) for name, value in ratings.items()}
        return {**figures, "regret": round(judged.regret, 3), "optimal": round(judged.optimal, 4), "points": points}

    @cached_property
    def _ladder(self) -> Ladder:
        return Ladder(self.rules, self.options.ladder, self.options.seed)

    @cached_property
    def _truth(self) -> ExactSet:
        positions = EndgameOptions(self.options.size, self.options.variant, REGRET_POSITIONS)
        return noisy_endgames(positions, self.cache, threads=self.threads, progress=self.progress)


# --- learning curves -------------------------------------------------------------------------------


OVER = "generations, then pieces of the last steps"


def draw(figures: Sequence[Mapping[str, Any]], rules: Rules, folder: Path) -> None:
    """What was measured over the generations, ``errors.svg`` and ``curve.svg``, where there is matplotlib."""
    game = f"{rules.size}x{rules.size} {rules.variant}"
    rows = [{**row, "steps": number} for number, row in enumerate(figures, 1)]
    if judged := [row for row in rows if any(name.startswith("bias_") for name in row)]:
        errors_figure(judged, game).save(folder / "errors.svg", optional=True)
    if placed := [row for row in rows if "points" in row]:
        rungs = [{name: {"points": points} for name, points in row["points"].items()} for row in placed]
        curve = [{**row, "rungs": of} for row, of in zip(placed, rungs, strict=True)]
        training_figure(curve, game, OVER).save(folder / "curve.svg", optional=True)


def errors_figure(rows: Sequence[Mapping[str, Any]], game: str) -> Figure:
    """Mean absolute error and bias in discs on solved positions, a line for each number of empty squares."""
    kinds = {"error": f"{game}: mean error, discs", "bias": "bias for the side to move, discs"}

    def draw(figure: Any) -> None:
        for axis, kind in zip(panels(figure, 2, tuple(kinds.values())), kinds, strict=True):
            names = [name for name in rows[0] if name.startswith(f"{kind}_")]
            numbers, ends = [row["steps"] for row in rows], []
            for name, colour in zip(names, COLOURS, strict=False):
                values = [row[name] for row in rows]
                axis.plot(numbers, values, color=colour)
                ends.append((numbers[-1], values[-1], name.removeprefix(f"{kind}_"), colour))
            axis.axhline(0, color=GREY, linewidth=0.6, linestyle=":")
            axis.set_xlabel(OVER)
            labels(axis, ends)

    return Figure("errors", f"{game}: error and bias by empty squares.", draw)
