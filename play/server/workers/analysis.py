"""A position analysed: every move valued and judged, exactly or likely so where that is possible in the time.

Before that, each value is the mean of the last two depths. Evaluations tend to favour the side to move, or the other one, so
that odd and even depths differ; which would show as a zigzag in the course of a game, and as blunders that were none. For the
same reason the tables are cleared: what was found out about the neighbouring position is of the other parity.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from search.engine.engine import SOLVE_GROWTH, SOLVE_NODES_PER_SECOND
from search.engine.limits import Limits, SearchResult
from train.evaluation.review import verdict

if TYPE_CHECKING:
    from reversi_env import Position
    from search.engine.engine import Engine

#: A solution may take this many times the time asked for; it is tried only if it is expected to take no more than that time.
PATIENCE = 3.0
#: Share of the time after which no deeper search is begun: it would not be done in time.
LAST_START = 0.45
#: The shortest time, in seconds, that anything can be found out in.
LEAST_SECONDS = 0.01
ALL_MOVES = 64


def analyse(engine: Engine, position: Position, seconds: float) -> dict[str, Any]:
    """What is found in about *seconds*, or the least time; values in discs for the side to move, *moves* best first."""
    began, seconds = perf_counter(), max(seconds, LEAST_SECONDS)
    engine.clear()
    values = _to_the_end(engine, position, seconds)
    if values is None:
        left = seconds - (perf_counter() - began)
        values = _deepened(engine, position, max(left, LEAST_SECONDS))
    best, exact, size = values["value"], values["exact"], position.rules.size
    judged = [
        {"move": move, "value": value, "verdict": verdict(best - value, best, value, exact, size)}
        for move, value in values["moves"].items()
    ]
    return values | {"moves": judged, "seconds": perf_counter() - began}


def _to_the_end(engine: Engine, position: Position, seconds: float) -> dict[str, Any] | None:
    """Values of searches to the end of the game, exact or likely, if they can be had."""
    moves = max(1, len(position.legal_moves()))
    limits = Limits(time=seconds)
    if moves * SOLVE_GROWTH**position.empties / SOLVE_NODES_PER_SECOND <= seconds:
        limits = Limits(time=PATIENCE * seconds, empties_exact=position.empties)
    elif not engine.selectivity_levels(position, limits, multi_pv=ALL_MOVES):
        return None
    result = engine.search(position, limits, multi_pv=ALL_MOVES)
    return _as_dict(result, _values(result)) if result.confidence else None


def _deepened(engine: Engine, position: Position, seconds: float) -> dict[str, Any]:
    """Means of the last two depths that were finished in time; the first has no clock, and ends early only if it is stopped."""
    began = perf_counter()
    results: list[SearchResult] = []
    nodes = 0
    for depth in range(1, max(1, position.empties) + 1):  # a full board has a result too
        left = seconds - (perf_counter() - began)
        if results and left < (1 - LAST_START) * seconds:
            break
        limits = Limits(time=max(left, LEAST_SECONDS) if results else None, depth=depth, empties_exact=0)
        result = engine.search(position, limits, multi_pv=ALL_MOVES, keep_estimates=depth > 1)
        nodes += result.nodes
        if result.depth == depth or not results:
            results.append(result)
        if result.exact or result.move is None:
            return _as_dict(result, _values(result), nodes)
        if result.depth < depth:  # not finished
            break
    last, before = results[-1], results[-2] if len(results) > 1 else results[-1]
    old, new = _values(before), _values(last)
    means = {move: (value + old.get(move, value)) / 2 for move, value in new.items()}
    return _as_dict(last, dict(sorted(means.items(), key=lambda item: -item[1])), nodes, before)


def _values(result: SearchResult) -> dict[str, float]:
    return {entry.move: entry.value for entry in result.moves}


def _as_dict(
    result: SearchResult, values: dict[str, float], nodes: int | None = None, other: SearchResult | None = None
) -> dict[str, Any]:
    """The answer: the move with the best of *values*, and a line that begins with it if one of the searches has it."""
    move = next(iter(values), result.move)
    lines = [searched.pv for searched in (result, other) if searched and searched.move == move]
    return {
        "move": move,
        "value": values.get(move or "", result.value),
        "depth": result.depth,
        "exact": result.exact,
        "confidence": result.confidence,
        "pv": list(lines[0]) if lines else [move] if move else [],
        "nodes": result.nodes if nodes is None else nodes,
        "moves": values,
    }
