"""Executors, which run jobs in workers, and the executor that uses processes of this machine (`train.jobs.ray` uses a cluster).

A job must be idempotent: its result depends only on the job and on the arguments of its worker. A job whose worker dies can
therefore be given to another worker, and the results do not depend on the executor.
"""

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
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

from reversi_env import ReversiError

Job = TypeVar("Job")
Result = TypeVar("Result")
#: Makes a worker: a callable from a job to its result. Its method ``close``, if it has one, is called at the end.
WorkerFactory = Callable[..., Callable[[Any], Any]]
#: ("result", the result), ("refusal", the message of a `ReversiError`) or ("failure", a traceback).
JobOutcome = tuple[str, Any]
Device = Literal["cpu", "cuda", "any"]
#: Number of times that a job is given to another worker before the job counts as the cause of the crashes.
RETRIES = 3
#: Seconds in which idle workers must end.
SHUTDOWN_SECONDS = 5.0


class WorkerPool(Protocol):
    """Workers made by the same call."""

    @property
    def size(self) -> int:
        """Number of jobs that run at the same time, at present."""
        ...

    def results(self, jobs: Iterator[Any]) -> Iterator[Any]:
        """Yield the results of all *jobs* in any order; the next job is taken when a worker is free."""
        ...


class Executor(Protocol):
    """Makes pools of workers."""

    def workers(
        self, make: WorkerFactory, *arguments: Any, cpus: int = 1, device: Device = "cpu"
    ) -> AbstractContextManager[WorkerPool]:
        """Return workers ``make(*arguments)`` with *cpus* CPUs each, which end with the context or with the executor's.

        *device*: ``cuda`` gives each a GPU too; with ``any`` there are workers with and without a GPU.
        """
        ...


def in_order(results: Iterable[tuple[int, Result]]) -> Iterator[Result]:
    """Yield numbered results in the order of their numbers, from 0 on.

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


def run_job(worker: Callable[[], Callable[[Any], Any]], job: Any) -> JobOutcome:
    """Run a job in the worker that *worker* returns. Errors are returned as text, since exceptions may not be picklable."""
    try:
        return "result", worker()(job)
    except ReversiError as error:
        return "refusal", str(error)
    except Exception:
        return "failure", traceback.format_exc()


def unwrap(outcome: JobOutcome) -> Any:
    """Return the result of a job, or raise its error."""
    kind, content = outcome
    if kind == "refusal":
        raise ReversiError(content)
    if kind == "failure":
        raise RuntimeError(f"a worker failed:\n{content}")
    return content


def close(worker: Any) -> None:
    """Call the worker's method ``close``, if it has one."""
    if hasattr(worker, "close"):
        worker.close()


class ProcessPool(Generic[Job, Result]):
    """*count* processes with a worker ``make(*arguments)`` each, all of it picklable; with 0, jobs run in this process."""

    def __init__(self, count: int, make: WorkerFactory, *arguments: Any) -> None:
        self._worker = make(*arguments) if count == 0 else None
        self._make, self._arguments = make, arguments
        self._processes: dict[Connection, Any] = {}
        self._jobs: dict[Connection, tuple[Job, int]] = {}  # of busy workers, with the number of workers lost
        try:
            with _interrupts_held(start=count > 0):
                for number in range(count):
                    self._start(f"worker {number}")
        except BaseException:  # also Ctrl-C; `__exit__` is not called, since the context was not entered
            self._end(self._processes)
            raise

    @property
    def size(self) -> int:
        return max(1, len(self._processes))

    def results(self, jobs: Iterator[Job]) -> Iterator[Result]:
        if self._worker is not None:
            yield from map(self._worker, jobs)
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
                    outcome = ready.recv()
                except (EOFError, OSError):  # the process died
                    self._replace(ready)
                    continue
                del self._jobs[ready]
                yield unwrap(outcome)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all workers, busy ones at once: their results are not needed any more."""
        close(self._worker)
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
        with suppress(OSError):  # a worker that died while idle is detected when its result is read
            connection.send(job)

    def _replace(self, connection: Connection) -> None:
        """Start another process for the job of one that died."""
        process, (job, lost) = self._processes.pop(connection), self._jobs.pop(connection)
        connection.close()
        process.join(SHUTDOWN_SECONDS)
        if lost == RETRIES:
            raise ReversiError(
                f"{process.name} ended with status {process.exitcode} in the middle of a job, "
                f"as did {lost} others with the same job: expected a job that does not crash its workers"
            )
        with _interrupts_held(start=True):
            connection = self._start(process.name)
        self._send(connection, job, lost + 1)

    def _end(self, busy: Container[Connection]) -> None:
        for connection, process in self._processes.items():
            if connection in busy:
                process.kill()
            connection.close()  # which ends an idle worker
        for process in self._processes.values():
            process.join(SHUTDOWN_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()


@dataclass(frozen=True)
class LocalExecutor:
    """*count* processes of this machine; with 0, jobs run in this process."""

    count: int

    def workers(
        self, make: WorkerFactory, *arguments: Any, cpus: int = 1, device: Device = "cpu"
    ) -> AbstractContextManager[WorkerPool]:
        """Return the processes; *cpus* and *device* have no effect."""
        return ProcessPool(self.count, make, *arguments)


@contextmanager
def _interrupts_held(*, start: bool) -> Iterator[None]:
    """Delay Ctrl-C in this thread until the end, and block it in processes that are started here."""
    if not start or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it would let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection, make: WorkerFactory, arguments: tuple[Any, ...]) -> None:
    """Run jobs until the other end of the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        # Signals that arrived earlier are ignored, too, and child programs start with the usual mask.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    worker = cache(partial(make, *arguments))
    with suppress(EOFError, OSError):
        while True:
            connection.send(run_job(worker, connection.recv()))
    if worker.cache_info().currsize:
        close(worker())


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
