"""Records of search threads, and `ThreadGroup`: the threads of one search.

Threads that search one tree repeat about an eighth of each other's nodes. If other processes occupy the cores, two threads on one
core are slower than one thread. The caller's thread therefore measures the CPU time of the process, suspends threads that have no
core, and resumes them after a while.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from queue import SimpleQueue
from time import perf_counter, process_time
from typing import TypeVar

import numpy as np

from reversi_env import Rules
from reversi_env.errors import check_integer
from search.engine.probcut import EXACT_LEVEL
from search.engine.timer import StopSwitch
from search.kernels.abdada import BUSY_WORDS
from search.kernels.table import SHALLOW_WORDS
from search.kernels.thread_state import THREAD_STATE

#: Seconds between two measurements of the CPU time.
SAMPLE_SECONDS = 0.1
#: A thread keeps running if it gets at least this share of a core.
MIN_CORE_SHARE = 0.2
#: Seconds before suspended threads are tried again; doubled after each failure, up to the maximum.
BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 0.5, 2.0


Chunk = TypeVar("Chunk")


class CoreUsage:
    """Estimates how many of *threads* the operating system runs in parallel."""

    def __init__(self, threads: int) -> None:
        self.threads = self.awake = threads
        self._seconds = self._used = 0.0
        self._backoff, self._retry_at = BACKOFF_SECONDS, 0.0

    def add_sample(self, seconds: float, used: float) -> None:
        """Add a sample: the process *used* so many CPU seconds in *seconds* of wall time."""
        self._seconds, self._used = self._seconds + seconds, self._used + used
        if self._seconds < SAMPLE_SECONDS:
            return
        cores = max(1, int(self._used / self._seconds + 1 - MIN_CORE_SHARE))
        self._seconds = self._used = 0.0
        if cores < self.awake:
            self.awake, self._retry_at = cores, perf_counter() + self._backoff
            self._backoff = min(2 * self._backoff, MAX_BACKOFF_SECONDS)
        elif self.awake == self.threads:
            self._backoff = BACKOFF_SECONDS
        elif perf_counter() > self._retry_at:
            self.awake = self.threads


class ThreadGroup:
    """The threads of a search, one for each record of *thread_states*."""

    def __init__(self, thread_states: np.ndarray, switch: StopSwitch) -> None:
        self._thread_states, self._switch, self._core_usage = thread_states, switch, CoreUsage(len(thread_states))
        self._may_run = [threading.Event() for _ in thread_states]
        self._ended = threading.Event()

    def run(self, search: Callable[[int], bool]) -> None:
        """Run ``search(k)``, which returns whether it was completed, for every record in its own thread.

        When one of them is completed, or the first one ends, the others are stopped. A search that is stopped to suspend its
        thread is called again later. All threads have ended when this returns.
        """
        self._search = search
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._ended.clear()
        try:
            self._resume(self._core_usage.awake)
            self._watch()
        finally:
            self._end()
            for thread in self._threads:
                thread.join()
        if self._error:
            raise self._error

    def _run_member(self, k: int) -> None:
        try:
            while not self._search(k) and k and not self._must_end(k):
                self._may_run[k].wait()
        except BaseException as error:
            self._error = error
        self._end()

    def _must_end(self, k: int) -> bool:
        thread = self._thread_states[k]
        return bool(self._ended.is_set() or self._switch.requested or thread["nodes"] > thread["node_limit"])

    def _end(self) -> None:
        self._ended.set()
        self._switch.halt()
        for event in self._may_run:
            event.set()

    def _watch(self) -> None:
        usage, then, used = self._core_usage, perf_counter(), process_time()
        while not self._ended.wait(SAMPLE_SECONDS):
            now, used_now, awake = perf_counter(), process_time(), usage.awake
            usage.add_sample(now - then, used_now - used)
            then, used = now, used_now
            if usage.awake < awake:
                self._suspend(usage.awake)
            elif usage.awake > awake:
                self._resume(usage.awake)

    def _suspend(self, awake: int) -> None:
        for event in self._may_run[awake:]:
            event.clear()
        self._thread_states["stop"][awake:] = 1
        if self._ended.is_set():  # the events set by `_end` may have been cleared
            self._end()

    def _resume(self, awake: int) -> None:
        for k in range(1, awake):
            if not self._may_run[k].is_set():
                self._thread_states["stop"][k] = 0
        if self._ended.is_set() or self._switch.requested:  # these flags may have been set by a stop
            self._switch.halt()
        for event in self._may_run[:awake]:
            event.set()
        for k in range(len(self._threads), awake):
            thread = threading.Thread(target=self._run_member, args=(k,))
            thread.start()
            self._threads.append(thread)


NO_NODE_LIMIT = 1 << 62
#: More empties than any board has.
NEVER = 99


def make_thread_states(rules: Rules, threads: int = 1, dtype: np.dtype = THREAD_STATE) -> np.ndarray:
    """Return a record for each thread: `THREAD_STATE`, or *dtype*, which has more fields."""
    thread_states = np.zeros(threads, dtype)
    thread_states["playable"] = rules.playable
    thread_states["square_count"] = rules.square_count
    thread_states["sign"] = rules.sign
    thread_states["node_limit"] = NO_NODE_LIMIT
    thread_states["probcut_slope"] = thread_states["end_slope"] = 1.0
    thread_states["selectivity"] = EXACT_LEVEL
    thread_states["rank_empties"] = NEVER
    corners = [0, rules.size - 1, rules.square_count - rules.size, rules.square_count - 1]
    thread_states["corners"] = sum(1 << rules.square_of(action) for action in corners)
    thread_states["corner_reply"] = 1 if rules.sign > 0 else 0
    return thread_states


def attach_shallow_tables(thread_states: np.ndarray) -> np.ndarray:
    """Attach a shallow table to each record and return their memory, which must live as long as the records."""
    rows = np.zeros((len(thread_states), SHALLOW_WORDS), np.uint64)
    thread_states["shallow_table"] = [row.ctypes.data for row in rows]
    return rows


@contextmanager
def sharing(thread_states: np.ndarray) -> Iterator[None]:
    """Share one table of ABDADA marks between the threads within the context."""
    marks = np.zeros(BUSY_WORDS, np.uint64)
    thread_states["busy"] = marks.ctypes.data
    try:
        yield
    finally:
        thread_states["busy"] = 0


def checked_threads(threads: int) -> int:
    """Return *threads*, or raise a `ReversiError`."""
    check_integer("threads", threads, 1, 1024)
    return threads


def request_stop(thread_states: np.ndarray) -> None:
    """Make the kernels of these records return as soon as they can."""
    thread_states["stop"] = 1


def run_in_threads(
    run: Callable[[int, Chunk], int],
    chunks: Iterable[Chunk],
    thread_states: np.ndarray,
    progress: Callable[[int], None],
) -> None:
    """Call ``run(k, chunk)`` for every chunk, in a thread for each record *k*, and *progress* with the sum of its results so far.

    If either raises, or on Ctrl-C, all threads are stopped.
    """
    done, free = 0, SimpleQueue[int]()
    for k in range(len(thread_states)):
        free.put(k)

    def run_with_free_record(chunk: Chunk) -> int:
        k = free.get()
        try:
            return run(k, chunk)
        finally:
            free.put(k)

    with ThreadPoolExecutor(len(thread_states)) as pool:
        try:
            for future in as_completed([pool.submit(run_with_free_record, chunk) for chunk in chunks]):
                done += future.result()
                progress(done)
        finally:
            request_stop(thread_states)
            pool.shutdown(cancel_futures=True)
