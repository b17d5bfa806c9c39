"""A tuning run in a folder: a log with a line per generation, and at the end a weight file.

The log has the losses. After an interruption, the same call repeats the optimiser with the same seed on the losses of the log and
resumes where the log ends; the weight file is the same.
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
from reversi_env.storage.atomic import write_atomically
from search.evaluators.formula import Formula, formula_file
from train.jobs.logs import JsonLines
from train.jobs.run import Run, as_hashes, check_resumable
from train.jobs.shipping import build_id
from train.tuning.objectives import LabelError, Objective, rescaled
from train.tuning.optimisers import OPTIMISERS, Optimiser
from train.tuning.options import TuneOptions
from train.tuning.space import Space, space_of

#: Number of candidates that are compared again, on other games or positions, before one is chosen.
FINALISTS = 5
#: Positions for the scale of tuned weights in discs, if the objective has none.
SCALE_POSITIONS = {4: 300, 6: 2000, 8: 2000}
SCALE_EMPTIES = {4: (4, 6), 6: (8, 10), 8: (10, 12)}


@dataclass(frozen=True)
class Generation:
    """A generation: its number from 1 on, the losses of its candidates, the best loss so far, and its wall time."""

    number: int
    losses: NDArray[np.float64]
    best: float
    seconds: float


@dataclass(frozen=True)
class TuningResult:
    """The tuned weights, their loss in the last generation, and the held-out losses of the tuned and of the published weights."""

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
) -> TuningResult:
    """Tune weights; with a *folder*, resume from its log, and write log and weights there."""
    space = space_of(options.formula, options.varied)
    if folder is None:
        return _tune(options, objective, space, None, progress)
    path = folder / f"{options.formula.partition(':')[0]}-{options.optimiser}.json"
    with Run(folder):
        weights = {options.formula: space.formula.sha256(objective.rules), **objective.content_hashes()}
        heading = {"tuning": options.described(), "objective": objective.described(), "weights": weights}
        log = _Log(path.with_suffix(".jsonl"), heading)
        tuned = _tune(options, objective, space, log, progress)
        write_atomically(path, _content(options, objective, tuned, command))
        return replace(tuned, file=path)


def _tune(
    options: TuneOptions, objective: Objective, space: Space, log: _Log | None, progress: Callable[[Generation], None]
) -> TuningResult:
    start = space.point(space.formula) if options.from_published else None
    optimiser = OPTIMISERS[options.optimiser](space.size, options.population, options.seed, start)
    generations: list[Generation] = []
    best: list[tuple[float, NDArray[np.float64]]] = []
    for number in range(1, options.generations + 1):
        began = perf_counter()
        points = optimiser.ask()
        logged = log.losses(number, points) if log else None
        losses = logged[0] if logged else objective.losses([space.evaluator(point) for point in points], number)
        optimiser.tell(losses)
        best = sorted([*best, *zip(losses.tolist(), points, strict=True)], key=lambda pair: pair[0])[:FINALISTS]
        seconds = logged[1] if logged else perf_counter() - began
        generations.append(Generation(number, losses, best[0][0], seconds))
        if log and not logged:
            log.add(number, points, losses, seconds)
        progress(generations[-1])
    return _choose(objective, space, optimiser, [point for _, point in best], generations)


def _choose(
    objective: Objective,
    space: Space,
    optimiser: Optimiser,
    points: list[NDArray[np.float64]],
    generations: list[Generation],
) -> TuningResult:
    """Choose among the finalists on held-out games or positions, and measure the best one on further held-out ones."""
    favourite = optimiser.favourite()
    finalists = [space.evaluator(point) for point in (points if favourite is None else [*points, favourite])]
    selection = objective.held_out()
    best = finalists[int(np.argmin(selection.losses(finalists)))]
    check, published = selection.held_out().losses([best, space.formula])
    loss = float(objective.losses([best], generations[-1].number)[0])
    evaluations = sum(generation.losses.size for generation in generations)
    seconds = sum(generation.seconds for generation in generations)
    name = space.formula.family
    return TuningResult(best, name, loss, float(check), float(published), evaluations, seconds, tuple(generations))


def _content(options: TuneOptions, objective: Objective, tuned: TuningResult, command: str) -> bytes:
    rules = objective.rules
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
    scale = _scale_of(tuned.evaluator, objective, options.seed)
    return formula_file(tuned.evaluator, tuned.formula, {rules.size: scale}, record)


def _scale_of(tuned: Formula, objective: Objective, seed: int) -> float:
    """Return discs per unit of the formula, by exact scores near the end.

    There, the best scale may be negative, as for mobility in the reversed game; then only the spread of values counts.
    """
    if isinstance(objective, LabelError):
        return objective.scale(tuned)
    rules = objective.rules
    positions, empties = SCALE_POSITIONS[rules.size], SCALE_EMPTIES[rules.size]
    scale = LabelError(rules.size, rules.variant, positions, empties, seed=seed).scale(tuned)
    return scale if scale > 0 else rescaled([tuned], rules)[0].scale_on(rules)


class _Log:
    """Losses by generation, below a line with the options, the objective and the weights that they belong to."""

    def __init__(self, path: Path, heading: dict[str, Any]) -> None:
        self._file = JsonLines(path)
        self._heading = json.loads(json.dumps(heading | {"version": __version__, "code": build_id()}))
        stored, *self._lines = self._file.read() or [None]
        if self._lines:  # without a generation there is nothing to resume
            check_resumable(path, _flat(stored), _flat(self._heading))

    def losses(self, number: int, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], float] | None:
        """Return the losses and the wall time of a generation, None if it is not in the log."""
        if number > len(self._lines):
            return None
        try:
            line = self._lines[number - 1]
            losses, seconds = np.array(line["losses"], np.float64), float(line["seconds"])
            if line["points_sha256"] != _hash(points):
                raise ValueError("other candidates, perhaps from another version of the library")
            if line["losses_sha256"] != _hash(losses):
                raise ValueError("the SHA-256 of its losses does not match")
        except (ValueError, LookupError, TypeError) as error:
            raise self._file.damaged(number + 1, error) from None
        return losses, seconds

    def add(self, number: int, points: NDArray[np.float64], losses: NDArray[np.float64], seconds: float) -> None:
        hashes = {"points_sha256": _hash(points), "losses_sha256": _hash(losses)}
        self._lines.append({"generation": number, **hashes, "losses": losses.tolist(), "seconds": seconds})
        if number == 1:  # a refused run writes nothing
            self._file.replace([self._heading, *self._lines])
        else:
            self._file.append(self._lines[-1])


def _flat(heading: Any) -> dict[str, Any]:
    """Return a heading as one level of names, as `check_resumable` compares them."""
    parts: dict[str, Any] = {"tuning": {}, "objective": {}, "weights": {}, "version": None}
    parts |= heading if isinstance(heading, dict) else {}
    objective = {f"{key} of the objective": value for key, value in parts["objective"].items()}
    return {**parts["tuning"], **objective, **as_hashes(parts["weights"]), "version": parts["version"]}


def _hash(points: NDArray[np.float64]) -> str:
    return hashlib.sha256(np.ascontiguousarray(points).tobytes()).hexdigest()
