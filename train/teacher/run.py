"""`TeacherRun`: a teacher's whole training in one folder; stopped in any way, the same call goes on where it was.

A generation depends on the options, its number and the weights before it. The folder keeps the positions of the generations that
are remembered, and where the learning is. On a CPU a run that was stopped ends with the weights that it would have had.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from models.boards import board_tensor
from models.residual import SavedResidual
from reversi_env.extras import extra_libraries
from reversi_env.writing import write_atomically
from train.checkpoints import load_checkpoint, save_checkpoint
from train.errors import TrainError
from train.fitting.fit import checked_device
from train.fitting.training import provenance
from train.judging.exam import packaged_endgames
from train.labels.labellers import exact_scores
from train.progress import Progress, silent
from train.run import Run, load_arrays, save_arrays, write_csv
from train.teacher.figures import errors_figure
from train.teacher.games import COLUMNS, Positions, play
from train.teacher.learner import WARM_UP, Learner, Losses, fast_convolutions
from train.teacher.options import TeacherOptions

with extra_libraries():
    import torch

STATE, LOG, PLOT, POSITIONS = "state.safetensors", "log.csv", "errors.svg", "positions-{:04}.npz"
#: Steps of the last phase between two visits to the disk.
PIECE = 1000


@dataclass(frozen=True)
class Taught:
    """What a training left: the file, and its figures after every generation."""

    weights: Path
    figures: list[dict[str, Any]]


class TeacherRun:
    """One run in one folder, which remembers the options; others raise a `TrainError`."""

    def __init__(
        self,
        folder: Path,
        options: TeacherOptions,
        *,
        device: str = "cpu",
        threads: int | None = None,
        command: str = "",
        progress: Progress = silent,
    ) -> None:
        self.folder, self.options, self.rules = folder, options, options.rules
        self.device, self.threads, self.command, self.progress = checked_device(device), threads, command, progress
        self.figures: list[dict[str, Any]] = []

    def run(self) -> Taught:
        """All generations that are not done yet, and the last steps."""
        with Run(self.folder, self.options), fast_convolutions(self.device):
            self.learner = Learner(self.options, self.device)
            for number in range(self._resumed(), self.options.generations):
                self._generation(number)
            self._last_steps()
            path = self._saved()
            self._draw()
        return Taught(path, self.figures)

    # --- a generation -----------------------------------------------------------------------------

    def _generation(self, number: int) -> None:
        began = time.perf_counter()
        self._played(number)
        played = time.perf_counter()
        tell = self._teller(f"generation {number + 1}/{self.options.generations}: learning, steps", self.options.steps)
        warm_up = (lambda step: min(1.0, (step + 1) / WARM_UP)) if not number else (lambda step: 1.0)
        losses = self.learner.learn(self._remembered(number), self.options.steps, warm_up, self._seed(number, 1), tell)
        times = {"play_seconds": played - began, "learn_seconds": time.perf_counter() - played}
        self._note({"generation": number}, losses, times)
        self._save(number + 1, 0)
        for old in range(number + 1 - self.options.remembered(number)):
            self._path(old).unlink(missing_ok=True)

    def _played(self, number: int) -> None:
        """Play a generation's games, unless that is done; what they were worth is kept before anything is learnt from it."""
        if self._path(number).exists():
            return
        doing = f"generation {number + 1}/{self.options.generations}: playing and solving"
        self.progress(doing, 0, 1)
        solve = partial(exact_scores, rules=self.rules, device=self.device.type, threads=self.threads)
        values = self.learner.values if number else None
        with torch.no_grad():
            found = play(values, solve, self.options, self._seed(number, 0), self.device)
        save_arrays(self._path(number), {name: column.cpu().numpy() for name, column in found._asdict().items()})
        self.progress(doing, 1, 1)

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
        total, last = self.options.last_steps, self.options.generations - 1
        if self.done >= total:
            return
        positions = self._remembered(last)
        while self.done < total:
            began, first = time.perf_counter(), self.done
            steps = min(PIECE, total - first)
            tell = self._teller("last steps", total, first)
            seed = self._seed(last + 1, first)
            losses = self.learner.learn(positions, steps, lambda step: 1 - (first + step) / total, seed, tell)  # noqa: B023
            self._note({"last_steps": first + steps}, losses, {"learn_seconds": time.perf_counter() - began})
            self._save(last + 1, first + steps)

    def _saved(self) -> Path:
        """Write the file that is left."""
        record = {"training": "teacher", "options": self.options.as_dict(), "device": self.device.type}
        # the file's name must not depend on how long it took
        figures = [{k: v for k, v in row.items() if not k.endswith("_seconds")} for row in self.figures]
        saved = SavedResidual(self.rules, self.learner.mean, {**record, "figures": figures, **provenance(self.command)})
        data = saved.to_bytes()
        path = self.folder / saved.file_name(data)
        write_atomically(path, data)
        for other in {*self.folder.glob("teacher-*.safetensors")} - {path}:
            other.unlink()  # the same network: its record has another command, or commit
        return path

    # --- figures ----------------------------------------------------------------------------------

    def _note(self, where: dict[str, int], losses: Losses, times: dict[str, float]) -> None:
        """Remember how it went, and how far from the truth the values are in the package's solved positions."""
        row: dict[str, Any] = {**where, "error": round(losses.error, 3), "policy": round(losses.policy, 4)}
        self.figures.append({**row, **self._exam(), **{name: round(value, 1) for name, value in times.items()}})

    def _exam(self) -> dict[str, Any]:
        if self.rules.size == 4:  # solved from the start: there are no positions
            return {}
        truth = packaged_endgames(self.rules)
        boards = (board_tensor(side).to(self.device) for side in (truth.own, truth.opp))
        with torch.no_grad():
            off = self.learner.values(*boards).cpu().numpy() - truth.scores
        empties = np.unique(truth.empties).tolist()
        errors = {f"error_{e}": round(float(np.abs(off[truth.empties == e]).mean()), 2) for e in empties}
        biases = {f"bias_{e}": round(float(off[truth.empties == e].mean()), 2) for e in empties}
        return errors | biases

    def _write_log(self) -> None:
        write_csv(self.folder / LOG, self.figures)

    def _draw(self) -> None:
        """Error and bias over the generations, where there is matplotlib."""
        if self.rules.size != 4:  # no figures to draw
            game = f"{self.rules.size}x{self.rules.size} {self.rules.variant}"
            errors_figure(self.figures, game).save(self.folder / PLOT, optional=True)

    # --- files ------------------------------------------------------------------------------------

    def _resumed(self) -> int:
        """Go to where the state is; the number of the generation that comes next."""
        self.done = 0
        found = load_checkpoint(self.folder / STATE)
        if found is None:
            return 0
        told = found["run"]
        if told["device"] != self.device.type:
            raise TrainError(
                f"{str(self.folder)!r} was begun on device {told['device']}: expected the same, or another folder"
            )
        self.learner.load(found)
        self.figures, self.done = told["figures"], told["last_steps"]
        return int(told["generations"])

    def _save(self, generations: int, last_steps: int) -> None:
        self.done = last_steps
        told = {"generations": generations, "last_steps": last_steps, "figures": self.figures}
        save_checkpoint(self.folder / STATE, {**self.learner.state(), "run": {**told, "device": self.device.type}})
        self._write_log()

    def _path(self, number: int) -> Path:
        return self.folder / POSITIONS.format(number)

    def _seed(self, generation: int, part: int) -> int:
        return int(np.random.SeedSequence((self.options.seed, generation, part)).generate_state(1)[0])

    def _teller(self, doing: str, total: int, first: int = 0) -> Any:
        return lambda done: self.progress(doing, first + done, total)
