"""`search_batch`: arrays of positions searched to a fixed depth over any evaluator, on all cores."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env import Rules
from reversi_env.batch import checked_boards
from reversi_env.errors import check_integer
from reversi_env.kernels.parallel import core_count
from reversi_env.rules import checked_rules
from search.engine.probcut import checked_margin, load_probcut
from search.engine.table import TranspositionTable
from search.engine.threads import checked_threads, make_thread_states, run_in_threads
from search.evaluators.registry import Evaluator, get_evaluator
from search.kernels.evaluate import UNIT
from search.kernels.midgame import search_many

#: Positions that a thread takes at a time.
CHUNK = 64
#: Table of each thread, in MiB: small enough for the processor's cache.
TABLE_MIB = 1.0
MAX_DEPTH = 60


def search_batch(
    own: ArrayLike,
    opp: ArrayLike,
    evaluator: Evaluator | str,
    rules: Rules | None = None,
    depth: int = 4,
    *,
    probcut: float = 0.0,
    threads: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> NDArray[np.float32]:
    """Return values in discs for the side to move, of arrays of positions searched to *depth* plies.

    A pass does not reduce the depth. A position whose game always ends within the depth gets its exact score; depth 0 is the static
    evaluation. *probcut* is the margin of selective search in standard deviations; the evaluator needs coefficients of
    `reversi train probcut`. *progress* is called with the number of positions searched so far; if it raises, or on Ctrl-C, the
    search ends. *threads* is by default the number of cores. The values do not depend on the order of the positions or on threads.

    >>> own, opp = np.array([0x0000000810000000], np.uint64), np.array([0x0000001008000000], np.uint64)
    >>> search_batch(own, opp, "six-factor", depth=4).tolist()
    [-0.296875]
    """
    rules = checked_rules(rules)
    own, opp = checked_boards(own, opp, rules)
    check_integer("depth", depth, 0, MAX_DEPTH)
    count = checked_threads(core_count() if threads is None else threads)
    evaluator = get_evaluator(evaluator)  # kept: its record may point to its weights
    job = _Job(own, opp, evaluator, rules, depth, probcut)
    with evaluator.during_search(job.stop):
        run_in_threads(job.run, job.chunks(), count, progress, job.stop)
    return (job.values / UNIT).astype(np.float32)


class _Job:
    """One call of `search_batch`: its positions, and a record and a table for each thread."""

    def __init__(
        self, own: np.ndarray, opp: np.ndarray, evaluator: Evaluator, rules: Rules, depth: int, probcut: float
    ) -> None:
        self.own, self.opp, self.rules, self.depth = own, opp, rules, depth
        self.evaluator, self.nets = evaluator, evaluator.record(rules)
        self.margin = checked_margin(probcut, evaluator.probcut(rules))
        self.values = np.zeros(own.size, np.int64)
        self.empties = rules.square_count - np.bitwise_count(own | opp).astype(np.int64)
        self._local = threading.local()
        self._all_states: list[np.ndarray] = []
        self._stopped = False

    def chunks(self) -> Iterator[np.ndarray]:
        """Return the indices of positions in chunks of equally many empties, most empties first."""
        order = np.argsort(-self.empties, kind="stable")
        borders = np.flatnonzero(np.diff(self.empties[order])) + 1
        for group in np.split(order, borders):
            for start in range(0, group.size, CHUNK):
                yield group[start : start + CHUNK]

    def run(self, rows: np.ndarray) -> int:
        """Search the positions of *rows* and return their number."""
        thread_states = self._thread_states(int(self.empties[rows[0]]))
        for some in (rows,) if not self.margin else rows[:, None]:
            values = np.zeros(some.size, np.int64)
            for depth in self._depths():
                search_many(thread_states, self.nets, self.own[some], self.opp[some], depth, values)
            self.values[some] = values
            if self.margin:  # selective results must not reach the next position
                self._forget()
        return rows.size

    def _depths(self) -> Iterable[int]:
        """Return the depths to search in turn: a selective search gets its move ordering from shallower ones."""
        return range(self.depth % 2, self.depth + 1, 2) if self.margin else (self.depth,)

    def stop(self) -> None:
        """Make the threads return as soon as they can; unfinished values stay 0."""
        self._stopped = True
        for thread_states in self._all_states:
            thread_states["stop"] = 1

    def _thread_states(self, empties: int) -> np.ndarray:
        local = self._local
        if not hasattr(local, "thread_states"):
            local.table, local.empties = TranspositionTable(TABLE_MIB), empties
            local.thread_states = make_thread_states(self.rules)
            local.table.attach(local.thread_states, "estimates")
            if self.margin:
                load_probcut(local.thread_states, self.evaluator, self.rules)
                local.thread_states["cut_margin"] = self.margin
            self._all_states.append(local.thread_states)
            # read after the append: a stop either finds this record in the list or is seen here
            local.thread_states["stop"] = self._stopped
        if local.empties != empties:
            self._forget()
            local.empties = empties
        return local.thread_states

    def _forget(self) -> None:
        self._local.table.words()[:] = 0
