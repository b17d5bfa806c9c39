"""Solved books: all positions up to some ply, with their exact scores under perfect play.

Only the positions of the last ply are solved. All other scores follow from them by negamax, so that no two scores of a book
contradict each other. The folder of a run has a log of the solved positions for every number of plies.
"""

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
from train.book.build import BOOK, LoggedSearches, SearchJob, SearchValues
from train.book.options import SolvedBookOptions
from train.book.tree import Rows, Tree
from train.jobs.logs import JsonLines, Progress, no_progress
from train.jobs.processes import Executor, LocalExecutor
from train.jobs.run import Run

#: Positions per line of the log.
BATCH = 64
#: Transposition table of a worker, in MiB. It is not cleared between positions, which are often siblings.
TABLE_MIB = 512.0


class PositionSolver:
    """Runs jobs; every result starts with the number of the job. Scores are exact, so they depend on the position alone."""

    def __init__(self, options: SolvedBookOptions) -> None:
        self._rules = options.rules
        strongest = strongest_evaluator(self._rules)
        evaluator = strongest if strongest == "network" else None
        self._solver = Solver(self._rules, evaluator=evaluator, table=TranspositionTable(TABLE_MIB))

    def __call__(self, job: SearchJob) -> tuple[int, SearchValues]:
        """Return scores in units (`UNITS_PER_DISC`), and the empty squares of every position."""
        positions = [Position(self._rules, *boards) for boards in zip(job.own.tolist(), job.opp.tolist(), strict=True)]
        scores = [UNITS_PER_DISC * self._solver.solve(position).score for position in positions]
        return job.number, (np.array(scores, np.int64), np.array([one.empties for one in positions], np.int64))


def solve_book(
    options: SolvedBookOptions,
    folder: str | PathLike[str],
    *,
    executor: Executor | None = None,
    progress: Progress = no_progress,
) -> Book:
    """Build the solved book in *folder*, or resume there, and return it.

    The same call, also with more plies, resumes an interrupted run. The *executor* (default: a process per core) solves.
    *progress* is called with the number of positions of the last ply.
    """
    path, rules = Path(folder), options.rules
    executor = executor or LocalExecutor(core_count())
    with Run(path, options, extendable=("plies",)), executor.workers(PositionSolver, options) as pool:
        tree, last = _positions(options)
        search = LoggedSearches(pool, JsonLines(path / f"scores-{options.plies}.jsonl"))
        for start in range(0, last.size, BATCH):
            progress("positions", start, last.size)
            rows = last[start : start + BATCH]
            tree.set(rows, *search(tree.own[rows], tree.opp[rows], rules.square_count))
        progress("positions", last.size, last.size)
        book = tree.book(2.0 * rules.square_count, options.as_dict() | {SOLVED: options.plies})
        write_atomically(path / BOOK, book.to_bytes())
    return book


def _positions(options: SolvedBookOptions) -> tuple[Tree, Rows]:
    """Return all positions up to the last ply, scored where the game is over, and the rows that have to be solved."""
    rules, tree = options.rules, Tree(options.rules)
    rows = np.zeros(1, np.int64)
    for ply in range(options.plies + 1):
        own, opp = tree.own[rows], tree.opp[rows]
        over = batch.is_over(own, opp, rules)
        scores = UNITS_PER_DISC * batch.final_scores(own[over], opp[over], rules).astype(np.int64)
        tree.set(rows[over], scores, rules.square_count - np.bitwise_count(own[over] | opp[over]).astype(np.int64))
        rows = rows[~over]
        if ply == options.plies or not rows.size:
            break
        rows = tree.expand_leaves(rows)
    return tree, rows
