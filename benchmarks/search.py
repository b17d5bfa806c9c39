"""Speed of the search: a node signature that must not change by accident, midgame and endgame rates, and the FFO problems."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import as_file, files
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from reversi_env import Position, Rules, batch
from reversi_env.notation import read_obf
from reversi_env.notation.obf import Problem
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.probcut import MARGIN
from search.engine.solver import Solver, solve_batch
from search.engine.table import TranspositionTable

EVALUATOR = "six-factor"
SIGNATURE_DEPTH = 6
#: Depth to which one thread and several are compared: half a second a position for one.
THREADS_DEPTH = 20
#: Seed of the fixed positions. Its streams are those that seed 2026 had before seeds were mixed.
POSITIONS_SEED = 0x4C81_7627_A243_5B40


def midgame_positions(
    count: int = 16, rules: Rules | None = None, shortest: int = 12, longest: int = 40
) -> list[Position]:
    """Positions after *shortest* to *longest* random plies, the same every time."""
    rules = rules or Rules()
    plies = shortest + np.arange(count) % (longest - shortest + 1)
    own, opp = batch.random_positions(count, plies, rules, seed=POSITIONS_SEED)
    return [Position(rules, int(a), int(b)) for a, b in zip(own, opp, strict=True)]


def ffo_problems() -> list[Problem]:
    with as_file(files("reversi_env").joinpath("data/ffo-40-44.obf")) as path:
        return list(read_obf(path))


def signature() -> int:
    """Nodes of fixed searches of fixed positions: midgame to depth 6, and exact solutions; any change of the search shows here."""
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


def midgame_rate(evaluator: str = EVALUATOR, depth: int = 8) -> float:
    """Nodes a second of fixed-depth searches with an evaluator on one thread; emptying the table in between is not counted."""
    engine = Engine(evaluator)
    best = 0.0
    for _ in range(3):
        nodes, seconds = 0, 0.0
        for position in midgame_positions():
            engine.clear()
            began = perf_counter()
            nodes += engine.search(position, Limits(depth=depth, empties_exact=0)).nodes
            seconds += perf_counter() - began
        best = max(best, nodes / seconds)
    return best


def ffo(threads: int = 1, order: str | None = None) -> list[dict[str, Any]]:
    """FFO problems 40 to 44, each solved with an empty table of 256 MiB; an evaluator may help to order the moves."""
    results = []
    solver = Solver(threads=threads, table=TranspositionTable(256), evaluator=order)
    solver.load_kernels()
    for number, problem in enumerate(ffo_problems(), start=40):
        solver.table.clear()
        solution = solver.solve(problem.position)
        solved = {"score": solution.score, "nodes": solution.nodes, "seconds": solution.seconds}
        results.append({"problem": number} | solved | {"correct": solution.score == problem.best_score})
    return results


def midgame_to_depth(threads: int = 1) -> list[dict[str, Any]]:
    """Midgame positions searched to THREADS_DEPTH with the network, pruned as under a clock, each with an empty table."""
    engine = Engine("network", threads=threads)
    engine.set_probcut(MARGIN)
    results = []
    for position in midgame_positions():
        engine.clear()
        result = engine.search(position, Limits(depth=THREADS_DEPTH, empties_exact=0))
        results.append({"nodes": result.nodes, "seconds": result.seconds})
    return results


def in_turns(search: Callable[[int], list[dict[str, Any]]], threads: int, rounds: int) -> dict[str, Any]:
    """*search*, which takes a number of threads, on one and on *threads* in turns.

    ``one`` and ``every`` are what it found in the last round, with the medians of all rounds for seconds and nodes; ``speedup``
    and ``nodes_ratio`` are those of their sums, of one thread to all in seconds, of all to one in nodes.
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


def solved_per_second(solve: Callable[..., Any], own: np.ndarray, opp: np.ndarray) -> float:
    """Positions that *solve* solves a second; its kernels are compiled before."""
    solve(own[:64], opp[:64], Rules())
    began = perf_counter()
    solve(own, opp, Rules())
    return own.size / (perf_counter() - began)


def labels_per_second(empties: int, count: int) -> float:
    """Positions solved a second on all cores: random play down to *empties*."""
    return solved_per_second(solve_batch, *batch.random_positions(count, 60 - empties, seed=empties))
