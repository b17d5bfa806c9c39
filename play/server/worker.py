"""What searches: a process (or a thread) that is given positions, and answers each with a move or an analysis.

Jobs and answers are JSON, those that come together in one message; a number instead stops the job of that number. A process
ignores Ctrl-C, which is the server's business, and ends when the server does, however that ended: its end of the pipe closes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from play.background import insist
from play.server.analysis import analyse
from reversi_env import Position, ReversiError
from search.agent import Agent
from search.agents import AgentSpec, make
from search.players import SearchAgent

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from search.engine import Engine

log = logging.getLogger("reversi.server")

#: Agents that are kept with their engines and tables, the ones used last.
KEPT_AGENTS = 12
#: Longer searches than this count as long, in seconds: they never occupy all workers.
SHORT_SECONDS = 0.25


class Job(msgspec.Struct, frozen=True):
    """One search: of which position, by whom, with a table of how many MiB, in how many *seconds*; *seed* is for equal moves.

    *seconds* is None for what is done in a moment. Searches of the same kind by the same agent share an engine.
    """

    kind: Literal["move", "analyse"]
    position: Position
    agent: str
    table: float
    seconds: float | None = None
    seed: int = 0
    number: int = -1

    @property
    def is_long(self) -> bool:
        """Whether it may take longer than a moment."""
        return self.seconds is not None and self.seconds > SHORT_SECONDS


class Answer(msgspec.Struct):
    """What was *found* for the job of a *number*, or an *error* that says why nothing was; and the processor time it took.

    *is_fault*: the error is ours, and not the request's.
    """

    number: int = -1
    cpu: float = 0.0
    found: dict[str, Any] = {}
    error: str = ""
    is_fault: bool = False


class Searcher:
    """Answers jobs, one at a time. `stop` may be called from another thread, for the job of a number."""

    def __init__(self) -> None:
        self._agents: OrderedDict[tuple[Any, ...], Agent] = OrderedDict()
        self._lock = threading.Lock()
        self._current: tuple[int, Engine, threading.Event] | None = None
        self._stopped = -1

    def answer(self, job: Job) -> Answer:
        """The answer to *job*. A fault of ours ends the one search, and not the worker with all the others that it was given."""
        answer, began = Answer(job.number), thread_time()
        try:
            answer.found = self._found(job)
        except ReversiError as error:
            answer.error = str(error)[:200]
        except MemoryError:
            raise
        except Exception as error:
            log.exception("a search failed: %s", job)
            answer.error, answer.is_fault = f"the search failed: {type(error).__name__}", True
        answer.cpu = thread_time() - began
        return answer

    def stop(self, number: int) -> None:
        """Cut job *number* short, if it is the present one; also if it has not yet come to its engine."""
        with self._lock:
            self._stopped = number
            self._stop_current()

    def _found(self, job: Job) -> dict[str, Any]:
        agent, position = self._agent(job), job.position
        if not isinstance(agent, SearchAgent):
            began = perf_counter()
            lot = AgentSpec(job.agent).with_(seed=job.seed).make(table=job.table)  # differently in every game
            return {
                "move": position.rules.name_of(lot.choose(position)),
                "value": None,
                "seconds": perf_counter() - began,
            }
        engine = agent.engine(position.rules)
        with self._stoppable(job.number, engine):
            if job.kind == "analyse":
                return analyse(engine, position, job.seconds or 0.0)
            limits = replace(agent.limits, time=job.seconds)
            found = engine.search(position, limits, ties=np.random.default_rng(job.seed))
        return {"move": found.move, "value": found.value, "seconds": found.seconds}

    def _agent(self, job: Job) -> Agent:
        """Who does a kind of job; agents of different depths share no tables, or the weak would know what the strong found."""
        key = (job.kind, job.agent, job.table)
        if key not in self._agents:
            self._agents[key] = make(job.agent, table=job.table)
        self._agents.move_to_end(key)
        while len(self._agents) > KEPT_AGENTS:
            self._agents.popitem(last=False)
        return self._agents[key]

    @contextmanager
    def _stoppable(self, number: int, engine: Engine) -> Iterator[None]:
        """Let `stop` reach *engine*; a stop that came before does so now."""
        done = threading.Event()
        with self._lock:
            self._current = (number, engine, done)
            self._stop_current()
        try:
            yield
        finally:
            done.set()
            with self._lock:
                self._current = None

    def _stop_current(self) -> None:
        if self._current and self._current[0] == self._stopped:
            _, engine, done = self._current
            threading.Thread(target=insist, args=(engine.stop, done), daemon=True).start()


def load_rules() -> None:
    """Load the kernels of the rules: the first move of a process takes a good part of a second."""
    position = Position.initial().play("d3")
    position.legal_moves()
    position.is_over()
    position.must_pass()


def worker_process(connection: Connection) -> None:
    """A worker process: answers what comes from *connection* until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(os, "nice"):
        os.nice(1)  # the server answers first
    search_jobs(connection, lambda: os._exit(0))  # a kernel that still runs would keep the process


def search_jobs(connection: Connection, at_end: Callable[[], None] = lambda: None) -> None:
    """Answer what comes from *connection*, until that is an empty list of jobs; *at_end* is called when it has closed."""
    searcher = Searcher()
    batches: queue.SimpleQueue[list[Job]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(connection, searcher, batches, at_end), daemon=True).start()
    load_rules()
    while jobs := batches.get():
        answers = msgspec.json.encode([searcher.answer(job) for job in jobs])
        with contextlib.suppress(OSError):  # the server is gone: the reader sees it too
            connection.send_bytes(answers)
    connection.close()


def _read(
    connection: Connection, searcher: Searcher, batches: queue.SimpleQueue[list[Job]], at_end: Callable[[], None]
) -> None:
    decode, message = msgspec.json.Decoder(list[Job] | int).decode, None
    try:
        while message != []:
            message = decode(connection.recv_bytes())
            if isinstance(message, int):
                searcher.stop(message)
            else:
                batches.put(message)
    except (EOFError, OSError):
        at_end()
        batches.put([])
