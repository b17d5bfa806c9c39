"""`Pool`: the workers, and whose search is next.

**Fair share.** Searches are asked for by a client, an address, and for a game. Each client has used so many seconds of a processor;
a new search starts, in virtual time, where the client's last ones ended, or now if that is past, and the earliest start is next.
So one address cannot keep the others waiting, however many games it has. Among the searches of one client the same decides by
game: a game whose agent thinks for seconds waits for games whose agents answer at once, and not the other way round.

**Short searches travel together** when many wait, a few milliseconds' worth at a time: a message to another process costs as much
as a search to depth 2.

**Long searches never occupy all workers**, where there is more than one. The first one of an agent counts as long: what it needs
may have to be compiled, and somebody who asks for every agent there is must not keep all workers at that.

**Pondering** takes a worker that has nothing else to do, and gives it back when any other game's search waits; it is not charged.
The next search of its own game waits the moment that its worker takes to end it: that worker's tables know the position.

**Bounded.** A game waits for one search at a time, so that the games' limit is theirs; of visitors' analyses and transcripts the
hall takes only so many.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from play.server.workers.worker import Answer, Job, search_jobs, worker_process
from play.thinker import ROUNDS

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

log = logging.getLogger("reversi.server")

#: What a search is charged at least, in seconds, so that small differences between small searches put nobody behind.
MIN_CHARGE = 0.002
#: Expected seconds of the short searches that are given to a worker together, and how many they may be.
BATCH_SECONDS, MAX_BATCH = 0.005, 16
#: What a search of an agent not seen yet is expected to take, and how fast expectations change.
UNKNOWN_SECONDS, EMA_RATE = 0.01, 0.1
#: Agents that have nothing to compile, and what reads records.
NOTHING_TO_COMPILE = frozenset({"random", "greedy", ""})
#: Seconds beyond its own limit after which a search that does not come back is given up, with its worker. A first
#: compilation takes half a minute on a slow machine.
WORKER_TIMEOUT_SECONDS = 180.0


class WorkerLost(Exception):  # noqa: N818 - the machine's fault, not the caller's
    """The worker died, or was given up; the search can be asked for again."""


class _FairShares:
    """What each of many has used of the processors: the virtual time at which its last searches ended; ``now`` is the present."""

    def __init__(self) -> None:
        self.now = 0.0
        self._ends: dict[str, float] = {}

    def start(self, name: str, asked: float) -> float:
        """When a search of *name* starts that was asked for at *asked*: others of the name may have been charged since."""
        return max(asked, self._ends.get(name, 0.0))

    def begin(self, name: str, start: float) -> None:
        """A search of *name* begins that starts at *start*; it is charged the least at once."""
        self.now = max(self.now, start)
        self._ends[name] = self.start(name, start) + MIN_CHARGE

    def charge(self, name: str, start: float, seconds: float) -> None:
        """The search that started at *start* took *seconds*: what it has not been charged yet is added."""
        self._ends[name] = self.start(name, start) + max(0.0, seconds - MIN_CHARGE)
        if len(self._ends) > 4096:
            self._ends = {each: at for each, at in self._ends.items() if at > self.now}


@dataclass
class _Search:
    """A search that waits or runs: its job, whose it is and in which game, and when it began in virtual time by either."""

    job: Job
    client: str
    game: str
    future: asyncio.Future[Answer]
    start: float = 0.0
    game_start: float = 0.0
    deadline: float = 0.0

    @cached_property
    def name(self) -> str:
        """The agent's name, one of the catalogue's; its options may be anything."""
        return self.job.agent.partition(":")[0]


class Worker:
    """A worker, the searches that it does at present by their numbers, the last one's game, and the thread that waits for answers.

    It is a process, or a thread of the server: for tests, and for machines with little memory.
    """

    def __init__(self, is_process: bool, on_answer: Callable[..., None], on_end: Callable[..., None]) -> None:
        self.searches: dict[int, _Search] = {}
        self.last_game = ""
        self._on_answer, self._on_end = on_answer, on_end
        self._process: SpawnProcess | None = None
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        if is_process:
            self._process = context.Process(target=worker_process, args=(theirs,), daemon=True, name="reversi-search")
            self._process.start()
            theirs.close()
        else:
            threading.Thread(target=search_jobs, args=(theirs,), daemon=True, name="reversi-search").start()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def pid(self) -> int | None:
        """The process's id; None for a thread."""
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """How the process has ended, below 0 by a signal; None for a thread."""
        return self._process.exitcode if self._process else None

    def send(self, message: list[Job] | int) -> None:
        """Give it jobs, or stop the job of a number; small enough never to wait, since the worker always reads."""
        with contextlib.suppress(OSError):
            self._connection.send_bytes(msgspec.json.encode(message))

    def end(self) -> None:
        """Kill a process, which holds nothing that is worth saving; let a thread end after what it does now."""
        if self._process is None:
            self.send([])
        else:
            self._process.kill()
            self._process.join()

    def _listen(self) -> None:
        decode = msgspec.json.Decoder(list[Answer]).decode
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._on_answer(self, decode(self._connection.recv_bytes()))
        self._connection.close()
        self._on_end(self)


