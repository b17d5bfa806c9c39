"""Parallel loops over array rows with helper threads that sleep while idle.

A `loop` is a kernel that takes some rows of its arrays at a time (`claim_rows`) until none is left. Run by the calling thread
and some helpers at the same time it shares the rows out, so that a thread whose core another process has taken holds up
nobody for longer than those few rows. What a row becomes depends on the row alone: threads and pieces change nothing.

Numba's own ``prange`` runs on OpenMP, whose threads spin while they wait. That is quick on cores that nobody else wants,
and more than ten times slower than one thread beside a single busy process. Here a helper that finds nothing more to do
sleeps. While help pays it first looks for the next job for some hundred microseconds, a little longer than a batch of
environments stays in Python between two loops; so does the caller while the last rows are at a helper. They look with
the GIL released, and come back to Python when the other one does not need it: two threads that want the GIL at the same
moment cost a sleep and a waking.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import lru_cache
from queue import SimpleQueue
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from reversi_env.compiler.kernel import kernel
from reversi_env.errors import ReversiError, quoted
from reversi_env.kernels.bitboard import ONE

#: Words of a line of the cache: what several threads write to lies in different ones.
LINE = 8
#: Words of a job: rows in all, threads, whether the caller is about to sleep; rows done; from TAKEN on for each thread, a line
#: apart, how many pieces of its rows are taken.
COUNT, THREADS, WAITING = range(3)
DONE, TAKEN = LINE, 2 * LINE
#: Words of a thread that is at it: the rows that it has, whose rows it takes, its role, how often it looks for something to do
#: before it sleeps; how many jobs there were when it began, the rows that it has done, whether it has seen that all are done.
FIRST, LAST, WHOSE, ROLE, LOOKS, SEEN, MADE, ENDED = range(8)
#: Roles. A thread that is alone needs no job: WHOSE is the number of rows then.
ALONE, CALLER, HELPER = range(3)
#: The account of what help saves, in seconds: with how much it begins, and where it is full.
TRIAL, CREDIT = 0.001, 0.01
#: When it is empty the helpers rest so many times as long as they have wasted; twice as long each time on end, but no longer than
#: so many seconds.
PATIENCE, LONGEST_REST = 10, 1.0
#: While help pays, one job in so many is looked at.
AUDIT = 32
#: How often a thread's rows are halved into pieces.
HALVINGS = 5
MOST_THREADS = 1024
#: Looks, whether there is something to do, in some hundred microseconds.
MANY_LOOKS = 80_000
_MANY_LOOKS = np.uint64(MANY_LOOKS)


def core_count() -> int:
    """Cores that this process may use: all of the machine, or those that it was confined to."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        return os.process_cpu_count() or 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# --- words that several threads read and write ----------------------------------------------------


def _word(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Pointer to word ``args[1]`` of the array ``args[0]``."""
    array = context.make_array(signature.args[0])(context, builder, value=args[0])
    return builder.gep(array.data, [args[1]])


@intrinsic
def fetch_add(typing_context: Any, words: Any, index: Any, more: Any) -> Any:
    """Add *more* to a word in one step that no other thread comes between; the word as it was before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _word(context, builder, signature, args), args[2], "seq_cst")

    return types.uint64(words, types.int64, types.uint64), codegen


@intrinsic
def fetch(typing_context: Any, words: Any, index: Any) -> Any:
    """A word as it is now, read from memory every time."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_word(context, builder, signature, args), "seq_cst", 8)

    return types.uint64(words, types.int64), codegen


# --- inside a loop --------------------------------------------------------------------------------


@kernel
def claim_rows(share):
    """Take the next rows of the job, those taken before being done; False if none are left.

    A thread takes its own rows first, then what others have left: in the next loop over the same arrays they are still
    in the cache of its core. After the last row the caller looks for a while whether the others are done, and a helper
    whether there is another job.
    """
    mine, job, jobs_opened = share
    if mine[ROLE] == ALONE:
        mine[LAST], mine[WHOSE] = mine[WHOSE], 0
        return mine[LAST] > 0
    if mine[LAST] == 0:
        mine[SEEN] = fetch_add(jobs_opened, 0, np.uint64(mine[ROLE] == CALLER))
    else:
        mine[MADE] += mine[LAST] - mine[FIRST]
        fetch_add(job, DONE, mine[LAST] - mine[FIRST])
    for _ in range(job[THREADS]):
        if _take_of(mine, job):
            return True
        mine[WHOSE] = (mine[WHOSE] + ONE) % job[THREADS]
    if mine[ROLE] == HELPER:
        _look_for_work(mine, job, jobs_opened)
    else:
        mine[ENDED] = _look_for_the_end(job, mine[LOOKS])
    return False


@kernel
def _take_of(mine, job):
    """Take half of what is left of one thread's rows, at last all of it: few pieces, and small ones at the end."""
    begin = job[COUNT] * mine[WHOSE] // job[THREADS]
    size = job[COUNT] * (mine[WHOSE] + ONE) // job[THREADS] - begin
    while True:
        piece = fetch_add(job, TAKEN + LINE * np.int64(mine[WHOSE]), ONE)
        if piece > HALVINGS:
            return False
        mine[FIRST] = begin + size - (size >> piece)
        mine[LAST] = begin + size - (size >> piece + ONE if piece < HALVINGS else np.uint64(0))
        if mine[FIRST] < mine[LAST]:
            return True


