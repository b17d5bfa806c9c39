"""Multi-ProbCut parameters of one evaluator and game: which shallow depth predicts which deep one, with which line and deviation.

A search to a depth is predicted by one half as deep, one of two plies by the static evaluation, and a search to the end of the game
by one of a few plies. `SELECTIVITIES` are the confidence levels at which the endgame is searched.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reversi_env import ReversiError, Rules
from reversi_env.errors import quoted
from reversi_env.options import Options, option
from search.kernels.endgame import EXACT_LEVEL, PROBCUT_EMPTIES
from search.kernels.evaluate import UNIT
from search.kernels.probcut import STATIC_DEPTH
from search.kernels.thread_state import THREAD_STATE

if TYPE_CHECKING:
    from search.evaluators.registry import Evaluator

#: Minimum and maximum depth of a search that a shallower one predicts.
MIN_DEPTH, MAX_DEPTH = 3, 24
#: Minimum slope: with less, the shallow search predicts nothing.
MIN_SLOPE = 0.1
#: Default and maximum margin in standard deviations.
MARGIN, MAX_MARGIN = 1.0, 10
#: Range of deviations in discs: the model may diverge outside the measured positions.
DEVIATIONS = (0.25, 64.0)
#: Depth that stands for a search to the end of the game, with any number of empties.
END = 64
#: The fields of a thread's record.
PROBCUT_FIELDS = ("probcut_depth", "probcut_slope", "probcut_shift", "probcut_deviation")
END_FIELDS = ("end_depth", "end_slope", "end_shift", "end_deviation")


class Selectivity(NamedTuple):
    """A selectivity level: the confidence of a value in percent, and the margin in standard deviations."""

    confidence: int
    margin: float


#: Levels of the endgame search under a time limit: each is more reliable than the one before and finds its moves in the table. The
#: last one is exact: nothing is pruned.
SELECTIVITIES = tuple(
    Selectivity(*level) for level in ((73, 1.1), (87, 1.5), (95, 2.0), (98, 2.4), (99, 2.6), (100, 0.0))
)
assert len(SELECTIVITIES) == EXACT_LEVEL + 1


def probcut_depth(deep: int) -> int:
    """Return the depth of the search that predicts one *deep* plies deep: half as deep, and of equal parity.

    Evaluations swing with the side that moved last.
    """
    half = deep // 2
    return half - (deep - half) % 2


def endgame_probcut_depth(empties: int) -> int:
    """Return the depth of the search that predicts the score at *empties* empty squares; 0 without ProbCut, near the end."""
    if empties < PROBCUT_EMPTIES:
        return 0
    return 2 if empties < 16 else 4 if empties < 21 else 6


@dataclass(frozen=True)
class DepthPair(Options):
    """deep value = slope * shallow value + shift in discs, fitted on a number of ``positions``. ``deep`` may be END."""

    deep: int = option(low=2, high=END)
    shallow: int = option(low=1, high=END)
    slope: float = option(low=MIN_SLOPE)
    shift: float = option(low=-64, high=64)
    positions: int = option(low=1)


@dataclass(frozen=True)
class DeviationModel(Options):
    """Standard deviation in discs of a deep value from its prediction by a shallow one, as an exponential.

    It grows with the plies between the two and towards the end of the game, where every disc is at stake.
    """

    constant: float
    deep: float
    shallow: float
    empties: float
    empties_squared: float

    def deviation(self, deep: int, shallow: int, empties: Any) -> Any:
        """Return one standard deviation in discs; an array for an array of empties."""
        exponent = spread_terms(deep, shallow, empties) @ np.array(astuple(self))
        return np.clip(np.exp(np.minimum(exponent, 10.0)), *DEVIATIONS)


def spread_terms(deep: int, shallow: int, empties: Any) -> np.ndarray:
    """Return the terms of the exponent of a `DeviationModel`: ``(…, 5)`` for an array of empties."""
    e = np.asarray(empties, np.float64)
    return np.stack([np.ones_like(e), np.full_like(e, deep), np.full_like(e, shallow), e, e * e], axis=-1)


@dataclass(frozen=True)
class ProbCutModel(Options):
    """The ProbCut parameters of an evaluator in one game; ``empties``: minimum and maximum of the positions measured.

    ``ends``: the same for searches to the end of the game, in weights that were measured for them.
    """

    pairs: tuple[DepthPair, ...]
    spread: DeviationModel
    empties: tuple[int, int] = option(low=0, high=64)
    ends: ProbCutModel | None = None

    def deviation(self, pair: DepthPair, empties: Any) -> Any:
        """Return the standard deviation, in discs, of the deep value of *pair* from its prediction; also for arrays."""
        return self.spread.deviation(pair.deep, pair.shallow, np.clip(empties, *self.empties))


def coefficients(model: ProbCutModel) -> np.ndarray:
    """Return a thread's record with the fields that ProbCut reads, for `Engine.set_probcut`."""
    record = np.zeros((), THREAD_STATE)
    record["probcut_slope"] = record["end_slope"] = 1.0
    for pair in (*model.pairs, *_extrapolated(model.pairs)):
        record["probcut_depth"][pair.deep] = pair.shallow
        record["probcut_slope"][pair.deep] = pair.slope
        record["probcut_shift"][pair.deep] = pair.shift * UNIT
        record["probcut_deviation"][pair.deep] = model.deviation(pair, np.arange(64)) * UNIT
    of_static_values = model.spread.deviation(STATIC_DEPTH, 0, np.clip(np.arange(64), *model.empties))
    record["probcut_deviation"][STATIC_DEPTH] = of_static_values * UNIT
    if model.ends is not None:
        _write_endgame_coefficients(record, model.ends)
    return record


