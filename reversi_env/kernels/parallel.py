"""Parallel loops over array rows with helper threads that sleep while idle.

A `loop` is a kernel that claims chunks of its rows (`claim_rows`) until none is left. The calling thread and some helpers run
it at the same time, so that a thread whose core another process has taken delays the others by one chunk at most. The result
of a row depends on the row alone, not on threads or chunks.

Numba's own ``prange`` runs on OpenMP, whose threads spin while they wait: beside a single busy process it is more than ten
times slower than one thread. Here a helper without rows polls for the next job for some hundred microseconds, a little longer
than a batch of environments stays in Python between two loops, and then sleeps. So does the caller while helpers finish the
last rows. They poll with the GIL released: two threads that want the GIL at the same moment cost a sleep and a waking.
"""

import os
import threading
from collections.abc import Callable
from functools import cache, lru_cache
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from reversi_env.compiler.kernel import kernel
from reversi_env.errors import ReversiError, quoted
from reversi_env.kernels.bitboard import ONE

#: Words of a job: first unclaimed row, number of rows, rows per chunk, whether the caller sleeps until helpers leave; on another
#: cache line the number of finished rows.
NEXT, COUNT, CHUNK, WAITING, DONE = 0, 1, 2, 3, 8
#: Words of a thread: the rows that it has claimed, its number of polls for the next job, the number of jobs opened before it began.
FIRST, LAST, SPINS, JOBS_SEEN = range(4)
CHUNKS_PER_THREAD = 8
#: Polls in some hundred microseconds.
MAX_SPINS = 80_000
MAX_THREADS = 1024


def core_count() -> int:
    """Cores that this process may use: all of the machine, or those that it was confined to."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        return os.process_cpu_count() or 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _word(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, value=args[0])
    return builder.gep(array.data, [args[1]])


@intrinsic
def fetch_add(typing_context: Any, words: Any, index: Any, more: Any) -> Any:
    """Add *more* to a word atomically and return the word as it was before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _word(context, builder, signature, args), args[2], "seq_cst")

    return types.uint64(words, types.int64, types.uint64), codegen


