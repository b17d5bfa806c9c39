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
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from math import inf
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from play.background import run_until
from play.server.workers.analysis import analyse
from play.server.workers.reading import read_games
from play.thinker import ponder
from reversi_env import Position, ReversiError
from search.agents.base import Agent
from search.agents.searching import SearchAgent
from search.agents.spec import AgentSpec, make_agent

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

log = logging.getLogger("reversi.server")

#: Agents that are kept, each with an engine and its tables, the ones used last.
KEPT_AGENTS = 12
#: Longer searches than this count as long, in seconds: they never occupy all workers. So long may the quickest agents have to wait.
SHORT_SECONDS = 0.1


class Job(msgspec.Struct, frozen=True):
    """One search: of which position, by whom, with a table of how many MiB, in how many *seconds*; *seed* is for equal moves.

    *seconds* is None for what is done in a moment. *share* and *most* are what a clock leaves for the move, in seconds; None
    without a clock. A job to *ponder* goes on until it is stopped, and finds nothing but what is in the engine's tables then; one
    to *read* finds the games that are in *text* or *file*, from number *first* on, by the position's rules or their own. Searches
    of the same kind by the same agent of the same game share an engine.
    """

    kind: Literal["move", "analyse", "ponder", "read"]
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
        """Seconds that the search may take at most, by the agent's own limit and the clock; None without either."""
        return min(filter(None, (self.seconds, self.most)), default=None)

    @property
    def is_long(self) -> bool:
        """Whether it may take longer than a moment, by the agent's own time: it is no slower for having a clock."""
        return self.seconds is not None and self.seconds > SHORT_SECONDS


class Answer(msgspec.Struct):
    """The *result* of the job with a *number*, or an *error*, and the processor time in seconds.

    *is_internal_error*: the error is ours, and not the request's.
    """

    number: int = -1
    cpu: float = 0.0
    result: dict[str, Any] = {}
    error: str = ""
    is_internal_error: bool = False


class Searcher:
    """Answers jobs, one at a time, with the agents that it used last.

    ``stopped``, which another thread may set, is the number of the job that is to be cut short: the present one, or one to come.
    """

    def __init__(self) -> None:
        self.stopped = -1
        self._kept = lru_cache(KEPT_AGENTS)(_agent)

    def answer(self, job: Job) -> Answer:
        """The answer to *job*. A fault of ours ends the one search, and not the worker with all the others that it was given."""
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
        kind = "move" if job.kind == "ponder" else job.kind
        agent = self._kept(kind, job.agent, job.table, rules.size, rules.variant)

        def is_stopped() -> bool:
            return self.stopped == job.number

        if isinstance(agent, SearchAgent):  # whose engine has a clock of its own
            # An analysis needs the engine only, which is not always what searches for the agent's moves.
            (agent.engine if job.kind == "analyse" else agent.prepare)(rules)
            ends, search = inf, partial(_search, job, agent, is_stopped)
        else:
            agent = AgentSpec(job.agent).with_(seed=job.seed).make(table=job.table)  # another one in every game
            agent.prepare(rules)
            ends, search = perf_counter() + (job.longest or inf), partial(_choose, job, agent)
        if not job.is_long:  # over before anybody could ask
            return search()
        return run_until(lambda: is_stopped() or perf_counter() > ends, _charged(answer)(search), agent.stop)


@contextlib.contextmanager
def _charged(answer: Answer) -> Iterator[None]:
    """Add the processor time of this thread to the answer's: a search has one, and the server may be others of the process."""
    began = thread_time()
    try:
        yield
    finally:
        answer.cpu += thread_time() - began


def _agent(kind: str, spec: str, table: float, size: int, variant: str) -> Agent:
    """Who does a *kind* of job in one game, and has one engine; agents share none, or the weak would know what the strong found."""
    return make_agent(spec, table=table)


def _choose(job: Job, agent: Agent) -> dict[str, Any]:
    began = perf_counter()
    move = job.position.rules.name_of(agent.choose(job.position))
    return {"move": move, "value": None, "seconds": perf_counter() - began}


def _search(job: Job, agent: SearchAgent, is_stopped: Callable[[], bool]) -> dict[str, Any]:
    rules = job.position.rules
    if job.kind == "analyse":
        return analyse(agent.engine(rules), job.position, job.seconds or 0.0)
    limits = replace(agent.limits, time=job.longest, soft=job.share)
    if job.kind == "ponder":
        if agent.ponders:
            ponder(agent.engine(rules), job.position, limits, is_stopped)
        return {}
    result = agent.search(job.position, limits, draws=np.random.default_rng(job.seed))
    return {"move": result.move, "value": result.value, "seconds": result.seconds, "line": result.pv[:2]}


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
                searcher.stopped = message
            else:
                batches.put(message)
    except (EOFError, OSError):
        at_end()
        batches.put([])
