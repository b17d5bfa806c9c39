"""`Pool`: the workers, and the order of searches.

**Fair queueing.** A search belongs to a client (an address) and to a game. Its start in virtual time is the end of the client's
earlier searches, by the processor time that they used, or the present if that is later; the earliest start is next. So no address
can delay the others, however many games it has. Searches of one client are ordered by game in the same way.

**Searches of a few milliseconds come first**, and are sent in batches when many wait, since a message to another process costs as
much as a search to depth 2.

**Long searches never occupy all workers**, if there are several. The first search of an agent counts as long, since its kernels
may have to be compiled. The same holds for the searches of one client while another client is present.

**Limits.** A game waits for one search at a time, so the limit of games limits them; the hall limits analyses and transcripts.
"""

import asyncio
import contextlib
import itertools
import logging
import multiprocessing
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Any

import msgspec

from play.server.workers.worker import Answer, Job, search_jobs, worker_process

log = logging.getLogger("reversi.server")

#: Minimum charge of a search, in seconds, so that small differences between short searches have no effect.
MIN_CHARGE = 0.002
#: Expected seconds of a batch of short searches, and their maximum number.
BATCH_SECONDS, MAX_BATCH = 0.005, 16
#: Expected seconds of an agent's first search, and the rate of the moving average of later ones.
UNKNOWN_SECONDS, EMA_RATE = 0.01, 0.1
#: Seconds after its last search for which a client counts as present.
PRESENT_SECONDS = 10.0
#: Agents that have nothing to compile, and "" for jobs that read games.
NOTHING_TO_COMPILE = frozenset({"random", "greedy", ""})
#: Seconds beyond the limit of a search after which its worker is killed. A first compilation takes half a minute on a slow machine.
WORKER_TIMEOUT_SECONDS = 180.0


class WorkerLost(Exception):  # noqa: N818 - the machine's fault, not the caller's
    """The worker died or was killed; the search can be repeated."""


class _FairShares:
    """The virtual time at which the last searches of each name ended."""

    def __init__(self) -> None:
        self.now = 0.0
        self._ends: dict[str, float] = {}

    def start(self, name: str, requested: float) -> float:
        """Return the start of a search that was *requested* at this time; others of the name may have been charged since."""
        return max(requested, self._ends.get(name, 0.0))

    def begin(self, name: str, start: float) -> None:
        """Begin a search with that *start*; it is charged the minimum at once."""
        self.now = max(self.now, start)
        self._ends[name] = self.start(name, start) + MIN_CHARGE

    def charge(self, name: str, start: float, seconds: float) -> None:
        """Charge the rest of a search with that *start*, which took *seconds*."""
        self._ends[name] = self.start(name, start) + max(0.0, seconds - MIN_CHARGE)
        if len(self._ends) > 4096:
            self._ends = {each: at for each, at in self._ends.items() if at > self.now}


@dataclass
class _Search:
    """A waiting or running search: its job, client and game, and its start in virtual time by both."""

    job: Job
    client: str
    game: str
    future: asyncio.Future[Answer]
    start: float = 0.0
    game_start: float = 0.0
    deadline: float = 0.0

    @cached_property
    def name(self) -> str:
        return self.job.agent.partition(":")[0]


class Worker:
    """A worker process, its running searches by number, and a thread that receives answers.

    In tests and on machines with little memory it can be a thread of the server.
    """

    def __init__(self, is_process: bool, on_answer: Callable[..., None], on_end: Callable[..., None]) -> None:
        self.searches: dict[int, _Search] = {}
        self._on_answer, self._on_end = on_answer, on_end
        self.process: BaseProcess | None = None
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        if is_process:
            self.process = context.Process(target=worker_process, args=(theirs,), daemon=True, name="reversi-search")
            self.process.start()
            theirs.close()
        else:
            threading.Thread(target=search_jobs, args=(theirs,), daemon=True, name="reversi-search").start()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def pid(self) -> int | None:
        """The process id; None for a thread."""
        return self.process.pid if self.process else None

    def send(self, message: list[Job] | int) -> None:
        """Send jobs, or the number of a job to stop. It never blocks, since the worker always reads."""
        with contextlib.suppress(OSError):
            self._connection.send_bytes(msgspec.json.encode(message))

    def end(self) -> None:
        """Kill a process, which has nothing to save, or let a thread end after its current job."""
        if self.process is None:
            self.send([])
        else:
            self.process.kill()
            self.process.join()

    def _listen(self) -> None:
        decode = msgspec.json.Decoder(list[Answer]).decode
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._on_answer(self, decode(self._connection.recv_bytes()))
        self._connection.close()
        self._on_end(self)


