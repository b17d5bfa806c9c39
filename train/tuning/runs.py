"""A tuning in a folder: a log that grows by a line a generation, and in the end a weight file. Resumable at any moment.

The log holds losses. Interrupted in any way, the same call asks the same optimiser with the same seed again, tells it the
losses that it finds in the log, and goes on where the log ends: the same file comes out as without the interruption.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env import __version__
from reversi_env.writing import append_whole, write_atomically
from search.formula_files import formula_file
from search.formulas import Formula
from train.errors import TrainError
from train.folders import only_writer
from train.options import Options, option
from train.tuning.objectives import LabelError, Objective
from train.tuning.optimisers import Optimiser, make_optimiser
from train.tuning.space import Space, space_of
from train.tuning.spreading import SpreadObjective

#: Best candidates that are judged again, on games or positions of their own, before one is chosen.
FINALISTS = 5
#: Positions that give tuned weights their scale in discs, where the objective has none: few empties, solved in a moment.
SCALE_POSITIONS = 2000
SCALE_EMPTIES = {4: (4, 6), 6: (8, 10), 8: (10, 12)}


@dataclass(frozen=True)
class TuneOptions(Options):
    """What to tune and how."""

    formula: str = option(
        "ten-weight", "An evaluator that is a formula, with or without weights of a file to begin with."
    )
    varied: tuple[str, ...] | None = option(None, "Weights that vary; by default those that its report chose.")
    optimiser: str = option("cma", "genetic or cma.")
    generations: int = option(60, "Rounds.", low=1)
    population: int = option(24, "Candidates a round.", low=4)
    seed: int = option(0, "Which random numbers the optimiser uses.", low=0)
    from_published: bool = option(False, "Begin at the weights there are, not at random ones.")

    def described(self) -> dict[str, Any]:
        """The options as JSON has them, all but how long to go on."""
        content = self.as_dict()
        del content["generations"]
        return content


@dataclass(frozen=True)
class Generation:
    """One round: its number from 1 on, the losses of its candidates, the best loss so far, and the seconds that it took."""

    number: int
    losses: NDArray[np.float64]
    best: float
    seconds: float


@dataclass(frozen=True)
class Tuned:
    """What a tuning found: the weights, their loss in the last round, and on games or positions that nothing was chosen by.

    ``published_check`` is the loss of the formula's own weights on the latter.
    """

    evaluator: Formula
    formula: str
    loss: float
    check: float
    published_check: float
    evaluations: int
    seconds: float
    generations: tuple[Generation, ...]
    file: Path | None = None


def tune(
    options: TuneOptions,
    objective: Objective,
    folder: Path | None = None,
    *,
    command: str = "",
    progress: Callable[[Generation], None] = lambda generation: None,
) -> Tuned:
    """Look for better weights; with a *folder*, keep a log there, go on from it if there is one, and write the weights."""
    space = space_of(options.formula, options.varied)
    if folder is None:
        return _tune(options, objective, space, _Log(None, {}), progress)
    with only_writer(folder):
        log = _Log(
            folder / f"{_stem(options)}.jsonl", {"tuning": options.described(), "objective": objective.described()}
        )
        tuned = _tune(options, objective, space, log, progress)
        path = folder / f"{_stem(options)}.json"
        write_atomically(path, _content(options, objective, tuned, command))
        return replace(tuned, file=path)


def _stem(options: TuneOptions) -> str:
    return f"{options.formula.partition(':')[0]}-{options.optimiser}"


def _tune(
    options: TuneOptions,
    objective: Objective,
    space: Space,
    log: _Log,
    progress: Callable[[Generation], None],
) -> Tuned:
    start = space.point(space.formula) if options.from_published else None
    optimiser = make_optimiser(options.optimiser, space.size, options.population, options.seed, start)
    generations: list[Generation] = []
    judged: list[tuple[float, NDArray[np.float64]]] = []
    for number in range(1, options.generations + 1):
        began = perf_counter()
        points = optimiser.ask()
        known = log.losses(number, points)
        losses = known[0] if known else objective.losses([space.evaluator(point) for point in points], number)
        optimiser.tell(losses)
        judged = sorted([*judged, *zip(losses.tolist(), points, strict=True)], key=lambda pair: pair[0])[:FINALISTS]
        seconds = known[1] if known else perf_counter() - began
        generations.append(Generation(number, losses, judged[0][0], seconds))
        log.add(number, points, losses, seconds)
        progress(generations[-1])
    return _chosen(objective, space, optimiser, judged, generations)


def _chosen(
    objective: Objective,
    space: Space,
    optimiser: Optimiser,
    judged: list[tuple[float, NDArray[np.float64]]],
    generations: list[Generation],
) -> Tuned:
    """The best of the finalists on games or positions of their own; what it is worth, on further ones."""
    points = [point for _, point in judged]
    favourite = optimiser.favourite()
    finalists = [space.evaluator(point) for point in (points if favourite is None else [*points, favourite])]
    second = objective.checked()
    best = finalists[int(np.argmin(second.losses(finalists)))]
    third = second.checked()
    check, published = third.losses([best, space.formula])
    found = float(objective.losses([best], generations[-1].number)[0])
    evaluations = sum(generation.losses.size for generation in generations)
    seconds = sum(generation.seconds for generation in generations)
    name = space.formula.family
    return Tuned(best, name, found, float(check), float(published), evaluations, seconds, tuple(generations))


def _content(options: TuneOptions, objective: Objective, tuned: Tuned, command: str) -> bytes:
    rules = objective.rules
    truth = objective.plain if isinstance(objective, SpreadObjective) else objective
    if not isinstance(truth, LabelError):
        empties = SCALE_EMPTIES[rules.size]
        truth = LabelError(rules.size, rules.variant, SCALE_POSITIONS, empties, seed=options.seed)
    record = {
        "game": {"size": rules.size, "variant": rules.variant},
        "tuning": {**options.described(), "generations": options.generations, "evaluations": tuned.evaluations},
        "objective": objective.described(),
        "loss": tuned.loss,
        "loss_on_others": tuned.check,
        "published_loss_on_others": tuned.published_check,
        "command": command,
        "version": __version__,
    }
    return formula_file(tuned.evaluator, tuned.formula, {rules.size: truth.scale(tuned.evaluator)}, record)


# --- the log --------------------------------------------------------------------------------------


class _Log:
    """Losses by generation in a file of JSON lines, the first of which says what they are the losses of."""

    def __init__(self, path: Path | None, heading: dict[str, Any]) -> None:
        self._path = path
        self._heading: dict[str, Any] = {}
        self._lines: list[dict[str, Any]] = []
        if path is None:
            return
        lines = _whole_lines(path)
        heading = json.loads(json.dumps(heading | {"version": __version__}))
        if len(lines) > 1 and lines[0] != heading:  # without a generation there is nothing to go on from
            raise TrainError(
                f"log {str(path)!r} is of another tuning: expected the same options to go on, or another folder"
            )
        self._heading, self._lines = heading, lines[1:]
        if self._lines:
            self._write(path)  # without a last line that was cut off

    def losses(self, number: int, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], float] | None:
        """The losses of a generation and the seconds it took, if they are known."""
        if number > len(self._lines):
            return None
        line = self._lines[number - 1]
        if line.get("points_sha256") != _hash(points):
            raise TrainError(
                f"log {str(self._path)!r}: generation {number} had other candidates; expected the same versions of the "
                f"libraries to go on, or another folder"
            )
        losses = np.array(line["losses"], np.float64)
        if line.get("losses_sha256", _hash(losses)) != _hash(losses):
            raise TrainError(
                f"log {str(self._path)!r}: generation {number} is damaged, its losses have another SHA-256; expected it as "
                f"it was written, or without that line and those below, to go on from there"
            )
        return losses, float(line["seconds"])

    def add(self, number: int, points: NDArray[np.float64], losses: NDArray[np.float64], seconds: float) -> None:
        """Keep the losses of a new generation."""
        if self._path is None or number <= len(self._lines):
            return
        hashes = {"points_sha256": _hash(points), "losses_sha256": _hash(losses)}
        line = {"generation": number, **hashes, "losses": losses.tolist(), "seconds": seconds}
        self._lines.append(line)
        if number == 1:  # only now: a tuning that was refused leaves nothing behind
            self._write(self._path)
            return
        append_whole(self._path, (json.dumps(line) + "\n").encode())

    def _write(self, path: Path) -> None:
        text = "".join(json.dumps(line) + "\n" for line in [self._heading, *self._lines])
        write_atomically(path, text.encode())


def _hash(points: NDArray[np.float64]) -> str:
    return hashlib.sha256(np.ascontiguousarray(points).tobytes()).hexdigest()


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(errors="replace").splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            break  # cut off when the process was killed: whatever follows is void
    return [line for line in lines if isinstance(line, dict)]
