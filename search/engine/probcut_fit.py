"""Fits Multi-ProbCut (Buro, 1997): linear regression of deep search values on shallow ones for one evaluator and game.

`fit` measures slope and shift for every pair of depths, and the deviation of the errors for all pairs together, as a function of
both depths and of the empty squares. `fit_endgame` does the same for searches to the end of the game.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from reversi_env import Position, ReversiError, Rules, batch
from reversi_env.rules import checked_rules
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.probcut import (
    END,
    MIN_DEPTH,
    MIN_SLOPE,
    DepthPair,
    DeviationModel,
    ProbCutModel,
    probcut_depth,
    spread_terms,
)
from search.engine.threads import checked_threads
from search.evaluators.registry import Evaluator

#: Minimum number of positions of a fit.
MIN_POSITIONS = 30
#: Maximum depth of a shallow search that predicts the end of a game.
MAX_SHALLOW_DEPTH = 8
#: Size of the table, which is cleared before every position.
TABLE_MIB = 16
#: Newton steps of the fit of the deviations, which converges after a few.
SPREAD_STEPS = 60
#: Ratio of standard deviation and mean absolute error of a normal distribution.
DEVIATION_PER_MEAN_ERROR = (math.pi / 2) ** 0.5


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
    """Return the model of all pairs of depths up to *deepest*; *progress* counts positions.

    *positions* is a list, or a number of midgame positions of random games. Existing coefficients of the evaluator are not used.
    """
    rules = checked_rules(rules)
    count = positions if isinstance(positions, int) else len(positions)
    if count < MIN_POSITIONS or deepest < MIN_DEPTH:
        raise ReversiError(
            f"{count} positions to depth {deepest}: expected at least {MIN_POSITIONS} and depth {MIN_DEPTH}"
        )
    sampled = positions if isinstance(positions, list) else _sample(rules, positions, deepest, seed)
    values = _values(evaluator, rules, sampled, deepest, threads, progress)[:, : deepest + 1]
    # The deviations are fitted on all pairs of equal parity, also on those that the search does not use.
    depths = [(deep, shallow) for deep in range(MIN_DEPTH, deepest + 1) for shallow in range(2 - deep % 2, deep, 2)]
    lines = [_line(values, deep, shallow) for deep, shallow in depths]
    used = [line.pair for line in lines if line.pair.shallow == probcut_depth(line.pair.deep)]
    return _model(used, lines, np.array([position.empties for position in sampled]))


def fit_endgame(
    evaluator: Evaluator | str,
    rules: Rules,
    positions: list[Position],
    *,
    threads: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> ProbCutModel:
    """Return the model of predictions of the final score by shallow searches, on *positions* that can be solved."""
    empties = np.array([position.empties for position in positions])
    if len(positions) < MIN_POSITIONS or empties.min() <= MAX_SHALLOW_DEPTH:
        raise ReversiError(
            f"{len(positions)} positions with {empties.min(initial=64)} empties and more: expected at least {MIN_POSITIONS}, "
            f"with more than {MAX_SHALLOW_DEPTH}"
        )
    values = _values(evaluator, rules, positions, MAX_SHALLOW_DEPTH, threads, progress, solves=True)
    lines = [_line(values, END, shallow) for shallow in range(1, MAX_SHALLOW_DEPTH + 1)]
    return _model([line.pair for line in lines if line.pair.shallow % 2 == 0], lines, empties)


def _model(pairs: list[DepthPair], lines: list[_Line], empties: np.ndarray) -> ProbCutModel:
    return ProbCutModel(tuple(pairs), _spread(lines, empties), (int(empties.min()), int(empties.max())))


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
    """Return values in discs of all positions (rows) at all depths (columns from 1 on), and in column END of the solver."""
    values = np.zeros((len(positions), END + 1))
    rows = iter(range(len(positions)))  # shared by the threads: its next() is atomic
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

    engines = [Engine(evaluator, rules, megabytes=TABLE_MIB, selective=False) for _ in range(checked_threads(threads))]
    with ThreadPoolExecutor(threads) as pool:
        try:
            list(pool.map(measure, engines))
        finally:  # after Ctrl-C, too
            ended.set()
            for engine in engines:
                engine.stop()
    return values


def _sample(rules: Rules, count: int, deepest: int, seed: int) -> list[Position]:
    most = rules.square_count - 4 - deepest - 2
    if most < 4:
        raise ReversiError(
            f"depth {deepest} on the {rules.size}x{rules.size} board leaves no midgame to fit on: expected a smaller depth"
        )
    plies = 4 + np.arange(count) % (most - 3)
    own, opp = batch.random_positions(count, plies, rules, seed=seed)
    return [Position(rules, int(a), int(b)) for a, b in zip(own, opp, strict=True)]


class _Line(NamedTuple):
    """A pair of depths with its regression, and the error at each position in discs."""

    pair: DepthPair
    errors: np.ndarray


def _line(values: np.ndarray, deep: int, shallow: int) -> _Line:
    slope, shift = np.polyfit(values[:, shallow], values[:, deep], 1)
    if slope < MIN_SLOPE:
        raise ReversiError(
            f"depth {shallow} does not predict depth {deep} (slope {slope:.2f}): expected another evaluator"
        )
    pair = DepthPair(deep, shallow, float(slope), float(shift), len(values))
    return _Line(pair, values[:, deep] - slope * values[:, shallow] - shift)


def _spread(lines: list[_Line], empties: np.ndarray) -> DeviationModel:
    """Return the `DeviationModel` that fits the mean absolute errors.

    Squared errors would be dominated by a few positions in which all discs are won or lost.
    """
    terms = np.concatenate([spread_terms(pair.deep, pair.shallow, empties) for pair, _ in lines])
    errors = DEVIATION_PER_MEAN_ERROR * np.abs(np.concatenate([line.errors for line in lines]))
    coefficients = np.linalg.lstsq(terms, np.log(errors + 0.05), rcond=None)[0]
    for _ in range(SPREAD_STEPS):  # Newton's method, as for a generalised linear model with exponential errors
        coefficients += np.linalg.lstsq(terms, errors * np.exp(-terms @ coefficients) - 1, rcond=None)[0]
    return DeviationModel(*coefficients.tolist())
