"""Solved books: all positions up to some ply, with their exact scores under perfect play.

Only the positions of the last ply are solved. All other scores follow from them by negamax, so that no two scores of a book
contradict each other. A file in the folder of a run has every solved position.
"""

from contextlib import nullcontext
from os import PathLike
from pathlib import Path

import numpy as np

from models.evaluator import strongest_evaluator
from reversi_env import Position, batch
from reversi_env.kernels.parallel import core_count
from reversi_env.storage.atomic import write_atomically
from search.agents.book import SOLVED, UNITS_PER_DISC, Book
from search.engine.solver import Solver
from search.engine.table import TranspositionTable
from search.exact_scores import Bounds, BoundsFile, Key
from train.book.build import BOOK
from train.book.options import SolvedBookOptions
from train.book.tree import Rows, Tree
from train.jobs.logs import Progress, no_progress
from train.jobs.processes import Executor, LocalExecutor
from train.jobs.run import RUN, Run

#: The solved positions of a run.
SCORES = "scores.txt"
#: Transposition table of a worker, in MiB. It is not cleared between positions.
TABLE_MIB = 512.0


class PositionSolver:
    """Solves positions. A score depends on the position alone."""

    def __init__(self, options: SolvedBookOptions) -> None:
        self._rules = options.rules
        strongest = strongest_evaluator(self._rules)
        evaluator = strongest if strongest == "network" else None
        self._solver = Solver(self._rules, evaluator=evaluator, table=TranspositionTable(TABLE_MIB))

    def __call__(self, key: Key) -> tuple[Key, Bounds]:
        most = self._rules.square_count
        return key, self._solver.narrow(Position(self._rules, *key), (-most, most))


def solve_book(
    options: SolvedBookOptions,
    folder: str | PathLike[str],
    *,
    executor: Executor | None = None,
    progress: Progress = no_progress,
) -> Book:
    """Build the solved book in *folder*, or resume there, and return it.

    The same call, also with more plies or another start, resumes an interrupted run. The *executor* (default: a process per core)
    solves. *progress* is called with the number of positions of the last ply.
    """
    path, rules = Path(folder), options.rules
    executor = executor or LocalExecutor(core_count())

    def begun() -> bool:
        return (path / RUN).exists() or (path / SCORES).exists()

    with Run(path, options, changeable=("start",), extendable=("plies",), begun=begun):
        (tree, last), file = _positions(options), BoundsFile(path / SCORES)
        positions = list(zip(tree.own[last].tolist(), tree.opp[last].tolist(), strict=True))
        solved = {key: lower for key, (lower, upper) in file.read_new() if lower == upper}
        missing = [key for key in positions if key not in solved]
        progress("positions", len(positions) - len(missing), len(positions))
        with executor.workers(PositionSolver, options) if missing else nullcontext() as pool:
            for done, (key, bounds) in enumerate(pool.results(iter(missing)) if pool else (), 1):
                file.append([(key, bounds)])
                solved[key] = bounds[0]
                progress("positions", len(positions) - len(missing) + done, len(positions))
        scores = np.array([solved[key] for key in positions], np.int64)
        tree.set(last, UNITS_PER_DISC * scores, tree.empties[last])
        book = tree.book(2.0 * rules.square_count, options.as_dict() | {SOLVED: options.plies})
        write_atomically(path / BOOK, book.to_bytes())
    return book


def _positions(options: SolvedBookOptions) -> tuple[Tree, Rows]:
    """Return all positions up to the last ply, scored where the game is over, and the rows that have to be solved."""
    rules, tree = options.rules, Tree(options.rules, options.starts)
    rows = np.arange(len(tree))
    for ply in range(options.plies + 1):
        own, opp = tree.own[rows], tree.opp[rows]
        over = batch.is_over(own, opp, rules)
        scores = UNITS_PER_DISC * batch.final_scores(own[over], opp[over], rules).astype(np.int64)
        tree.set(rows[over], scores, tree.empties[rows[over]])
        rows = rows[~over]
        if ply == options.plies or not rows.size:
            break
        rows = tree.expand_leaves(rows)
    return tree, rows
