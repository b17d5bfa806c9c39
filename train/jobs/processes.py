"""What a job is, and who does it: processes of this machine (`train.jobs.processes`), or a Ray cluster (`train.jobs.ray`).

A job must be idempotent: its result depends on the job and on what its worker was made of, not on who does it, when, or how often.
That is why a job whose worker dies is simply given to another, and why the results do not depend on the executor.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, Protocol, TypeVar

from reversi_env import ReversiError

Result = TypeVar("Result")
#: Makes a worker: a callable from a job to its result. A method ``close``, if it has one, ends it.
Make = Callable[..., Callable[[Any], Any]]
#: ("result", what came out), ("refusal", a `ReversiError`'s words) or ("failure", a traceback).
Answer = tuple[str, Any]
#: A job is given to another worker so often before it is taken to be what kills them.
RETRIES = 3


class WorkerPool(Protocol):
    """Workers that are all made alike."""

    @property
    def size(self) -> int:
        """Jobs that are done at the same time, as far as is known now."""
        ...

    def results(self, jobs: Iterator[Any]) -> Iterator[Any]:
        """The results of all *jobs*, as they come; a job is asked for when there is somebody to do it."""
        ...


class Executor(Protocol):
    """Has pools of workers."""

    def workers(self, make: Make, *arguments: Any, cpus: int = 1) -> AbstractContextManager[WorkerPool]:
        """Workers ``make(*arguments)`` that use so many CPUs each; they end with the context, or with the executor's."""
        ...


def in_order(results: Iterable[tuple[int, Result]]) -> Iterator[Result]:
    """Numbered results in the order of their numbers, from 0 on; those that come too early wait.

    >>> list(in_order([(2, "c"), (0, "a"), (1, "b")]))
    ['a', 'b', 'c']
    """
    waiting: dict[int, Result] = {}
    number = 0
    for place, result in results:
        waiting[place] = result
        while number in waiting:
            yield waiting.pop(number)
            number += 1


# --- both ends of the wire ------------------------------------------------------------------------


def answer(worker: Callable[[], Callable[[Any], Any]], job: Any) -> Answer:
    """What a worker, made at the first job, says to one: never an exception, which might not travel."""
    try:
        return "result", worker()(job)
    except ReversiError as error:
        return "refusal", str(error)
    except Exception:
        return "failure", traceback.format_exc()


def opened(said: Answer) -> Any:
    """The result in an answer; what was raised there is raised here."""
    kind, content = said
    if kind == "refusal":
        raise ReversiError(content)
    if kind == "failure":
        raise RuntimeError(f"a worker failed:\n{content}")
    return content


def close(worker: Any) -> None:
    """End a worker that has something to end."""
    if hasattr(worker, "close"):
        worker.close()


# --- worker processes ------------------------------------------------------------------------------


Job = TypeVar("Job")
#: Seconds that idle workers are given to end by themselves.
FAREWELL_SECONDS = 5.0


class Workers(Generic[Job, Result]):
    """*count* processes, each with its own worker ``make(*arguments)``: a callable from a job to a result.

    All of it must be picklable. A worker with a method ``close`` is closed at the end. With *count* 0 the jobs are done here.
    """

    def __init__(self, count: int, make: Callable[..., Callable[[Job], Result]], *arguments: Any) -> None:
        self._here = make(*arguments) if count == 0 else None
        self._make, self._arguments = make, arguments
        self._processes: dict[Connection, Any] = {}
        self._jobs: dict[Connection, tuple[Job, int]] = {}  # of those who are busy, and how often they were lost
        try:
            with _interrupts_held(start=count > 0):
                for number in range(count):
                    self._start(f"worker {number}")
        except BaseException:  # Ctrl-C among them: nobody will leave a context that was never entered
            self._end(self._processes)
            raise

    @property
    def size(self) -> int:
        """Jobs that are done at the same time."""
        return max(1, len(self._processes))

    def results(self, jobs: Iterator[Job]) -> Iterator[Result]:
        """The results of all *jobs*, as they come; a job is asked for when there is somebody to do it."""
        if self._here is not None:
            yield from map(self._here, jobs)
            return
        while True:
            for connection in [*self._processes]:
                if connection not in self._jobs and (job := next(jobs, None)) is not None:
                    self._send(connection, job, 0)
            if not self._jobs:
                return
            for ready in wait(list(self._jobs)):
                assert isinstance(ready, Connection)
                try:
                    said = ready.recv()
                except (EOFError, OSError):  # before its answer, or in the middle of it
                    self._replace(ready)
                    continue
                del self._jobs[ready]
                yield opened(said)

    def __enter__(self) -> Workers[Job, Result]:
        return self

    def __exit__(self, *_: object) -> None:
        """Let idle workers end, and end those that are still at a job that nobody waits for any more."""
        close(self._here)
        self._end(self._jobs)

    def _start(self, name: str) -> Connection:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, self._make, self._arguments), name=name, daemon=True)
        process.start()
        theirs.close()
        self._processes[ours] = process
        return ours

    def _send(self, connection: Connection, job: Job, lost: int) -> None:
        self._jobs[connection] = job, lost
        with suppress(OSError):  # it died while it was idle: that is seen when its answer is read
            connection.send(job)

    def _replace(self, connection: Connection) -> None:
        """Another process in the place of one that died, for the same job."""
        process, (job, lost) = self._processes.pop(connection), self._jobs.pop(connection)
        connection.close()
        process.join(FAREWELL_SECONDS)
        if lost == RETRIES:
            raise ReversiError(
                f"{process.name} ended with status {process.exitcode} in the middle of a job, "
                f"as did {lost} others at the same one: expected a job that workers survive"
            )
        with _interrupts_held(start=True):
            fresh = self._start(process.name)
        self._send(fresh, job, lost + 1)

    def _end(self, busy: Container[Connection]) -> None:
        for connection, process in self._processes.items():
            if connection in busy:
                process.kill()
            connection.close()  # an idle worker ends by it
        for process in self._processes.values():
            process.join(FAREWELL_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()


@dataclass(frozen=True)
class Processes:
    """So many processes of this machine; with 0 the jobs are done in this one."""

    count: int

    def workers(self, make: Make, *arguments: Any, cpus: int = 1) -> AbstractContextManager[WorkerPool]:
        """The processes."""
        return Workers(self.count, make, *arguments)


@contextmanager
def _interrupts_held(*, start: bool) -> Iterator[None]:
    """Hold Ctrl-C back in this thread, and in processes started meanwhile; here it arrives at the end."""
    if not start or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it would let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection, make: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...]) -> None:
    """What a worker process does: jobs, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        # what came until now is ignored too; programs that we start get a usual mask
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    made = cache(partial(make, *arguments))
    with suppress(EOFError, OSError):
        while True:
            connection.send(answer(made, connection.recv()))
    if made.cache_info().currsize:
        close(made())


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