@kernel
def _look_for_work(mine, job, jobs_opened):
    """Return when another job is opened, when the caller wants to sleep until this one is left, or after a while."""
    for _ in range(mine[LOOKS]):
        if fetch(jobs_opened, 0) != mine[SEEN] or fetch(job, WAITING):
            return


@kernel
def _look_for_the_end(job, looks):
    """Whether all rows are done, now or in a while."""
    for _ in range(looks):
        if fetch(job, DONE) == job[COUNT]:
            return True
    return fetch(job, DONE) == job[COUNT]


@kernel
def claimed_rows(share):
    """The rows that were taken last: unsigned numbers, so that numba need not look whether they are negative."""
    return range(share[0][FIRST], share[0][LAST])


class Loop(NamedTuple):
    """A kernel that takes its rows piece by piece, and the number of rows that are worth a thread's while."""

    kernel: Callable
    grain: int

    def __call__(self, count: int, *args: Any, parallel: bool | None = None) -> None:
        """Run over *count* rows: on one thread, on several (*parallel*), or on several if it pays (None)."""
        if parallel is not False and count > 1 and (parallel or count >= 2 * self.grain):
            the_pool().run(self.kernel, count, min(count, max(2, count // self.grain)), args)
        else:
            _run_alone(self.kernel, count, args)


def loop(*, grain: int) -> Callable[[Callable], Loop]:
    """Compile a function ``f(share, *arrays)`` whose body is ``while take(share): for i in taken(share): …``.

    It must write to its own rows only. *grain* rows should be some fifty microseconds of work: waking a thread takes about
    half of that.
    """
    return lambda function: Loop(kernel(function), grain)


# --- who runs it ----------------------------------------------------------------------------------


def _run_alone(run: Callable, count: int, args: tuple) -> None:
    alone = _thread_words(count, ALONE).copy()
    run((alone, alone, alone), *args)


class _Job:
    """One call of a loop, open to helpers until its rows are all taken."""

    __slots__ = ("_inside", "_left", "args", "error", "looks", "run", "threads", "words")

    def __init__(self, run: Callable, count: int, threads: int, looks: int, args: tuple) -> None:
        self.words = _job_words(count, threads).copy()
        self.run, self.args, self.threads, self.looks = run, args, threads, looks
        self._inside: list[None] = []  # a None for every helper that is at it
        self.error: BaseException | None = None

    def lead(self, jobs_opened: np.ndarray) -> None:
        """The caller's part, until all rows are done."""
        mine = _LEADER.copy()
        try:
            self.run((mine, self.words, jobs_opened), *self.args)
        finally:
            if not mine[ENDED]:
                self._wait()

    def lead_timed(self, jobs_opened: np.ndarray) -> float:
        """`lead`, and the seconds that help has saved: what the caller's work would have been for all rows, less the time."""
        mine, ended = _thread_words(0, CALLER).copy(), False
        began, began_work = perf_counter(), thread_time()
        try:
            self.run((mine, self.words, jobs_opened), *self.args)
            work = thread_time() - began_work
            ended = _look_for_the_end(self.words, _MANY_LOOKS)
        finally:
            if not ended:
                self._wait()
        rows = int(mine[MADE])
        return (work * int(self.words[COUNT]) / rows if rows else 0.0) - (perf_counter() - began)

    def help(self, jobs_opened: np.ndarray, number: int) -> None:
        """The part of a helper, which has a *number* from 1 on; it comes back a little later than its work is done."""
        self._inside.append(None)
        try:
            mine = _thread_words(number % self.threads, HELPER, self.looks).copy()
            self.run((mine, self.words, jobs_opened), *self.args)
        except BaseException as error:  # the caller's business
            self.error = error
        finally:
            self._inside.pop()
            if self.words[WAITING]:
                self._left.put(None)

    def _wait(self) -> None:
        """Sleep until the helpers have left. Even Ctrl-C waits: they write to the arrays."""
        self.words[TAKEN:] = HALVINGS + 1  # after an error nobody begins another piece
        self._left: SimpleQueue[None] = SimpleQueue()
        self.words[WAITING] = 1  # whoever is inside now tells when it leaves
        interrupted: BaseException | None = None
        while self._inside:
            try:
                self._left.get()
            except BaseException as error:
                interrupted = error
        if interrupted:
            raise interrupted


@lru_cache(maxsize=256)
def _job_words(count: int, threads: int) -> np.ndarray:
    words = np.zeros(TAKEN + LINE * threads, np.uint64)
    words[[COUNT, THREADS]] = count, threads
    return words


@lru_cache(maxsize=256)
def _thread_words(whose: int, role: int, looks: int = 0) -> np.ndarray:
    return np.array((0, 0, whose, role, looks, 0, 0, 0), np.uint64)


_LEADER = _thread_words(0, CALLER, MANY_LOOKS)


class Pool:
    """Threads that help with the loops of any thread: *threads* with the caller, begun when they are first needed.

    Helpers must earn their keep. On an idle core they do. Beside another process a helper may lose its core in the middle
    of a piece, so that the caller waits some milliseconds for rows that take a tenth of that, or it may be put on the
    caller's own core. So the pool keeps account of what help has saved, by the caller's clock and its own work; when that
    is used up, all loops run on their caller's thread for a while, longer each time that help does not pay.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._openings = np.zeros(1, np.uint64)  # jobs opened so far, for helpers that look for the next one
        self._open: list[_Job] = []
        self._asleep: list[Any] = []  # the locks that helpers sleep on
        self._helpers = 0
        self._starting = threading.Lock()
        self._credit, self._rest, self._rests_until = TRIAL, 0.0, 0.0
        self._runs = 0

    def run(self, run: Any, count: int, threads: int, args: tuple) -> None:
        """Run a loop's kernel over *count* rows on at most *threads* threads, the calling one among them."""
        threads = min(threads, self.threads)
        resting = self._rest and perf_counter() < self._rests_until
        if threads < 2 or resting or not run.overloads:  # one thread is enough to compile it
            _run_alone(run, count, args)
        else:
            self._run_shared(run, count, threads, args)

    def _run_shared(self, run: Callable, count: int, threads: int, args: tuple) -> None:
        pays = self._credit == CREDIT
        job = _Job(run, count, threads, MANY_LOOKS if pays else 0, args)
        self._open.append(job)
        if self._asleep or self._helpers < threads - 1:
            self._wake(threads - 1)
        self._runs += 1
        try:
            if pays and self._runs % AUDIT:  # clocks cost time too
                job.lead(self._openings)
            else:
                self._account(job.lead_timed(self._openings))
        finally:
            self._close(job)
        if job.error is not None:
            raise job.error

    def _account(self, saved: float) -> None:
        credit = min(self._credit + max(saved, -CREDIT), CREDIT)
        if credit < 0:
            self._rest = min(max(PATIENCE * (TRIAL - credit), 2 * self._rest), LONGEST_REST)
            self._rests_until = perf_counter() + self._rest
            credit = TRIAL
        elif credit == CREDIT:
            self._rest = 0.0
        self._credit = credit

    def _wake(self, helpers: int) -> None:
        with self._starting:
            while self._helpers < min(helpers, self.threads - 1):
                number = self._helpers + 1
                try:
                    threading.Thread(target=self._help, args=(number,), name="reversi-loop", daemon=True).start()
                    self._helpers = number
                except RuntimeError:  # no more threads, or the interpreter is about to end
                    self.threads = number
        for _ in range(helpers):
            try:
                self._asleep.pop().release()
            except IndexError:  # the others are awake
                return

    def _help(self, number: int) -> None:
        """What a helper does all its life."""
        bell = threading.Lock()
        bell.acquire()
        while True:
            try:
                job = self._open[-1]
            except IndexError:
                self._sleep(bell)
                continue
            job.help(self._openings, number)
            self._close(job)
            del job  # its arrays may be large

    def _sleep(self, bell: Any) -> None:
        """Sleep until the bell rings; not if a job was opened just before it could."""
        self._asleep.append(bell)
        if self._open:
            try:
                self._asleep.remove(bell)
            except ValueError:  # it will ring
                pass
            else:
                return
        bell.acquire()

    def _close(self, job: _Job) -> None:
        """Whoever finds no more rows to take tells the others."""
        if job in self._open:
            try:  # noqa: SIM105 (suppress() takes a microsecond, at every loop)
                self._open.remove(job)
            except ValueError:  # another was quicker
                pass


_pool: Pool | None = None


def the_pool() -> Pool:
    """The process's threads, as many as it has cores (or ``REVERSI_THREADS``)."""
    global _pool
    if _pool is None:
        _pool = Pool(_wanted_threads())
    return _pool


def _wanted_threads() -> int:
    wanted = os.environ.get("REVERSI_THREADS")
    if not wanted:
        return core_count()
    if not wanted.isdecimal() or not 1 <= int(wanted) <= MOST_THREADS:
        raise ReversiError(f"REVERSI_THREADS={quoted(wanted)}: expected a whole number from 1 to {MOST_THREADS}")
    return int(wanted)


def _forget_threads() -> None:
    """A child process has only the thread that forked it."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
