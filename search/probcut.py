"""Fits multi-ProbCut: how well a shallow search foretells a deep one, for one evaluator and game.

A null-window search may be skipped when a much shallower one is so far outside the window that the deep one would
hardly come back (Buro, 1997). How far is far enough follows from data: over many positions, the deep value is a line in
the shallow value plus noise; `fit` measures slope, shift and deviation for every pair of depths. The engine prunes with
them only when asked to (`Engine.set_probcut`).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from reversi_env import Position, ReversiError, Rules, batch
from search.cuts import DEPTH_PAIRS, LEAST_SLOPE, Pair, as_table, coefficients, from_table
from search.engine import Engine
from search.evaluators import Evaluator
from search.limits import Limits

__all__ = ["DEPTH_PAIRS", "Pair", "as_table", "coefficients", "fit", "from_table"]

#: Fewest positions that a line is fitted to.
FEWEST_POSITIONS = 30
#: MiB of a table that is cleared before every search: enough for those depths, and soon cleared.
TABLE = 4


def fit(
    evaluator: Evaluator | str,
    rules: Rules | None = None,
    *,
    deepest: int = 8,
    positions: int | list[Position] = 300,
    seed: int = 0,
    threads: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Pair]:
    """Measure all depth pairs up to *deepest*; *progress* counts positions.

    *positions* are given, or are so many of the midgame reached by random play.
    """
    rules = rules or Rules()
    count = positions if isinstance(positions, int) else len(positions)
    if count < FEWEST_POSITIONS or deepest < min(DEPTH_PAIRS):
        raise ReversiError(
            f"{count} positions to depth {deepest}: expected at least {FEWEST_POSITIONS} and depth {min(DEPTH_PAIRS)}"
        )
    sampled = positions if isinstance(positions, list) else _sample(rules, positions, deepest, seed)
    depths = sorted({d for pair in DEPTH_PAIRS.items() for d in pair if d <= deepest})
    values = np.empty((count, len(depths)))
    rows = iter(range(count))  # whose next() is one step of the interpreter: threads share it safely
    done = iter(range(1, count + 1))

    def work(engine: Engine) -> None:
        for row in rows:
            for column, depth in enumerate(depths):
                engine.clear()
                values[row, column] = engine.search(sampled[row], Limits(depth=depth, empties_exact=0)).value
            progress(next(done))

    engines = [Engine(evaluator, rules, megabytes=TABLE) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        try:
            list(pool.map(work, engines))
        finally:  # Ctrl-C: nothing more is begun, and what was begun ends soon
            for _ in rows:
                pass
            for engine in engines:
                engine.stop()
    by_depth = dict(zip(depths, values.T, strict=True))
    return [
        _fit_pair(deep, shallow, by_depth[deep], by_depth[shallow])
        for deep, shallow in DEPTH_PAIRS.items()
        if deep <= deepest
    ]


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
    if slope < LEAST_SLOPE:
        raise ReversiError(f"depth {shallow} tells nothing about depth {deep} with this evaluator (slope {slope:.2f})")
    deviation = float(np.std(deep_values - slope * shallow_values - shift))
    return Pair(deep, shallow, float(slope), float(shift), deviation, deep_values.size)