@intrinsic
def fetch(typing_context: Any, words: Any, index: Any) -> Any:
    """Return a word that other threads may write, always from memory."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_word(context, builder, signature, args), "seq_cst", 8)

    return types.uint64(words, types.int64), codegen


@kernel
def claim_rows(share):
    """Claim the next rows of the job; the rows claimed before are finished. False if none are left.

    Before a helper leaves it polls for another job, until the caller sleeps or for a while.
    """
    mine, job, jobs_opened = share
    if mine[LAST]:
        fetch_add(job, DONE, mine[LAST] - mine[FIRST])
    else:
        mine[JOBS_SEEN] = fetch(jobs_opened, 0)
    mine[FIRST] = fetch_add(job, NEXT, job[CHUNK])
    mine[LAST] = min(mine[FIRST] + job[CHUNK], job[COUNT])
    if mine[FIRST] < job[COUNT]:
        return True
    for _ in range(mine[SPINS]):
        if fetch(jobs_opened, 0) != mine[JOBS_SEEN] or fetch(job, WAITING):
            break
    return False


@kernel
def claimed_rows(share):
    """Return the rows that were claimed last, as unsigned integers, so that numba need not handle negative ones."""
    return range(share[0][FIRST], share[0][LAST])


@kernel
def _spin_until_done(job, spins):
    for _ in range(spins):
        if fetch(job, DONE) == job[COUNT]:
            return True
    return False


class Loop(NamedTuple):
    """A kernel that claims its rows chunk by chunk, and the minimum number of rows per additional thread."""

    kernel: Callable
    grain: int

    def __call__(self, count: int, *args: Any, parallel: bool | None = None) -> None:
        """Run over *count* rows: on one thread, on several (*parallel*), or on several if it pays (None)."""
        if parallel is not False and count > 1 and (parallel or count >= 2 * self.grain):
            shared_pool().run(self.kernel, count, min(count, max(2, count // self.grain)), args)
        else:
            _run_alone(self.kernel, count, args)


def loop(*, grain: int) -> Callable[[Callable], Loop]:
    """Compile a function ``f(share, *arrays)`` whose body is ``while claim_rows(share): for i in claimed_rows(share): …``.

    It must write to its own rows only. *grain* rows should be about fifty microseconds of work: waking a thread takes half of
    that.
    """
    return lambda function: Loop(kernel(function), grain)


def _run_alone(run: Callable, count: int, args: tuple) -> None:
    run((_CALLER.copy(), _job_words(count, 1).copy(), _JOBS_OPENED), *args)


@lru_cache(maxsize=256)
def _job_words(count: int, chunks: int) -> np.ndarray:
    words = np.zeros(DONE + 1, np.uint64)
    words[[COUNT, CHUNK]] = count, -(-count // chunks)
    return words


_CALLER, _HELPER = np.array([(0, 0, 0, 0), (0, 0, MAX_SPINS, 0)], np.uint64)
_JOBS_OPENED = np.zeros(1, np.uint64)


class _Job:
    """One call of a loop. When it has ended it refers to no arrays: helpers may find it in the queue later."""

    __slots__ = ("_inside", "_left", "args", "error", "run", "words")

    def __init__(self, run: Callable, count: int, threads: int, args: tuple) -> None:
        self.run, self.words = run, _job_words(count, threads * CHUNKS_PER_THREAD).copy()
        self.args: tuple | None = args
        self._inside: list[None] = []  # a None for every helper that may have rows
        self._left: SimpleQueue[None] = SimpleQueue()
        self.error: BaseException | None = None

    def run_as_caller(self, args: tuple) -> None:
        done = False
        try:
            self.run((_CALLER.copy(), self.words, _JOBS_OPENED), *args)
            done = _spin_until_done(self.words, MAX_SPINS)
        finally:
            self.args = None
            if not done:
                self._wait()
        if self.error is not None:
            raise self.error

    def help(self) -> None:
        self._inside.append(None)
        try:
            if (args := self.args) is not None:
                self.run((_HELPER.copy(), self.words, _JOBS_OPENED), *args)
        except BaseException as error:  # raised again by the caller
            self.error = error
        finally:
            self._inside.pop()
            self._left.put(None)

    def _wait(self) -> None:
        """Sleep until the helpers have left. Even Ctrl-C waits: they write to the arrays."""
        self.words[NEXT] = self.words[COUNT]  # after an error no thread claims another chunk
        self.words[WAITING] = 1
        interrupted: BaseException | None = None
        while self._inside:
            try:
                self._left.get()
            except BaseException as error:
                interrupted = error
        if interrupted:
            raise interrupted


class Pool:
    """Threads that help with the loops of any thread: *threads* with the caller, started when they are first needed."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._helpers = 0
        self._starting = threading.Lock()

    def run(self, run: Any, count: int, threads: int, args: tuple) -> None:
        """Run a loop's kernel over *count* rows on at most *threads* threads, the calling one among them."""
        helpers = min(threads, self.threads) - 1
        if self._helpers < helpers:
            self._start(helpers)
            helpers = min(helpers, self._helpers)
        if helpers < 1 or not run.overloads:  # one thread is enough to compile it
            _run_alone(run, count, args)
            return
        job = _Job(run, count, helpers + 1, args)
        _JOBS_OPENED[0] += ONE
        for _ in range(helpers):
            self._jobs.put(job)
        job.run_as_caller(args)

    def _start(self, helpers: int) -> None:
        with self._starting:
            while self._helpers < helpers:
                try:
                    threading.Thread(target=self._help, name="reversi-loop", daemon=True).start()
                except RuntimeError:  # no more threads, or the interpreter is about to end
                    self.threads = self._helpers + 1
                    return
                self._helpers += 1

    def _help(self) -> None:
        while True:
            self._jobs.get().help()


@cache
def shared_pool() -> Pool:
    """Return the process's threads, as many as it has cores (or ``REVERSI_THREADS``)."""
    threads = os.environ.get("REVERSI_THREADS")
    if not threads:
        return Pool(core_count())
    if not threads.isdecimal() or not 1 <= int(threads) <= MAX_THREADS:
        raise ReversiError(f"REVERSI_THREADS={quoted(threads)}: expected an integer from 1 to {MAX_THREADS}")
    return Pool(int(threads))


if hasattr(os, "register_at_fork"):  # a child process has only the thread that forked it
    os.register_at_fork(after_in_child=shared_pool.cache_clear)
