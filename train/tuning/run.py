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
from reversi_env.storage.atomic import write_atomically
from search.evaluators.formula import Formula, formula_file
from train.jobs.logs import JsonLines
from train.jobs.run import Run, as_hashes, check_resumable
from train.tuning.objectives import LabelError, Objective, rescaled
from train.tuning.optimisers import OPTIMISERS, Optimiser
from train.tuning.options import TuneOptions
from train.tuning.space import Space, space_of

#: Best candidates that are judged again, on games or positions of their own, before one is chosen.
FINALISTS = 5
#: Positions that give tuned weights their scale in discs, where the objective has none: few empties, solved in a moment.
SCALE_POSITIONS = {4: 300, 6: 2000, 8: 2000}
SCALE_EMPTIES = {4: (4, 6), 6: (8, 10), 8: (10, 12)}


@dataclass(frozen=True)
class Generation:
    """One round: its number from 1 on, the losses of its candidates, the best loss so far, and the seconds that it took."""

    number: int
    losses: NDArray[np.float64]
    best: float
    seconds: float


@dataclass(frozen=True)
class TuningResult:
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
) -> TuningResult:
    """Look for better weights; with a *folder*, keep a log there, go on from it if there is one, and write the weights."""
    space = space_of(options.formula, options.varied)
    if folder is None:
        return _tune(options, objective, space, _Log(None, {}), progress)
    path = folder / f"{options.formula.partition(':')[0]}-{options.optimiser}.json"
    with Run(folder):
        weights = {options.formula: space.formula.sha256(objective.rules), **objective.content_hashes()}
        heading = {"tuning": options.described(), "objective": objective.described(), "weights": weights}
        log = _Log(path.with_suffix(".jsonl"), heading)
        tuned = _tune(options, objective, space, log, progress)
        write_atomically(path, _content(options, objective, tuned, command))
        return replace(tuned, file=path)


def _tune(
    options: TuneOptions,
    objective: Objective,
    space: Space,
    log: _Log,
    progress: Callable[[Generation], None],
) -> TuningResult:
    start = space.point(space.formula) if options.from_published else None
    optimiser = OPTIMISERS[options.optimiser](space.size, options.population, options.seed, start)
    generations: list[Generation] = []
    judged: list[tuple[float, NDArray[np.float64]]] = []
    for number in range(1, options.generations + 1):
        began = perf_counter()
        points = optimiser.ask()
        known = log.losses(number, points)
        found = known[0] if known else objective.losses([space.evaluator(point) for point in points], number)
        optimiser.tell(found)
        judged = sorted([*judged, *zip(found.tolist(), points, strict=True)], key=lambda pair: pair[0])[:FINALISTS]
        seconds = known[1] if known else perf_counter() - began
        generations.append(Generation(number, found, judged[0][0], seconds))
        log.add(number, points, found, seconds)
        progress(generations[-1])
    return _chosen(objective, space, optimiser, judged, generations)


def _chosen(
    objective: Objective,
    space: Space,
    optimiser: Optimiser,
    judged: list[tuple[float, NDArray[np.float64]]],
    generations: list[Generation],
) -> TuningResult:
    """The best of the finalists on games or positions of their own; what it is worth, on further ones."""
    points = [point for _, point in judged]
    favourite = optimiser.favourite()
    finalists = [space.evaluator(point) for point in (points if favourite is None else [*points, favourite])]
    second = objective.held_out()
    best = finalists[int(np.argmin(second.losses(finalists)))]
    check, published = second.held_out().losses([best, space.formula])
    found = float(objective.losses([best], generations[-1].number)[0])
    evaluations = sum(generation.losses.size for generation in generations)
    seconds = sum(generation.seconds for generation in generations)
    name = space.formula.family
    return TuningResult(best, name, found, float(check), float(published), evaluations, seconds, tuple(generations))


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
    """Discs for one unit of the formula: by exact scores near the end, as far as its play by the objective allows.

    What wins games may mean the opposite there: few moves of the opponent's, in the reversed game. A formula that was judged by its
    play keeps the sign that it played with.
    """
    if isinstance(objective, LabelError):
        return objective.scale(tuned)
    rules = objective.rules
    positions, empties = SCALE_POSITIONS[rules.size], SCALE_EMPTIES[rules.size]
    scale = LabelError(rules.size, rules.variant, positions, empties, seed=seed).scale(tuned)
    return scale if scale > 0 else rescaled([tuned], rules)[0].scale_on(rules)


# --- the log --------------------------------------------------------------------------------------


class _Log:
    """Losses by generation, below a line that says what they are the losses of; without a path nothing is kept."""

    def __init__(self, path: Path | None, heading: dict[str, Any]) -> None:
        self._file = None if path is None else JsonLines(path)
        self._heading = json.loads(json.dumps(heading | {"version": __version__}))
        heading_there, *self._lines = (self._file.read() if self._file else None) or [None]
        if self._file and self._lines:  # without a generation there is nothing to go on from
            there, here = _flat(heading_there), _flat(self._heading)
            # a hash that was not written down once is taken as it is now: the options, which are the same, name it
            known = {name: value for name, value in here.items() if name in there or not name.endswith("_sha256")}
            check_resumable(self._file.path, there, known)

    def losses(self, number: int, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], float] | None:
        """The losses of a generation and the seconds it took, if they are known."""
        if self._file is None or number > len(self._lines):
            return None
        try:
            line = self._lines[number - 1]
            losses, seconds = np.array(line["losses"], np.float64), float(line["seconds"])
            if line["points_sha256"] != _hash(points):
                raise ValueError("other candidates, as of other versions of the libraries")
            if line.get("losses_sha256", _hash(losses)) != _hash(losses):
                raise ValueError("its losses have another SHA-256")
        except (ValueError, LookupError, TypeError) as error:
            raise self._file.damaged(number + 1, error) from None
        return losses, seconds

    def add(self, number: int, points: NDArray[np.float64], losses: NDArray[np.float64], seconds: float) -> None:
        """Keep the losses of a new generation."""
        if self._file is None or number <= len(self._lines):
            return
        hashes = {"points_sha256": _hash(points), "losses_sha256": _hash(losses)}
        self._lines.append({"generation": number, **hashes, "losses": losses.tolist(), "seconds": seconds})
        if number == 1:  # only now: a tuning that was refused leaves nothing behind
            self._file.replace([self._heading, *self._lines])
        else:
            self._file.append(self._lines[-1])


def _flat(heading: Any) -> dict[str, Any]:
    """A heading as one level of names; of an objective's they are said to be its."""
    parts: dict[str, Any] = {"tuning": {}, "objective": {}, "weights": {}, "version": None}
    parts |= heading if isinstance(heading, dict) else {}
    of_objective = {f"{key} of the objective": value for key, value in parts["objective"].items()}
    return {**parts["tuning"], **of_objective, **as_hashes(parts["weights"]), "version": parts["version"]}


def _hash(points: NDArray[np.float64]) -> str:
    return hashlib.sha256(np.ascontiguousarray(points).tobytes()).hexdigest()