@dataclass
class Pool:
    """Searches by *workers* processes, or by one thread if that is 0. Use within a running event loop."""

    workers: int
    searches: int = 0
    closed: bool = False
    _workers: list[Worker] = field(default_factory=list)
    _waiting: dict[int, _Search] = field(default_factory=dict)
    _clients: _FairShares = field(default_factory=_FairShares)
    _games: _FairShares = field(default_factory=_FairShares)
    _usual: dict[str, float] = field(default_factory=dict)
    _ready: set[str] = field(default_factory=lambda: set(NOTHING_TO_COMPILE))
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def start(self) -> None:
        """Start the workers."""
        self._loop = asyncio.get_running_loop()
        self._workers = [self._new_worker() for _ in range(max(1, self.workers))]
        self._watch = self._loop.create_task(self._kill_hung_workers())

    def close(self) -> None:
        """End the workers; searches that wait are cancelled."""
        self.closed = True
        self._watch.cancel()
        for search in [*self._waiting.values(), *self._running()]:
            search.future.cancel()
        for worker in self._workers:
            worker.end()

    @property
    def waiting(self) -> int:
        """Searches that wait for a worker."""
        return len(self._waiting)

    def pids(self) -> list[int | None]:
        """The worker processes' ids."""
        return [worker.pid for worker in self._workers]

    async def search(self, client: str, job: Job, game: str | None = None) -> Answer:
        """The answer to a job of *client*'s, in one of its games or else apart from them; cancelling the call stops the search."""
        number = next(self._numbers)
        job = msgspec.structs.replace(job, number=number)
        search = _Search(job, client, game or client, self._loop.create_future(), self._clients.now, self._games.now)
        self._waiting[number] = search
        self._dispatch()
        try:
            return await search.future
        except asyncio.CancelledError:
            self._waiting.pop(number, None)
            for worker in self._workers:
                if number in worker.searches:
                    worker.send(number)
            raise

    async def ponder(self, game: str, job: Job) -> None:
        """Let an idle worker ponder, if there is one; that of the game's last search if it can be. Cancelling the call ends it."""
        idle = [worker for worker in self._workers if not worker.searches]
        if not idle or self._waiting:
            return
        worker = min(idle, key=lambda worker: worker.last_game != game)
        search = _Search(msgspec.structs.replace(job, number=next(self._numbers)), "", game, self._loop.create_future())
        self._send(worker, [search])
        try:
            await search.future
        except asyncio.CancelledError:
            worker.send(search.job.number)
            raise

    # --- in the event loop ------------------------------------------------------------------------

    def _new_worker(self) -> Worker:
        return Worker(self.workers > 0, partial(self._in_loop, self._answered), partial(self._in_loop, self._ended))

    def _in_loop(self, method: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has closed
            self._loop.call_soon_threadsafe(method, *arguments)

    def _running(self) -> list[_Search]:
        return [search for worker in self._workers for search in worker.searches.values()]

    def _pondering(self) -> dict[str, tuple[Worker, int]]:
        """Who ponders, by the game, and the number of the job."""
        busy = [(worker, search) for worker in self._workers for search in worker.searches.values()]
        return {search.game: (worker, search.job.number) for worker, search in busy if search.job.kind == "ponder"}

    def _dispatch(self, first: Worker | None = None) -> None:
        """Give workers that are idle something to do, *first* before the others; pondering ends if that is not enough."""
        for worker in sorted(self._workers, key=lambda worker: worker is not first):
            if not worker.searches and (searches := self._next()):
                self._begin(worker, searches)
        pondering = self._pondering()
        waiting = {search.game for search in self._waiting.values()}
        for game in pondering if waiting - pondering.keys() else waiting:
            worker, number = pondering[game]
            worker.send(number)

    def _next(self) -> list[_Search]:
        """The waiting search that starts first in virtual time, among those that may begin; a short one with more of them."""
        long = sum(self._is_long(search) and search.job.kind != "ponder" for search in self._running())
        may_be_long, pondered = long < max(1, len(self._workers) - 1), self._pondering()
        waiting = [search for search in self._waiting.values() if search.game not in pondered]
        waiting = [search for search in waiting if may_be_long or not self._is_long(search)]
        for search in waiting:
            search.start = self._clients.start(search.client, search.start)
            search.game_start = self._games.start(search.game, search.game_start)
        waiting.sort(key=lambda search: (search.start, search.game_start))
        chosen, more, expected = waiting[:1], [search for search in waiting[1:] if not self._is_long(search)], 0.0
        if chosen and self._is_long(chosen[0]):
            return chosen
        for left, search in zip(range(len(more), 0, -1), more, strict=True):  # while others have something to do too
            expected += self._usual.get(chosen[-1].job.agent, UNKNOWN_SECONDS)
            if left < len(self._workers) or expected > BATCH_SECONDS or len(chosen) == MAX_BATCH:
                break
            chosen.append(search)
        return chosen

    def _is_long(self, search: _Search) -> bool:
        return search.job.is_long or search.name not in self._ready

    def _begin(self, worker: Worker, searches: list[_Search]) -> None:
        for search in searches:
            self._clients.begin(search.client, search.start)
            self._games.begin(search.game, search.game_start)
            self.searches += 1
            del self._waiting[search.job.number]
        self._send(worker, searches)

    def _send(self, worker: Worker, searches: list[_Search]) -> None:
        for search in searches:
            longest = (search.job.seconds or 0) * (2**ROUNDS if search.job.kind == "ponder" else 1)
            search.deadline = monotonic() + longest + WORKER_TIMEOUT_SECONDS
            worker.searches[search.job.number] = search
            worker.last_game = search.game
        worker.send([search.job for search in searches])

    def _answered(self, worker: Worker, answers: list[Answer]) -> None:
        for answer in answers:
            search = worker.searches.pop(answer.number, None)
            if search is not None:
                self._ready.add(search.name)
                if search.job.kind != "ponder":
                    self._charge(search, answer.cpu)
                    self._update_usual_seconds(search.job.agent, answer.cpu)
                if not search.future.done():
                    search.future.set_result(answer)
        self._dispatch(worker)

    def _charge(self, search: _Search, seconds: float) -> None:
        self._clients.charge(search.client, search.start, seconds)
        self._games.charge(search.game, search.game_start, seconds)

    def _update_usual_seconds(self, agent: str, seconds: float) -> None:
        """What searches of this kind take; a first one loads its kernels, and says nothing about the others."""
        before = self._usual.get(agent, UNKNOWN_SECONDS)
        self._usual[agent] = before + EMA_RATE * (min(seconds, UNKNOWN_SECONDS) - before)
        if len(self._usual) > 4096:
            self._usual.clear()

    def _ended(self, worker: Worker) -> None:
        """A worker has died: its searches failed, and another takes its place."""
        if self.closed:
            return
        for search in worker.searches.values():
            if not search.future.done():
                search.future.set_exception(WorkerLost("the search stopped unexpectedly; try again"))
        worker.end()
        log.warning("a search worker has ended with status %s, and is replaced", worker.exit_code)
        self._workers[self._workers.index(worker)] = self._new_worker()
        self._dispatch()

    async def _kill_hung_workers(self) -> None:
        while True:
            await asyncio.sleep(5)
            for worker in self._workers:
                if worker.pid and any(monotonic() > search.deadline for search in worker.searches.values()):
                    worker.end()  # which `_ended` hears of
