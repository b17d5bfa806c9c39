"""The worker: a process (or a thread) that runs searches, analyses and the reading of games.

Jobs and answers are lists in JSON; a single number stops the job with that number. A process ignores Ctrl-C, which the server
handles, and ends with the server, when the pipe is closed.
"""

import contextlib
import logging
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from math import inf
from multiprocessing.connection import Connection
from time import perf_counter, thread_time
from typing import Any, Literal

import msgspec
import numpy as np

from play.background import run_until
from play.server.workers.analysis import analyse
from play.server.workers.reading import read_games
from reversi_env import Position, ReversiError
from search.agents.base import Agent, TimedAgent
from search.agents.searching import SearchAgent
from search.agents.spec import AgentSpec, make_agent

log = logging.getLogger("reversi.server")

#: Number of agents, each with an engine and its tables, that are cached; the least recently used is dropped.
CACHED_AGENTS = 12
#: Limit of short searches, in seconds: the longest wait of the quickest agents. Longer searches never occupy all workers.
SHORT_SECONDS = 0.1


class Job(msgspec.Struct, frozen=True):
    """A search of a position: table in MiB, limit in *seconds* (None for quick searches), *seed* of the choice among equal moves.

    *share* and *most* are the usual and the maximum seconds that a clock leaves for the move. A job to *read* reads the games in
    *text* or *file*, from number *first* on, by the position's rules or their own. Searches of the same kind by the same agent in
    the same game share an engine.
    """

    kind: Literal["move", "analyse", "read"]
    position: Position
    agent: str
    table: float
    seconds: float | None = None
    seed: int = 0
    number: int = -1
    share: float | None = None
    most: float | None = None
    text: str = ""
    file: bytes = b""
    first: int = 0

    @property
    def longest(self) -> float | None:
        """The maximum seconds of the search, by the agent's own limit and the clock; None without either."""
        return min(filter(None, (self.seconds, self.most)), default=None)

    @property
    def is_long(self) -> bool:
        """Whether the agent's own limit allows more than a short search; a clock does not make it slower."""
        return self.seconds is not None and self.seconds > SHORT_SECONDS


class Answer(msgspec.Struct):
    """The *result* of the job with a *number*, or an *error*, internal or of the request, and the processor time in seconds."""

    number: int = -1
    cpu: float = 0.0
    result: dict[str, Any] = {}
    error: str = ""
    is_internal_error: bool = False


class Searcher:
    """Answers jobs one at a time, with cached agents.

    ``stopped``, which another thread may set, is the number of the current or a later job to stop.
    """

    def __init__(self) -> None:
        self.stopped = -1
        self._cached_agent = lru_cache(CACHED_AGENTS)(_agent)

    def answer(self, job: Job) -> Answer:
        """Return the answer to *job*. An internal error ends this search alone, not the worker with its other jobs."""
        answer = Answer(job.number)
        try:
            with _charged(answer):
                answer.result = self._result(job, answer)
        except ReversiError as error:
            answer.error = str(error)[:200]
        except MemoryError:
            raise
        except Exception as error:
            log.exception("a search failed: %s", job)
            answer.error, answer.is_internal_error = f"the search failed: {type(error).__name__}", True
        return answer

    def _result(self, job: Job, answer: Answer) -> dict[str, Any]:
        rules = job.position.rules
        if job.kind == "read":
            return read_games(job.text, job.file, rules, job.first)
        agent = self._cached_agent(job.kind, job.agent, job.table, rules.size, rules.variant)
        if isinstance(agent, TimedAgent):  # which limits its time itself
            # An analysis needs only the engine, which some agents do not use for their own moves.
            (agent.engine if isinstance(agent, SearchAgent) and job.kind == "analyse" else agent.prepare)(rules)
            ends, search = inf, partial(_search, job, agent)
        else:
            agent = AgentSpec(job.agent).with_(seed=job.seed).make(table=job.table)  # the seed is the game's
            agent.prepare(rules)
            ends, search = perf_counter() + (job.longest or inf), partial(_choose, job, agent)
        if not job.is_long:  # too short to need a stop
            return search()

        def is_due() -> bool:
            return self.stopped == job.number or perf_counter() > ends

        return run_until(is_due, _charged(answer)(search), agent.stop)


@contextlib.contextmanager
def _charged(answer: Answer) -> Iterator[None]:
    """Add the processor time of this thread to the answer's; not of other threads in the process."""
    began = thread_time()
    try:
        yield
    finally:
        answer.cpu += thread_time() - began


def _agent(kind: str, spec: str, table: float, size: int, variant: str) -> Agent:
    """Return a new agent. All arguments are its cache key: a shared engine would give weak agents the table of strong ones."""
    return make_agent(spec, table=table)


def _choose(job: Job, agent: Agent) -> dict[str, Any]:
    began = perf_counter()
    move = job.position.rules.name_of(agent.choose(job.position))
    return {"move": move, "value": None, "seconds": perf_counter() - began}


def _search(job: Job, agent: TimedAgent) -> dict[str, Any]:
    if isinstance(agent, SearchAgent) and job.kind == "analyse":
        return analyse(agent.engine(job.position.rules), job.position, job.seconds or 0.0)
    limits = replace(agent.limits, time=job.longest, soft=job.share)
    result = agent.search(job.position, limits, rng=np.random.default_rng(job.seed))
    return {"move": result.move, "value": result.value, "seconds": result.seconds}


def load_rules() -> None:
    """Load the kernels of the rules, which is slow in a new process."""
    position = Position.initial().play("d3")
    position.legal_moves()
    position.is_over()
    position.must_pass()


def worker_process(connection: Connection) -> None:
    """Run a worker process: answer jobs from *connection* until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(os, "nice"):
        os.nice(10)  # the server answers first
    search_jobs(connection, lambda: os._exit(0))  # a kernel that still runs would keep the process


def search_jobs(connection: Connection, at_end: Callable[[], None] = lambda: None) -> None:
    """Answer jobs from *connection* until an empty list arrives; *at_end* is called when the connection closes."""
    searcher = Searcher()
    batches: queue.SimpleQueue[list[Job]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(connection, searcher, batches, at_end), daemon=True).start()
    load_rules()
    while jobs := batches.get():
        answers = msgspec.json.encode([searcher.answer(job) for job in jobs])
        with contextlib.suppress(OSError):  # the server is gone; the reader notices it, too
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
                searcher.stopped = message
            else:
                batches.put(message)
    except (EOFError, OSError):
        at_end()
        batches.put([])
