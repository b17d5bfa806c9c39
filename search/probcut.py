"""Fits multi-ProbCut: how well a shallow search foretells a deep one, for one evaluator and game.

A null-window search may be skipped when a much shallower one is so far outside the window that the deep one would
hardly come back (Buro, 1997). How far is far enough follows from data: over many positions, the deep value is a line in
the shallow value plus noise; `fit` measures slope, shift and deviation for every pair of depths. The engine prunes with
them only when asked to (`Engine.set_probcut`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from reversi_env import Position, ReversiError, Rules, batch
from search.core.midgame import ENGINE, UNIT
from search.engine import Engine
from search.evaluators import Evaluator
from search.limits import Limits

#: Deep search to the shallow one that foretells it; of equal parity, since evaluations swing with the side to move.
DEPTH_PAIRS = {3: 1, 4: 2, 5: 1, 6: 2, 7: 3, 8: 4, 9: 3, 10: 4, 11: 5, 12: 6}
#: Fewest positions that a line is fitted to.
FEWEST_POSITIONS = 30


@dataclass(frozen=True)
class Pair:
    """deep = slope * shallow + shift, give or take *deviation* (one standard deviation); values in discs."""

    deep: int
    shallow: int
    slope: float
    shift: float
    deviation: float
    positions: int


def fit(
    evaluator: Evaluator | str,
    rules: Rules | None = None,
    *,
    deepest: int = 8,
    positions: int = 300,
    seed: int = 0,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Pair]:
    """Measure all depth pairs up to *deepest* on midgame positions reached by random play; *progress* counts positions."""
    if positions < FEWEST_POSITIONS or deepest < min(DEPTH_PAIRS):
        raise ReversiError(
            f"{positions} positions to depth {deepest}: expected at least {FEWEST_POSITIONS} and depth {min(DEPTH_PAIRS)}"
        )
    rules = rules or Rules()
    depths = sorted({d for pair in DEPTH_PAIRS.items() for d in pair if d <= deepest})
    engine = Engine(evaluator, rules)
    values = np.empty((positions, len(depths)))
    for row, position in enumerate(_sample(rules, positions, deepest, seed)):
        for column, depth in enumerate(depths):
            engine.clear()
            values[row, column] = engine.search(position, Limits(depth=depth, empties_exact=0)).value
        progress(row + 1)
    by_depth = dict(zip(depths, values.T, strict=True))
    return [
        _fit_pair(deep, shallow, by_depth[deep], by_depth[shallow])
        for deep, shallow in DEPTH_PAIRS.items()
        if deep <= deepest
    ]


def coefficients(pairs: list[Pair]) -> np.ndarray:
    """The engine's record fields for these pairs, for `Engine.set_probcut`."""
    record = np.zeros((), ENGINE)
    record["cut_slope"] = 1.0
    for pair in pairs:
        record["cut_depth"][pair.deep] = pair.shallow
        record["cut_slope"][pair.deep] = pair.slope
        record["cut_shift"][pair.deep] = pair.shift * UNIT
        record["cut_deviation"][pair.deep] = pair.deviation * UNIT
    return record


def as_table(pairs: list[Pair]) -> list[dict[str, float]]:
    """The pairs as plain data, for a file."""
    return [asdict(pair) for pair in pairs]


def from_table(table: list[dict[str, float]]) -> list[Pair]:
    """The inverse of `as_table`."""
    try:
        return [Pair(**entry) for entry in table]  # type: ignore[arg-type]
    except TypeError as error:
        raise ReversiError(f"ProbCut coefficients: {error}") from None


def _sample(rules: Rules, count: int, deepest: int, seed: int) -> list[Position]:
    """Positions from the whole midgame with more empties than the deepest search reaches."""
    most = rules.square_count - 4 - deepest - 2
    if most < 4:
        raise ReversiError(
            f"depth {deepest} on the {rules.size}x{rules.size} board leaves no midgame to fit on: expected less"
        )
    plies = 4 + np.arange(count) % (most - 3)
    own, opp = batch.random_positions(count, plies, rules, seed=seed)
    return [Position(rules, int(a), int(b)) for a, b in zip(own, opp, strict=True)]


def _fit_pair(deep: int, shallow: int, deep_values: np.ndarray, shallow_values: np.ndarray) -> Pair:
    slope, shift = np.polyfit(shallow_values, deep_values, 1)
    if slope < 0.1:
        raise ReversiError(f"depth {shallow} tells nothing about depth {deep} with this evaluator (slope {slope:.2f})")
    deviation = float(np.std(deep_values - slope * shallow_values - shift))
    return Pair(deep, shallow, float(slope), float(shift), deviation, deep_values.size)
