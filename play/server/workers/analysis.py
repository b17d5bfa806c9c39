"""Analysis of a position: values and verdicts of all moves, by a search to the end of the game if there is time.

The packaged solved book (6x6) has exact values without a search. Otherwise each value is the mean of the last two depths: values
of odd and even depths differ, which would show as a zigzag over a game and as false blunders. The tables are cleared, since
entries of the neighbouring position have the other parity.
"""

from time import perf_counter
from typing import Any

from reversi_env import Position
from search.agents.book import solved_result
from search.engine.deepening import SOLVE_GROWTH, SOLVE_NODES_PER_SECOND
from search.engine.engine import Engine
from search.engine.limits import Limits, SearchResult
from train.evaluation.review import verdict

#: A solution that is expected within the requested time may take this multiple of it.
SOLVE_TIME_FACTOR = 3.0
#: Share of the time after which no deeper search begins, since it would not end in time.
LAST_START = 0.45
#: Minimum time of a search, in seconds.
MIN_SECONDS = 0.01
ALL_MOVES = 64


def analyse(engine: Engine, position: Position, seconds: float) -> dict[str, Any]:
    """Return the result of about *seconds* as a dictionary; values in discs for the side to move, *moves* best first."""
    began, seconds = perf_counter(), max(seconds, MIN_SECONDS)
    engine.clear()
    solved = solved_result(position, ALL_MOVES)
    values = _as_dict(solved, _values(solved)) if solved else _to_the_end(engine, position, seconds)
    if values is None:
        values = _deepened(engine, position, max(seconds - (perf_counter() - began), MIN_SECONDS))
    best, exact, size = values["value"], values["exact"], position.rules.size
    judged = [
        {"move": move, "value": value, "verdict": verdict(best - value, best, value, exact, size)}
        for move, value in values["moves"].items()
    ]
    return values | {"moves": judged, "seconds": perf_counter() - began}


def _to_the_end(engine: Engine, position: Position, seconds: float) -> dict[str, Any] | None:
    """Return exact or likely values of searches to the end of the game, if they take about *seconds*."""
    moves = max(1, len(position.legal_moves()))
    limits = Limits(time=seconds)
    if moves * SOLVE_GROWTH**position.empties / SOLVE_NODES_PER_SECOND <= seconds:
        limits = Limits(time=SOLVE_TIME_FACTOR * seconds, empties_exact=position.empties)
    elif not engine.selectivity_levels(position, limits, multi_pv=ALL_MOVES):
        return None
    result = engine.search(position, limits, multi_pv=ALL_MOVES)
    return _as_dict(result, _values(result)) if result.confidence else None


def _deepened(engine: Engine, position: Position, seconds: float) -> dict[str, Any]:
    """Return means of the last two depths finished in time; depth 1 has no time limit, and ends early only if it is stopped."""
    began = perf_counter()
    results: list[SearchResult] = []
    nodes = 0
    for depth in range(1, max(1, position.empties) + 1):  # a full board has a result too
        left = seconds - (perf_counter() - began)
        if results and left < (1 - LAST_START) * seconds:
            break
        limits = Limits(time=max(left, MIN_SECONDS) if results else None, depth=depth, empties_exact=0)
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
    """Return the move with the best of *values*, and a line that begins with it if one of the searches has one."""
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
