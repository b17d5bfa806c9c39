"""Fits Multi-ProbCut: regresses deep search values on shallow ones for one evaluator and game.

A null-window search may be skipped when a much shallower one is so far outside the window that the deep one would
hardly come back (Buro, 1997). How far is far enough follows from data: over many positions, the deep value is a line in
the shallow value plus noise; `fit` measures slope and shift for every pair of depths, and the noise for all of them together
as a function of both depths and of the empty squares. `fit_endgame` does the same for searches to the end of the game. The engine
prunes with them only when asked to (`Engine.set_probcut`) or short of time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from reversi_env import Position, ReversiError, Rules, batch
from reversi_env.rules import checked_rules
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.probcut import (
    END,
    MIN_SLOPE,
    SHALLOWEST,
    DepthPair,
    DeviationModel,
    ProbCutModel,
    probcut_depth,
    spread_terms,
)
from search.engine.threads import checked_threads
from search.evaluators.registry import Evaluator

#: Fewest positions that a line is fitted to.
MIN_POSITIONS = 30
#: Deepest shallow search that may predict the end of a game.
MAX_SHALLOW_DEPTH = 8
#: MiB of a table that is cleared before every position: enough for those depths, and soon cleared.
TABLE = 16
#: Steps of the fit of the noise, which is done after a few.
SPREAD_STEPS = 60
#: Standard deviations in a mean absolute error, if errors are normal.
DEVIATIONS_A_MEAN = (math.pi / 2) ** 0.5


def fit(
    evaluator: Evaluator | str,
    rules: Rules | None = None,
    *,
    deepest: int = 8,
    positions: int | list[Position] = 300,
    seed: int = 0,
    threads: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> ProbCutModel:
    """Measure all pairs of depths up to *deepest*; *progress* counts positions.

    *positions* are given, or are so many of the midgame reached by random play. Coefficients that the evaluator may have are not
    even read.
    """
    rules = checked_rules(rules)
    count = positions if isinstance(positions, int) else len(positions)
    if count < MIN_POSITIONS or deepest < SHALLOWEST:
        raise ReversiError(
            f"{count} positions to depth {deepest}: expected at least {MIN_POSITIONS} and depth {SHALLOWEST}"
        )
    sampled = positions if isinstance(positions, list) else _sample(rules, positions, deepest, seed)
    values = _values(evaluator, rules, sampled, deepest, threads, progress)[:, : deepest + 1]
    lines = [_line(values, deep, shallow) for deep, shallow in _depths(deepest)]
    empties = np.array([position.empties for position in sampled])
    used = tuple(line.pair for line in lines if line.pair.shallow == probcut_depth(line.pair.deep))
    return ProbCutModel(used, _spread(lines, empties), (int(empties.min()), int(empties.max())))


def fit_endgame(
    evaluator: Evaluator | str,
    rules: Rules,
    positions: list[Position],
    *,
    threads: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> ProbCutModel:
    """Measure how well shallow searches predict the final score, on *positions* that can be solved. *progress* counts them."""
    empties = np.array([position.empties for position in positions])
    if len(positions) < MIN_POSITIONS or empties.min() <= MAX_SHALLOW_DEPTH:
        raise ReversiError(
            f"{len(positions)} positions with {empties.min(initial=64)} empties and more: expected at least {MIN_POSITIONS}, "
            f"with more than {MAX_SHALLOW_DEPTH}"
        )
    values = _values(evaluator, rules, positions, MAX_SHALLOW_DEPTH, threads, progress, solves=True)
    lines = [_line(values, END, shallow) for shallow in range(1, MAX_SHALLOW_DEPTH + 1)]
    used = tuple(line.pair for line in lines if line.pair.shallow % 2 == 0)
    return ProbCutModel(used, _spread(lines, empties), (int(empties.min()), int(empties.max())))


def _depths(deepest: int) -> Iterator[tuple[int, int]]:
    """All pairs of depths of equal parity: the noise is learnt from those too that are not used."""
    for deep in range(SHALLOWEST, deepest + 1):
        for shallow in range(2 - deep % 2, deep, 2):
            yield deep, shallow


def _values(
    evaluator: Evaluator | str,
    rules: Rules,
    positions: list[Position],
    deepest: int,
    threads: int,
    progress: Callable[[int], None],
    *,
    solves: bool = False,
) -> np.ndarray:
    """Values in discs of every position (rows) searched to every depth (columns, the first is not used), and to the END."""
    values = np.zeros((len(positions), END + 1))
    rows = iter(range(len(positions)))  # whose next() is one step of the interpreter: threads share it safely
    done = iter(range(1, len(positions) + 1))
    ended = threading.Event()

    def measure(engine: Engine) -> None:
        for row in rows:
            engine.clear()
            for depth in range(1, deepest + 1):
                if ended.is_set():
                    return
                values[row, depth] = engine.search(positions[row], Limits(depth=depth, empties_exact=0)).value
            if solves:
                values[row, END] = engine.search(positions[row], Limits(empties_exact=END)).value
            progress(next(done))

    engines = [Engine(evaluator, rules, megabytes=TABLE, selective=False) for _ in range(checked_threads(threads))]
    with ThreadPoolExecutor(threads) as pool:
        try:
            list(pool.map(measure, engines))
        finally:  # Ctrl-C: nothing more is begun, and what was begun ends soon
            ended.set()
            for engine in engines:
                engine.stop()
    return values


def _sample(rules: Rules, count: int, deepest: int, seed: int) -> list[Position]:
    most = rules.square_count - 4 - deepest - 2
    if most < 4:
        raise ReversiError(
            f"depth {deepest} on the {rules.size}x{rules.size} board leaves no midgame to fit on: expected less"
        )
    plies = 4 + np.arange(count) % (most - 3)
    own, opp = batch.random_positions(count, plies, rules, seed=seed)
    return [Position(rules, int(a), int(b)) for a, b in zip(own, opp, strict=True)]


class _Line(NamedTuple):
    """How a deep value follows a shallow one, and what it misses by on each position, in discs."""

    pair: DepthPair
    errors: np.ndarray


def _line(values: np.ndarray, deep: int, shallow: int) -> _Line:
    slope, shift = np.polyfit(values[:, shallow], values[:, deep], 1)
    if slope < MIN_SLOPE:
        raise ReversiError(f"depth {shallow} tells nothing about depth {deep} with this evaluator (slope {slope:.2f})")
    pair = DepthPair(deep, shallow, float(slope), float(shift), len(values))
    return _Line(pair, values[:, deep] - slope * values[:, shallow] - shift)


def _spread(lines: list[_Line], empties: np.ndarray) -> DeviationModel:
    """The `DeviationModel` that fits the absolute errors: their mean is the exponential of a linear formula.

    Absolute, not squared: a few positions in which all is lost or won at once would rule the squares.
    """
    terms = np.concatenate([spread_terms(pair.deep, pair.shallow, empties) for pair, _ in lines])
    errors = DEVIATIONS_A_MEAN * np.abs(np.concatenate([line.errors for line in lines]))
    numbers = np.linalg.lstsq(terms, np.log(errors + 0.05), rcond=None)[0]
    for _ in range(SPREAD_STEPS):  # Newton's method, as for a generalised linear model with exponential errors
        numbers += np.linalg.lstsq(terms, errors * np.exp(-terms @ numbers) - 1, rcond=None)[0]
    return DeviationModel(*(float(number) for number in numbers))
