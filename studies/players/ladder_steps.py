"""How often a selectivity level is as reliable as stated, as a JSON object.

``python -m studies.players.ladder_steps --empties 20 22 --count 300``: positions of the network's own games are solved, and
searched to the end at each level of `search.engine.probcut.SELECTIVITIES`; or, with ``--wthor FOLDER``, positions of tournament
games with 24 empties, whose exact scores the files hold. A value is right if it is no more than two discs from the exact score.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reversi_env import Position, Rules
from reversi_env.notation import read_wthor
from search.engine.probcut import EXACT, SELECTIVITIES
from search.engine.solver import Solver
from search.engine.table import TranspositionTable
from train.fitting.probcut import own_positions

#: Discs by which a value may be off.
NEAR = 2


class Task(NamedTuple):
    """A position by its boards, and its exact score for the side to move; None: to be solved."""

    own: int
    opp: int
    score: int | None


def of_tournaments(folder: Path, count: int, seed: int) -> list[Task]:
    """Positions of the games in the folder's WTHOR files, with the empties at which the files tell the exact score."""
    files = [read_wthor(path).solved_positions() for path in sorted(folder.glob("*.wtb"))]
    own, opp, score = (np.concatenate(column) for column in zip(*files, strict=True))
    chosen = np.random.default_rng(seed).permutation(len(own))[:count]
    return [Task(int(own[i]), int(opp[i]), int(score[i])) for i in chosen]


@lru_cache
def _solver(rules: Rules) -> Solver:
    return Solver(rules, evaluator="network", table=TranspositionTable(64))


def climb(rules: Rules, steps: int, task: Task) -> tuple[list[int], list[int], int]:
    """The values of the first *steps*, the nodes that each took with those before it, and the exact score."""
    solver, position = _solver(rules), Position(rules, task.own, task.opp)
    solver.clear()
    solver.prepare_search()
    values: list[int] = []
    nodes: list[int] = []
    for step in range(steps):
        solution = solver.solve_at(position, step, values[-1] if values else None)
        values.append(solution.score)
        nodes.append(solution.nodes)
    return values, nodes, solver.solve(position).score if task.score is None else task.score


def summary(results: list[tuple[list[int], list[int], int]]) -> list[dict[str, float]]:
    """For each step: its name, the share of values that were near and that were exact, in percent, and mean nodes."""
    values, nodes, scores = (np.array(column) for column in zip(*results, strict=True))
    errors = np.abs(values - scores[:, None])
    return [
        {
            "confidence": SELECTIVITIES[step].confidence,
            "near": round(100 * float((errors[:, step] <= NEAR).mean()), 1),
            "exact": round(100 * float((errors[:, step] == 0).mean()), 1),
            "error": round(float(errors[:, step].mean()), 2),
            "nodes": round(float(nodes[:, step].mean())),
        }
        for step in range(errors.shape[1])
    ]


def main() -> None:
    """Climb, and print what came of it for each number of empties."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.players.ladder_steps", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--empties", type=int, nargs="+", default=[16], help="empty squares of positions of own games")
    parser.add_argument(
        "--wthor", type=Path, help="a folder of tournament games instead, whose files tell the exact scores"
    )
    parser.add_argument("--count", type=int, default=100, help="positions with each number of empties")
    parser.add_argument(
        "--steps", type=int, default=EXACT, choices=range(1, EXACT + 1), help="how many, from the lowest"
    )
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--variant", default="normal")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    rules = Rules(arguments.size, arguments.variant)
    if arguments.wthor is not None:
        tasks = {"tournaments": of_tournaments(arguments.wthor, arguments.count, arguments.seed)}
    else:
        sampled = {
            e: own_positions("network", rules, (e, e), arguments.count, arguments.seed) for e in arguments.empties
        }
        tasks = {str(e): [Task(one.own, one.opp, None) for one in positions] for e, positions in sampled.items()}
    with multiprocessing.get_context("spawn").Pool(arguments.workers) as pool:
        summaries = {
            name: summary(pool.map(partial(climb, rules, arguments.steps), some, chunksize=4))
            for name, some in tasks.items()
        }
    print(json.dumps(summaries, indent=1))


if __name__ == "__main__":
    main()
