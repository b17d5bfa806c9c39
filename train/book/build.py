"""Building a book: leaf after leaf is widened by search, best first, and everything goes on where an earlier run was interrupted.

The folder of a build has a log of all values that were searched for (`train.book.build`). Everything else follows from the
options and from them: a run that was killed plays the log again, up to where it ends, and searches on from there. So the book does
not depend on who searched, nor on how often it was interrupted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reversi_env import Position
from reversi_env.kernels.parallel import core_count
from reversi_env.storage.atomic import write_atomically
from reversi_env.storage.checksummed import HASH_DIGITS
from search.agents.book import UNITS_PER_DISC, Book
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.probcut import MARGIN
from train.book.options import BookOptions, SearchOptions
from train.book.tree import Boards, Rows, Tree
from train.jobs.logs import JsonLines, Progress, no_progress
from train.jobs.processes import Executor, LocalExecutor, WorkerPool, in_order
from train.jobs.run import Run
from train.labels.jobs import job_size

if TYPE_CHECKING:
    pass


#: The file of a build with the book, which is written last.
BOOK = "book.safetensors"
#: Of all leaves, the first part of this size is widened at a time while they are few.
SHARE_OF_LEAVES = 8


def build(
    options: BookOptions,
    folder: str | PathLike[str],
    *,
    executor: Executor | None = None,
    progress: Progress = no_progress,
) -> Book:
    """Build the book in *folder*, or go on with it there; it is in the file `BOOK` then.

    It depends on the options only. Interrupted in any way, the same call goes on; so does one for more positions. The
    *executor* searches; by default as many processes as there are cores. *progress* is told how many positions there are.
    """
    path, content_hashes = Path(folder), options.content_hashes
    executor = executor or LocalExecutor(core_count())
    with Run(path, options, content_hashes, extendable=("positions",)), executor.workers(Searcher, options) as pool:
        tree = grow(options, LoggedSearches(pool, JsonLines(path / LOG)), progress)
        book = tree.book(options.margin, options.as_dict() | content_hashes)
        write_atomically(path / BOOK, book.to_bytes())
    return book


def grow(
    options: BookOptions, search: Callable[[Boards, Boards, int], SearchValues], progress: Progress = no_progress
) -> Tree:
    """The tree of a book of as many positions as the options say, by the values that *search* finds for boards and a depth."""
    tree = Tree(options.rules)

    def valued(rows: Rows, depth: int) -> None:
        if rows.size:  # all that comes after the leaves may be known by other orders of moves
            tree.set(rows, *search(tree.own[rows], tree.opp[rows], depth))

    valued(np.zeros(1, np.int64), options.depth)
    while True:
        standing = tree.propagate(options.margin, options.loss_plies)
        doubtful = standing.near & ~tree.is_inner & ~tree.is_exact & (tree.depth < options.depth)
        if doubtful.any():
            valued(np.flatnonzero(doubtful), options.depth)
            continue
        count = int(standing.in_book.sum())
        progress("positions", min(count, options.positions), options.positions)
        leaves = np.flatnonzero(standing.in_book & ~tree.is_inner & ~tree.is_exact)
        if count >= options.positions or not leaves.size:
            return tree
        order = np.lexsort((tree.opp[leaves], tree.own[leaves], standing.cost[leaves]))
        most = min(options.batch, -(-leaves.size // SHARE_OF_LEAVES))
        valued(tree.expand_leaves(leaves[order[:most]]), options.first_depth)


# --- searches with a log ---------------------------------------------------------------------------


#: The file of a run with what was searched for.
LOG = "searches.jsonl"
#: Table of a searching engine, in MiB: it begins every position with an empty one.
TABLE = 2.0
#: Most positions of one job: a second or so.
MAX_ROWS = 32
#: Values and depths of some positions.
SearchValues = tuple[NDArray[np.int64], NDArray[np.int64]]


class SearchJob(NamedTuple):
    """Search these positions to a depth."""

    number: int
    own: Boards
    opp: Boards
    depth: int


class Searcher:
    """Searches pieces; every result begins with the piece's number. A value depends on the position and the depth alone."""

    def __init__(self, options: SearchOptions) -> None:
        self._rules, evaluator = options.rules, options.searches_with
        self._engine = Engine(evaluator, self._rules, megabytes=TABLE)
        if evaluator.probcut(self._rules):
            self._engine.set_probcut(MARGIN)

    def __call__(self, job: SearchJob) -> tuple[int, SearchValues]:
        """Values of a piece in units (`UNITS_PER_DISC`), and the plies of the searches; all empties where one is exact."""
        found = [self._search(Position(self._rules, own, opp), job.depth) for own, opp in _pairs(job)]
        value, depth = (np.array(column, np.int64).reshape(-1) for column in zip(*found, strict=True))
        return job.number, (value, depth)

    def _search(self, position: Position, depth: int) -> tuple[int, int]:
        self._engine.clear()
        results = [self._engine.search(position, Limits(depth=plies)) for plies in (depth - 1, depth) if plies]
        if results[-1].exact:
            return round(results[-1].value * UNITS_PER_DISC), position.empties
        return round(sum(result.value for result in results) / len(results) * UNITS_PER_DISC), depth