@dataclass
class Pool:
    """Searches by *workers* processes, or by one thread if that is 0. Use it within a running event loop."""

    workers: int
    searches: int = 0
    closed: bool = False
    _workers: list[Worker] = field(default_factory=list)
    _waiting: dict[int, _Search] = field(default_factory=dict)
    _clients: _FairShares = field(default_factory=_FairShares)
    _games: _FairShares = field(default_factory=_FairShares)
    _usual: dict[str, float] = field(default_factory=dict)
    _ready: set[str] = field(default_factory=lambda: set(NOTHING_TO_COMPILE))
    #: Time of the last search of each client, the latest last.
    _present: dict[str, float] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._workers = [self._new_worker() for _ in range(max(1, self.workers))]
        self._watch = self._loop.create_task(self._kill_hung_workers())

    def close(self) -> None:
        """End the workers and cancel all searches."""
        self.closed = True
        self._watch.cancel()
        for search in [*self._waiting.values(), *self._running()]:
            search.future.cancel()
        for worker in self._workers:
            worker.end()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def pids(self) -> list[int | None]:
        """Return the process ids of the workers; None for a thread."""
        return [worker.pid for worker in self._workers]

    async def search(self, client: str, job: Job, game: str | None = None) -> Answer:
        """Return the answer to a job of *client*, in one of its games or in none; cancelling the call stops the search."""
        number = next(self._numbers)
        job = msgspec.structs.replace(job, number=number)
        search = _Search(job, client, game or client, self._loop.create_future(), self._clients.now, self._games.now)
        self._waiting[number] = search
        self._present.pop(client, None)
        self._present[client] = monotonic()
        self._dispatch()
        try:
            return await search.future
        except asyncio.CancelledError:
            self._waiting.pop(number, None)
            for worker in self._workers:
                if number in worker.searches:
                    worker.send(number)
            raise

    # --- in the event loop ------------------------------------------------------------------------

    def _new_worker(self) -> Worker:
        return Worker(self.workers > 0, partial(self._in_loop, self._answered), partial(self._in_loop, self._ended))

    def _in_loop(self, method: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has closed
            self._loop.call_soon_threadsafe(method, *arguments)

    def _running(self) -> list[_Search]:
        return [search for worker in self._workers for search in worker.searches.values()]

    def _dispatch(self, first: Worker | None = None) -> None:
        """Start searches on idle workers, beginning with *first*."""
        for worker in sorted(self._workers, key=lambda worker: worker is not first):
            if not worker.searches and (searches := self._next()):
                self._begin(worker, searches)

    def _next(self) -> list[_Search]:
        """Return the waiting search that may begin and comes first, or a batch of short ones."""
        limit = max(1, len(self._workers) - 1)
        may_be_long = sum(map(self._is_long, self._running())) < limit
        full = self._clients_at(limit) if self._are_several_present() else set()
        waiting = [
            search
            for search in self._waiting.values()
            if search.client not in full and (may_be_long or not self._is_long(search))
        ]
        for search in waiting:
            search.start = self._clients.start(search.client, search.start)
            search.game_start = self._games.start(search.game, search.game_start)
        waiting.sort(key=lambda search: (self._expected(search) > BATCH_SECONDS, search.start, search.game_start))
        chosen, more = waiting[:1], [search for search in waiting[1:] if not self._is_long(search)]
        if not chosen or self._is_long(chosen[0]):
            return chosen
        expected = self._expected(chosen[0])
        for left, search in zip(range(len(more), 0, -1), more, strict=True):  # left for the other workers
            expected += self._expected(search)  # all answers are sent together
            if left < len(self._workers) or expected > BATCH_SECONDS or len(chosen) == MAX_BATCH:
                break
            chosen.append(search)
        return chosen

    def _expected(self, search: _Search) -> float:
        """Return the expected seconds of a short search."""
        return self._usual.get(search.job.agent, UNKNOWN_SECONDS)

    def _clients_at(self, limit: int) -> set[str]:
        """Return the clients whose searches occupy at least *limit* workers."""
        workers = Counter(client for worker in self._workers for client in {s.client for s in worker.searches.values()})
        return {client for client, count in workers.items() if count >= limit}

    def _are_several_present(self) -> bool:
        """Forget clients without a recent search, and return whether at least two are left."""
        while self._present and monotonic() - next(iter(self._present.values())) > PRESENT_SECONDS:
            del self._present[next(iter(self._present))]
        return len(self._present) > 1

    def _is_long(self, search: _Search) -> bool:
        return search.job.is_long or search.name not in self._ready

    def _begin(self, worker: Worker, searches: list[_Search]) -> None:
        for search in searches:
            self._clients.begin(search.client, search.start)
            self._games.begin(search.game, search.game_start)
            self.searches += 1
            search.deadline = monotonic() + (search.job.seconds or 0) + WORKER_TIMEOUT_SECONDS
            worker.searches[search.job.number] = self._waiting.pop(search.job.number)
        worker.send([search.job for search in searches])

    def _answered(self, worker: Worker, answers: list[Answer]) -> None:
        for answer in answers:
            search = worker.searches.pop(answer.number, None)
            if search is not None:
                self._ready.add(search.name)
                self._clients.charge(search.client, search.start, answer.cpu)
                self._games.charge(search.game, search.game_start, answer.cpu)
                self._update_usual_seconds(search.job.agent, answer.cpu)
                if not search.future.done():
                    search.future.set_result(answer)
        self._dispatch(worker)

    def _update_usual_seconds(self, agent: str, seconds: float) -> None:
        """Update the moving average of an agent's searches; the first one also loads kernels, so its time is capped."""
        before = self._usual.get(agent, UNKNOWN_SECONDS)
        self._usual[agent] = before + EMA_RATE * (min(seconds, UNKNOWN_SECONDS) - before)
        if len(self._usual) > 4096:
            self._usual.clear()

    def _ended(self, worker: Worker) -> None:
        """Fail the searches of a worker that has died, and replace it."""
        if self.closed:
            return
        for search in worker.searches.values():
            if not search.future.done():
                search.future.set_exception(WorkerLost("the search stopped unexpectedly; try again"))
        worker.end()
        status = worker.process and worker.process.exitcode
        log.warning("a search worker has ended with status %s, and is replaced", status)
        self._workers[self._workers.index(worker)] = self._new_worker()
        self._dispatch()

    async def _kill_hung_workers(self) -> None:
        while True:
            await asyncio.sleep(5)
            for worker in self._workers:
                if worker.pid and any(monotonic() > search.deadline for search in worker.searches.values()):
                    worker.end()  # calls `_ended`