def _write_endgame_coefficients(record: np.ndarray, ends: ProbCutModel) -> None:
    pairs = {pair.shallow: pair for pair in ends.pairs}
    for empties in range(64):
        pair = pairs.get(endgame_probcut_depth(empties))
        if pair is not None:
            record["end_depth"][empties] = pair.shallow
            record["end_slope"][empties] = pair.slope
            record["end_shift"][empties] = pair.shift * UNIT
            record["end_deviation"][empties] = ends.deviation(pair, empties) * UNIT


def checked_margin(margin: float, has_coefficients: Any = True) -> float:
    """Return the margin in standard deviations, or raise a `ReversiError`; above 0 it needs coefficients."""
    if isinstance(margin, bool) or not isinstance(margin, (int, float, np.number)) or not 0 <= margin <= MAX_MARGIN:
        raise ReversiError(f"ProbCut margin {quoted(margin)}: expected a number from 0 to {MAX_MARGIN}")
    if margin and not has_coefficients:
        raise ReversiError(
            "ProbCut needs fitted coefficients: expected weights that `reversi train probcut` wrote, or those of "
            "search.engine.probcut_fit.fit"
        )
    return float(margin)


def load_probcut(thread_states: np.ndarray, evaluator: Evaluator, rules: Rules) -> None:
    """Write the coefficients of the evaluator, if it has coefficients, into the threads' records."""
    table = evaluator.probcut(rules)
    if table:
        try:
            coefficients_record = coefficients(from_table(table))
        except ReversiError as error:
            raise ReversiError(f"evaluator {evaluator.name!r}: {error}") from None
        for field in (*PROBCUT_FIELDS, *END_FIELDS):
            thread_states[field] = coefficients_record[field]


def as_table(model: ProbCutModel) -> dict[str, Any]:
    """Return the model as plain data, for a file."""
    table = model.as_dict()
    del table["ends"]
    return table if model.ends is None else table | {"ends": as_table(model.ends)}


def from_table(table: Any) -> ProbCutModel:
    """Return the model of `as_table`, or raise a `ReversiError`."""
    with suppress(AttributeError, TypeError, ValueError, LookupError, OverflowError):
        ends = None if table.get("ends") is None else _read(table["ends"], END, END)
        return _read(table, 2, MAX_DEPTH, ends)
    raise ReversiError(
        f"ProbCut coefficients {quoted(table)}: expected those of this version; "
        f"`reversi train probcut FILE --out FOLDER` measures new ones"
    )


def _read(table: Any, min_deep: int, max_deep: int, ends: ProbCutModel | None = None) -> ProbCutModel:
    pairs, (low, high) = tuple(DepthPair(**entry) for entry in table["pairs"]), table["empties"]
    ordered = low <= high and all(pair.shallow < pair.deep and min_deep <= pair.deep <= max_deep for pair in pairs)
    if not (pairs and ordered):
        raise ValueError("depths or empties out of range")
    return ProbCutModel(pairs, DeviationModel(**table["spread"]), (low, high), ends)


def _extrapolated(pairs: tuple[DepthPair, ...]) -> Iterator[DepthPair]:
    # Deeper pairs have the coefficients of the deepest measured pair of their parity.
    for parity in (0, 1):
        deepest = max((pair for pair in pairs if pair.deep % 2 == parity), key=lambda pair: pair.deep, default=None)
        if deepest is not None:
            for deep in range(deepest.deep + 2, MAX_DEPTH + 1, 2):
                yield replace(deepest, deep=deep, shallow=probcut_depth(deep))