def _pairs(job: SearchJob) -> Iterator[tuple[int, int]]:
    return zip(job.own.tolist(), job.opp.tolist(), strict=True)


class LoggedSearches:
    """Values from a *log* as long as it has some, then from the workers, and into the log: a line for each time that it is asked.

    Without a log nothing is remembered.
    """

    def __init__(self, pool: WorkerPool, log: JsonLines | None = None) -> None:
        self._pool, self._log = pool, log
        self._known = iter([] if log is None else [*enumerate(log.read(), 1)])

    def __call__(self, own: Boards, opp: Boards, depth: int) -> SearchValues:
        """Values of positions in `UNITS_PER_DISC` parts of a disc, by searches to a depth, and how deep they were."""
        if self._log is None:
            return self._searched(own, opp, depth)
        if (line := next(self._known, None)) is not None:
            try:
                return _read(line[1], own, opp, depth)
            except (LookupError, TypeError, ValueError) as error:
                raise self._log.damaged(line[0], error) from None
        value, depths = self._searched(own, opp, depth)
        exact = np.flatnonzero(depths != depth)
        told = {"depth": depth, "value": value.tolist(), "exact": exact.tolist(), "plies": depths[exact].tolist()}
        self._log.append(told | {"hash": _hash(own, opp, told)})
        return value, depths

    def _searched(self, own: Boards, opp: Boards, depth: int) -> SearchValues:
        rows = job_size(len(own), self._pool.size, 1, MAX_ROWS)
        cuts = [slice(start, start + rows) for start in range(0, len(own), rows)]
        jobs = (SearchJob(number, own[cut], opp[cut], depth) for number, cut in enumerate(cuts))
        found = list(in_order(self._pool.results(jobs)))
        value, depths = (np.concatenate([part[column] for part in found]) for column in (0, 1))
        return value, depths


def _read(line: Any, own: Boards, opp: Boards, depth: int) -> SearchValues:
    """What a line of the log says, if it is of these positions and that depth."""
    told = {name: line[name] for name in ("depth", "value", "exact", "plies")}
    if line["hash"] != _hash(own, opp, told) or told["depth"] != depth:
        raise ValueError("other positions, or other values")
    depths = np.full(len(own), depth, np.int64)
    depths[np.array(told["exact"], np.int64)] = told["plies"]
    return np.array(told["value"], np.int64), depths


def _hash(own: Boards, opp: Boards, told: dict[str, Any]) -> str:
    """Of the positions that were asked for and of what was told."""
    digest = hashlib.sha256(own.tobytes() + opp.tobytes())
    digest.update(repr([told[name] for name in sorted(told)]).encode())
    return digest.hexdigest()[:HASH_DIGITS]
