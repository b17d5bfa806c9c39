"""Building a book: leaf after leaf is widened by search, best first, and everything goes on where an earlier run was interrupted.

The folder of a build has a log of all values that were searched for (`train.book.searching`). Everything else follows from the
options and from them: a run that was killed plays the log again, up to where it ends, and searches on from there. So the book does
not depend on who searched, nor on how often it was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

import numpy as np

from reversi_env.atomic_files import write_atomically
from reversi_env.core.threads import core_count
from search.book import Book
from train.book.options import BookOptions
from train.book.searching import LOG, Found, Searcher, Searches
from train.book.tree import Boards, Rows, Tree
from train.cluster.executor import Executor
from train.cluster.pool import Processes
from train.progress import Progress, silent
from train.run import JsonLines, Run

#: The file of a build with the book, which is written last.
BOOK = "book.safetensors"
#: Of all leaves, the first part of this size is widened at a time while they are few.
SHARE_OF_LEAVES = 8


def build(
    options: BookOptions,
    folder: str | PathLike[str],
    *,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Book:
    """Build the book in *folder*, or go on with it there; it is in the file `BOOK` then.

    It depends on the options only. Interrupted in any way, the same call goes on; so does one for more positions. The
    *executor* searches; by default as many processes as there are cores. *progress* is told how many positions there are.
    """
    path, ingredients = Path(folder), options.content_hashes
    executor = executor or Processes(core_count())
    with Run(path, options, ingredients, growing=("positions",)), executor.workers(Searcher, options) as pool:
        tree = grow(options, Searches(pool, JsonLines(path / LOG)), progress)
        book = tree.book(options.margin, options.as_dict() | ingredients)
        write_atomically(path / BOOK, book.to_bytes())
    return book


def grow(options: BookOptions, search: Callable[[Boards, Boards, int], Found], progress: Progress = silent) -> Tree:
    """The tree of a book of as many positions as the options say, by the values that *search* finds for boards and a depth."""
    tree = Tree(options.rules)

    def valued(rows: Rows, depth: int) -> None:
        if rows.size:  # all that comes after the leaves may be known by other orders of moves
            tree.set(rows, *search(tree.own[rows], tree.opp[rows], depth))

    valued(np.zeros(1, np.int64), options.depth)
    while True:
        standing = tree.standing(options.margin, options.loss_plies)
        doubtful = standing.near & ~tree.is_inner & ~tree.is_exact & (tree.depth < options.depth)
        if doubtful.any():
            valued(np.flatnonzero(doubtful), options.depth)
            continue
        count = int(standing.kept.sum())
        progress("positions", min(count, options.positions), options.positions)
        leaves = np.flatnonzero(standing.kept & ~tree.is_inner & ~tree.is_exact)
        if count >= options.positions or not leaves.size:
            return tree
        order = np.lexsort((tree.opp[leaves], tree.own[leaves], standing.cost[leaves]))
        most = min(options.batch, -(-leaves.size // SHARE_OF_LEAVES))
        valued(tree.widen(leaves[order[:most]]), options.first_depth)
