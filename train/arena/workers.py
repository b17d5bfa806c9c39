"""A few processes that do jobs one after the other, and that no death of ours leaves behind.

The processes are spawned, not forked: kernels run threads, and a fork copies locks but not the threads that hold them. Ctrl-C is
for the parent alone, which then ends the workers: they are started with it blocked, and ignore it from then on. A worker whose
parent has gone, in whatever way, ends at once.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Generic, TypeVar

from reversi_env import ReversiError

Job = TypeVar("Job")
Result = TypeVar("Result")
#: Seconds that idle workers are given to end by themselves.
FAREWELL_SECONDS = 5.0


class Workers(Generic[Job, Result]):
    """*count* processes, each with its own worker ``make(*arguments)``: a callable from a job to a result.

    All of it must be picklable. A worker with a method ``close`` is closed at the end. With *count* 0 the jobs are done here.
    """

    def __init__(self, count: int, make: Callable[..., Callable[[Job], Result]], *arguments: Any) -> None:
        self._here = make(*arguments) if count == 0 else None
        self._processes: dict[Connection, Any] = {}
        self._busy: set[Connection] = set()
        context = multiprocessing.get_context("spawn")
        try:
            with _interrupts_held(start=count > 0):
                for number in range(count):
                    ours, theirs = context.Pipe()
                    process = context.Process(
                        target=_work, args=(theirs, make, arguments), name=f"worker {number}", daemon=True
                    )
                    process.start()
                    theirs.close()
                    self._processes[ours] = process
        except BaseException:  # Ctrl-C among them: nobody will leave a context that was never entered
            self._busy.update(self._processes)
            self.__exit__(None, None, None)
            raise

    def results(self, jobs: Iterator[Job]) -> Iterator[Result]:
        """The results of all *jobs*, as they come; a job is asked for when there is somebody to do it."""
        if self._here is not None:
            yield from map(self._here, jobs)
            return
        while True:
            for connection in self._processes:
                if connection not in self._busy and (job := next(jobs, None)) is not None:
                    self._busy.add(connection)
                    connection.send(job)
            if not self._busy:
                return
            for ready in wait(list(self._busy)):
                assert isinstance(ready, Connection)
                result = self._received(ready)
                self._busy.remove(ready)
                yield result

    def __enter__(self) -> Workers[Job, Result]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let idle workers end, and end those that are still at a job that nobody waits for any more."""
        _close(self._here)
        for connection, process in self._processes.items():
            if connection in self._busy:
                process.kill()
            connection.close()  # an idle worker ends by it
        for process in self._processes.values():
            process.join(FAREWELL_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()

    def _received(self, connection: Connection) -> Any:
        try:
            kind, content = connection.recv()
        except EOFError:
            process = self._processes[connection]
            process.join(FAREWELL_SECONDS)
            raise ReversiError(f"{process.name} ended with status {process.exitcode} in the middle of a job") from None
        if kind == "result":
            return content
        if kind == "refusal":
            raise ReversiError(content)
        raise RuntimeError(f"a worker failed:\n{content}")


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
    if hasattr(
        signal, "pthread_sigmask"
    ):  # what came until now is ignored too; programs that we start get a usual mask
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    worker = None
    with suppress(EOFError, OSError):
        while True:
            job = connection.recv()
            try:
                worker = worker or make(*arguments)
                answer = ("result", worker(job))
            except ReversiError as error:
                answer = ("refusal", str(error))
            except Exception:
                answer = ("failure", traceback.format_exc())
            connection.send(answer)
    _close(worker)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _close(worker: Any) -> None:
    if hasattr(worker, "close"):
        worker.close()
