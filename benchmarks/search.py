"""Speed of the search: node signature, midgame rates, and the FFO problems."""

from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from reversi_env import Position, Rules, batch
from reversi_env.notation import read_obf
from reversi_env.notation.obf import Problem
from reversi_env.storage.packaged import DATA, packaged_bytes
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.probcut import MARGIN
from search.engine.solver import Solver
from search.engine.table import TranspositionTable

EVALUATOR = "six-factor"
SIGNATURE_DEPTH = 6
#: Depth at which one thread and several are compared: half a second per position for one.
THREADS_DEPTH = 20
#: Seed of the fixed positions. Its streams are those that seed 2026 had before seeds were mixed.
POSITIONS_SEED = 0x4C81_7627_A243_5B40


def midgame_positions(
    count: int = 16, rules: Rules | None = None, shortest: int = 12, longest: int = 40
) -> list[Position]:
    """Return fixed positions after *shortest* to *longest* random plies."""
    rules = rules or Rules()
    plies = shortest + np.arange(count) % (longest - shortest + 1)
    own, opp = batch.random_positions(count, plies, rules, seed=POSITIONS_SEED)
    return [Position(rules, int(a), int(b)) for a, b in zip(own, opp, strict=True)]


def ffo_problems() -> list[Problem]:
    return _packaged_problems("ffo-40-44.obf")


def long_problems() -> list[Problem]:
    """Return positions of tournament games (WTHOR) with 24 empty squares and more, with the score of a best move."""
    return _packaged_problems("long-endgames.obf")


def _packaged_problems(file_name: str) -> list[Problem]:
    return list(read_obf(packaged_bytes(DATA / file_name).decode().splitlines()))


def signature() -> int:
    """Return the nodes of fixed searches of fixed positions; every change of the search changes it."""
    engine = Engine(EVALUATOR, megabytes=16)
    nodes = 0
    for position in midgame_positions():
        engine.clear()
        nodes += engine.search(position, Limits(depth=SIGNATURE_DEPTH, empties_exact=0)).nodes
    solver = Solver(table=TranspositionTable(16))
    own, opp = batch.random_positions(16, 46, seed=POSITIONS_SEED)
    for a, b in zip(own, opp, strict=True):
        solver.table.clear()
        nodes += solver.solve(Position(Rules(), int(a), int(b))).nodes
    return nodes


def _midgame(engine: Engine, depth: int) -> list[dict[str, Any]]:
    """Return nodes and seconds of the midgame positions searched to *depth*, each with an empty table."""
    results = []
    for position in midgame_positions():
        engine.clear()
        result = engine.search(position, Limits(depth=depth, empties_exact=0))
        results.append({"nodes": result.nodes, "seconds": result.seconds})
    return results


def midgame_rate(evaluator: str = EVALUATOR, depth: int = 8) -> float:
    """Return nodes per second of fixed-depth searches with an evaluator on one thread, best of three."""
    engine, best = Engine(evaluator), 0.0
    for _ in range(3):
        results = _midgame(engine, depth)
        best = max(best, sum(one["nodes"] for one in results) / sum(one["seconds"] for one in results))
    return best


def ffo(threads: int = 1, order: str | None = None) -> list[dict[str, Any]]:
    """Solve FFO problems 40 to 44, each with an empty table of 256 MiB; *order*: an evaluator for the move ordering."""
    return _solved(ffo_problems(), 40, threads, order)


def long_endgames(threads: int = 1) -> list[dict[str, Any]]:
    """Solve the `long_problems` as `ffo` does, with moves ordered by the network."""
    return _solved(long_problems(), 1, threads, "network")


def _solved(problems: list[Problem], first_number: int, threads: int, order: str | None) -> list[dict[str, Any]]:
    results = []
    solver = Solver(threads=threads, table=TranspositionTable(256), evaluator=order)
    solver.load_kernels()
    for number, problem in enumerate(problems, start=first_number):
        solver.table.clear()
        solution = solver.solve(problem.position)
        solved = {"score": solution.score, "nodes": solution.nodes, "seconds": solution.seconds}
        results.append({"problem": number} | solved | {"correct": solution.score == problem.best_score})
    return results


def midgame_to_depth(threads: int = 1) -> list[dict[str, Any]]:
    """Return nodes and seconds of searches to THREADS_DEPTH with the network and ProbCut."""
    engine = Engine("network", threads=threads)
    engine.set_probcut(MARGIN)
    return _midgame(engine, THREADS_DEPTH)


def in_turns(search: Callable[[int], list[dict[str, Any]]], threads: int, rounds: int) -> dict[str, Any]:
    """Run *search*, a function of the number of threads, on one and on *threads* in turn.

    ``one`` and ``every`` are the results of the last round with the median seconds and nodes of all rounds. ``speedup`` is the
    ratio of their total seconds, one thread to all; ``nodes_ratio`` that of their nodes, all to one.
    """
    runs = [(search(1), search(threads)) for _ in range(rounds)]
    one, every = (
        [
            run[-1] | {what: median(p[what] for p in run) for what in ("seconds", "nodes")}
            for run in zip(*some, strict=True)
        ]
        for some in zip(*runs, strict=True)
    )
    seconds, nodes = ([sum(p[what] for p in medians) for medians in (one, every)] for what in ("seconds", "nodes"))
    return {"one": one, "every": every, "speedup": seconds[0] / seconds[1], "nodes_ratio": nodes[1] / nodes[0]}
