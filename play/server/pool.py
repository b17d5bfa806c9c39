"""`Pool`: the workers, and whose search is next.

**Fair share.** Searches are asked for under a key, a game or a visitor. Each key has used so many seconds of a processor; a new
search starts, in virtual time, where the key's last one ended, or now if that is past, and the earliest start is next. So a
game whose agent thinks for seconds waits for games whose agents answer at once, and not the other way round.

**Short searches travel together** when many wait, a few milliseconds' worth at a time: a message to another process costs as much
as a search to depth 2.

**Long searches never occupy all workers**, where there is more than one.

**Bounded.** A game waits for one search at a time, so that the games' limit is theirs; of visitors' analyses the hall takes only so
many.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import multiprocessing
import queue
import threading
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from play.server import worker

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

#: What a search is charged at least, in seconds, so that small differences between small searches put nobody behind.
LEAST_CHARGE = 0.002
#: Expected seconds of the short searches that are given to a worker together, and how many they may be.
TOGETHER_SECONDS, MOST_TOGETHER = 0.005, 16
#: What a search of an agent not seen yet is expected to take, and how fast expectations change.
UNKNOWN_SECONDS, LEARNING = 0.01, 0.1
#: Seconds beyond its own limit after which a search that does not come back is given up, with its worker. A first
#: compilation takes half a minute on a slow machine.
GIVE_UP_SECONDS = 180.0


class WorkerLost(Exception):  # noqa: N818 - the machine's fault, not the caller's
    """The worker died, or was given up; the search can be asked for again."""


@dataclass
class _Job:
    message: dict[str, Any]
    key: str
    is_long: bool
    future: asyncio.Future[dict[str, Any]]
    start: float = 0.0
    deadline: float = 0.0


class _Process:
    """A worker process, and the thread that waits for its answers."""

    def __init__(self, on_answer: Any, on_end: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=worker.main, args=(theirs,), daemon=True, name="reversi-search")
        self._process.start()
        theirs.close()
        self._on_answer, self._on_end = on_answer, on_end
        threading.Thread(target=self._listen, args=(self._connection,), daemon=True).start()

    def send(self, message: dict[str, Any]) -> None:
        """Give it a job or a stop; small enough never to wait, since the worker always reads."""
        with contextlib.suppress(OSError):
            self._connection.send_bytes(msgspec.json.encode(message))

    def end(self) -> None:
        """Kill it: it holds nothing that is worth saving."""
        self._process.kill()
        self._process.join()

    def _listen(self, connection: Connection) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._on_answer(self, msgspec.json.decode(connection.recv_bytes()))
        connection.close()
        self._on_end(self)


class _Thread:
    """A worker inside the server: for tests, and for machines with little memory. Kernels release the GIL."""

    def __init__(self, on_answer: Any, on_end: Any) -> None:
        self._searcher = worker.Searcher()
        self._jobs: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._on_answer, self._on_end = on_answer, on_end
        threading.Thread(target=self._work, daemon=True, name="reversi-search").start()

    def send(self, message: dict[str, Any]) -> None:
        """Give it a job or a stop."""
        if "stop" in message:
            self._searcher.stop(message["stop"])
        else:
            self._jobs.put(message)

    def end(self) -> None:
        """Let it end after what it does now."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (message := self._jobs.get()) is not None:
            self._on_answer(self, [self._searcher.answer(job) for job in message["jobs"]])


@dataclass
class _Place:
    """A worker with what it does at present, by number."""

    process: Any
    jobs: dict[int, _Job] = field(default_factory=dict)


