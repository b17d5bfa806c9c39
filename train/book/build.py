"""Building a book by best-first search: the best leaves are expanded, and all positions are searched.

The folder of a build has a log of all searched values; everything else follows from them and the options. An interrupted build
reads the log again and continues the search, so that the book does not depend on the workers or on interruptions.
"""

import hashlib
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

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
from train.jobs.shipping import build_id
from train.labels.jobs import job_size

#: The files of a build: the book, which is written last, and the log of the searches.
BOOK, LOG = "book.safetensors", "searches.jsonl"
#: Leaves per leaf that is expanded at a time, while there are few.
LEAVES_PER_EXPANSION = 8
#: Transposition table of a worker, in MiB: it is cleared for every position.
TABLE_MIB = 2.0
#: Maximum positions of a job: about a second.
MAX_ROWS = 32
#: Values and depths of positions.
SearchValues = tuple[NDArray[np.int64], NDArray[np.int64]]


def build(
    options: BookOptions,
    folder: str | PathLike[str],
    *,
    executor: Executor | None = None,
    progress: Progress = no_progress,
) -> Book:
    """Build the book in *folder*, or resume there, and return it; it depends on the options only.

    The same call, also with more positions, resumes an interrupted build. The *executor* (default: a process per core) searches.
    *progress* is called with the number of positions.
    """
    path, content_hashes = Path(folder), options.content_hashes
    executor = executor or LocalExecutor(core_count())
    with Run(path, options, content_hashes, extendable=("positions",)), executor.workers(Searcher, options) as pool:
        tree = grow(options, LoggedSearches(pool, JsonLines(path / LOG)), progress)
        book = tree.book(options.margin, options.as_dict() | content_hashes | {"code": build_id()})
        write_atomically(path / BOOK, book.to_bytes())
    return book


def grow(
    options: BookOptions, search: Callable[[Boards, Boards, int], SearchValues], progress: Progress = no_progress
) -> Tree:
    """Return the tree of a book with the values of *search*, a function of boards and a depth."""
    tree = Tree(options.rules)

    def set_values(rows: Rows, depth: int) -> None:
        if rows.size:  # all children of the leaves may be transpositions
            tree.set(rows, *search(tree.own[rows], tree.opp[rows], depth))

    set_values(np.zeros(1, np.int64), options.depth)
    while True:
        costs = tree.propagate(options.margin, options.loss_plies)
        doubtful = costs.near & ~tree.is_inner & ~tree.is_exact & (tree.depth < options.depth)
        if doubtful.any():
            set_values(np.flatnonzero(doubtful), options.depth)
            continue
        count = int(costs.in_book.sum())
        progress("positions", min(count, options.positions), options.positions)
        leaves = np.flatnonzero(costs.in_book & ~tree.is_inner & ~tree.is_exact)
        if count >= options.positions or not leaves.size:
            return tree
        order = np.lexsort((tree.opp[leaves], tree.own[leaves], costs.cost[leaves]))
        expanded = min(options.batch, -(-leaves.size // LEAVES_PER_EXPANSION))
        set_values(tree.expand_leaves(leaves[order[:expanded]]), options.first_depth)


class SearchJob(NamedTuple):
    """Search positions to a depth."""

    number: int
    own: Boards
    opp: Boards
    depth: int


class Searcher:
    """Runs jobs; every result starts with the number of the job. A value depends on the position and the depth alone."""

    def __init__(self, options: SearchOptions) -> None:
        self._rules, evaluator = options.rules, options.search_evaluator
        self._engine = Engine(evaluator, self._rules, megabytes=TABLE_MIB)
        if evaluator.probcut(self._rules):
            self._engine.set_probcut(MARGIN)

    def __call__(self, job: SearchJob) -> tuple[int, SearchValues]:
        """Return values in units (`UNITS_PER_DISC`), and the plies of the searches: all empties where a value is exact."""
        pairs = zip(job.own.tolist(), job.opp.tolist(), strict=True)
        results = [self._search(Position(self._rules, own, opp), job.depth) for own, opp in pairs]
        value, depth = (np.array(column, np.int64).reshape(-1) for column in zip(*results, strict=True))
        return job.number, (value, depth)

    def _search(self, position: Position, depth: int) -> tuple[int, int]:
        self._engine.clear()
        results = [self._engine.search(position, Limits(depth=plies)) for plies in (depth - 1, depth) if plies]
        if results[-1].exact:
            return round(results[-1].value * UNITS_PER_DISC), position.empties
        return round(sum(result.value for result in results) / len(results) * UNITS_PER_DISC), depth


class LoggedSearches:
    """Values from a *log* while it has unread lines, then from the workers, with a new line in the log per call."""

    def __init__(self, pool: WorkerPool, log: JsonLines | None = None) -> None:
        self._pool, self._log = pool, log
        self._logged = iter([] if log is None else [*enumerate(log.read(), 1)])

    def __call__(self, own: Boards, opp: Boards, depth: int) -> SearchValues:
        """Return values of positions in units (`UNITS_PER_DISC`), by searches to a depth, and the plies of each search."""
        if self._log is None:
            return self._search(own, opp, depth)
        if (line := next(self._logged, None)) is not None:
            try:
                return _read(line[1], own, opp, depth)
            except (LookupError, TypeError, ValueError) as error:
                raise self._log.damaged(line[0], error) from None
        value, depths = self._search(own, opp, depth)
        exact = np.flatnonzero(depths != depth)
        record = {"depth": depth, "value": value.tolist(), "exact": exact.tolist(), "plies": depths[exact].tolist()}
        self._log.append(record | {"hash": _hash(own, opp, record)})
        return value, depths

    def _search(self, own: Boards, opp: Boards, depth: int) -> SearchValues:
        rows = job_size(len(own), self._pool.size, 1, MAX_ROWS)
        cuts = [slice(start, start + rows) for start in range(0, len(own), rows)]
        jobs = (SearchJob(number, own[cut], opp[cut], depth) for number, cut in enumerate(cuts))
        results = list(in_order(self._pool.results(jobs)))
        value, depths = (np.concatenate([result[column] for result in results]) for column in (0, 1))
        return value, depths


def _read(line: Any, own: Boards, opp: Boards, depth: int) -> SearchValues:
    """Return the values of a line of the log; a line for other positions or another depth raises."""
    record = {name: line[name] for name in ("depth", "value", "exact", "plies")}
    if line["hash"] != _hash(own, opp, record) or record["depth"] != depth:
        raise ValueError("other positions, or other values")
    depths = np.full(len(own), depth, np.int64)
    depths[np.array(record["exact"], np.int64)] = record["plies"]
    return np.array(record["value"], np.int64), depths


def _hash(own: Boards, opp: Boards, record: dict[str, Any]) -> str:
    digest = hashlib.sha256(own.tobytes() + opp.tobytes())
    digest.update(repr([record[name] for name in sorted(record)]).encode())
    return digest.hexdigest()[:HASH_DIGITS]