@dataclass
class Pool:
    """Searches by *workers* processes, or by one thread if that is 0. Use within a running event loop."""

    workers: int
    _places: list[_Place] = field(default_factory=list)
    _short: list[tuple[float, int, _Job]] = field(default_factory=list)
    _long: list[tuple[float, int, _Job]] = field(default_factory=list)
    _finish: dict[str, float] = field(default_factory=dict)
    _now: float = 0.0
    _usual: dict[str, float] = field(default_factory=dict)
    _running_long: int = 0
    _numbers: Any = field(default_factory=itertools.count)
    _closed: bool = False
    searches: int = 0

    def start(self) -> None:
        """Start the workers."""
        self._loop = asyncio.get_running_loop()
        self._places = [_Place(self._worker()) for _ in range(max(1, self.workers))]
        self._watch = self._loop.create_task(self._give_up_the_lost())

    def close(self) -> None:
        """End the workers; searches that wait are cancelled."""
        self._closed = True
        self._watch.cancel()
        waiting = [entry[2] for entry in (*self._short, *self._long)]
        for job in waiting + [job for place in self._places for job in place.jobs.values()]:
            job.future.cancel()
        for place in self._places:
            place.process.end()

    @property
    def waiting(self) -> int:
        """Searches that wait for a worker."""
        return len(self._short) + len(self._long)

    def pids(self) -> list[int | None]:
        """The worker processes' ids."""
        return [place.process._process.pid for place in self._places if isinstance(place.process, _Process)]

    async def search(self, key: str, message: dict[str, Any], *, is_long: bool) -> dict[str, Any]:
        """The answer to a job; cancelling the call stops the search."""
        job = _Job(message, key, is_long, self._loop.create_future())
        job.start = max(self._now, self._finish.get(key, 0.0))
        heapq.heappush(self._long if is_long else self._short, (job.start, next(self._numbers), job))
        self._dispatch()
        try:
            return await job.future
        except asyncio.CancelledError:
            self._stop(job)
            raise

    # --- in the event loop ------------------------------------------------------------------------

    def _worker(self) -> Any:
        def answered(process: Any, answers: list[dict[str, Any]]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has closed
                self._loop.call_soon_threadsafe(self._answered, process, answers)

        def ended(process: Any) -> None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._ended, process)

        return _Process(answered, ended) if self.workers else _Thread(answered, ended)

    def _dispatch(self) -> None:
        for place in self._places:
            if not place.jobs:
                job = self._next()
                if job is None:
                    return
                self._begin(place, [job, *self._together_with(job)])

    def _together_with(self, job: _Job) -> list[_Job]:
        """More short searches for the same worker, as long as others have something to do too."""
        more: list[_Job] = []
        expected = self._expected(job)
        while self._short and not job.is_long and len(more) + 1 < MOST_TOGETHER:
            if len(self._short) < len(self._places) or expected > TOGETHER_SECONDS:
                break
            following = self._next(short=True)
            if following is None:
                break
            more.append(following)
            expected += self._expected(following)
        return more

    def _expected(self, job: _Job) -> float:
        return self._usual.get(job.message.get("spec", ""), UNKNOWN_SECONDS)

    def _next(self, *, short: bool = False) -> _Job | None:
        """The waiting job that starts first in virtual time, among those that may begin; or among the short ones."""
        may_be_long = not short and self._running_long < max(1, len(self._places) - 1)
        while True:
            heaps = [heap for heap in (self._short, self._long if may_be_long else []) if heap]
            if not heaps:
                return None
            heap = min(heaps, key=lambda heap: heap[0][:2])
            _, number, job = heapq.heappop(heap)
            due = self._finish.get(job.key, 0.0)
            if job.future.done():
                continue
            if due > job.start:  # its key has been charged for another search since it was asked for
                job.start = due
                heapq.heappush(heap, (due, number, job))
                continue
            return job

    def _begin(self, place: _Place, jobs: list[_Job]) -> None:
        for job in jobs:
            self._now = max(self._now, job.start)
            self._finish[job.key] = job.start + LEAST_CHARGE
            self._running_long += job.is_long
            self.searches += 1
            job.deadline = monotonic() + (job.message.get("seconds") or 0) + GIVE_UP_SECONDS
            place.jobs[next(self._numbers)] = job
        place.process.send({"jobs": [job.message | {"number": number} for number, job in place.jobs.items()]})

    def _answered(self, process: Any, answers: list[dict[str, Any]]) -> None:
        for place in self._places:
            if place.process is process:
                for answer in answers:
                    job = self._finished(place, answer["number"], max(answer["cpu"], LEAST_CHARGE))
                    self._learn(job, answer["cpu"])
                    if job and not job.future.done():
                        job.future.set_result(answer)
        self._dispatch()

    def _finished(self, place: _Place, number: int, seconds: float) -> _Job | None:
        """Take a job off its place, and charge its key for the search."""
        job = place.jobs.pop(number, None)
        if job is None:
            return None
        self._running_long -= job.is_long
        self._finish[job.key] = max(self._finish.get(job.key, 0.0), job.start + seconds)
        if len(self._finish) > 4096:
            self._finish = {key: at for key, at in self._finish.items() if at > self._now}
        return job

    def _learn(self, job: _Job | None, seconds: float) -> None:
        """What searches of this kind take; a first one loads its kernels, and says nothing about the others."""
        spec = job.message.get("spec") if job else None
        if spec is not None:
            before = self._usual.get(spec, UNKNOWN_SECONDS)
            self._usual[spec] = before + LEARNING * (min(seconds, UNKNOWN_SECONDS) - before)
            if len(self._usual) > 4096:
                self._usual.clear()

    def _stop(self, job: _Job) -> None:
        for place in self._places:
            for number, running in place.jobs.items():
                if running is job:
                    place.process.send({"stop": number})

    def _ended(self, process: Any) -> None:
        """A worker process has died: its searches failed, and another takes its place."""
        for place in self._places:
            if place.process is process and not self._closed:
                for number in list(place.jobs):
                    job = self._finished(place, number, 0.0)
                    if job and not job.future.done():
                        job.future.set_exception(WorkerLost("the search was lost; ask again"))
                process.end()
                place.process = self._worker()
                self._dispatch()

    async def _give_up_the_lost(self) -> None:
        while True:
            await asyncio.sleep(5)
            for place in self._places:
                late = any(monotonic() > job.deadline for job in place.jobs.values())
                if late and isinstance(place.process, _Process):
                    place.process.end()  # which `_ended` hears of
