"""What searches: a process (or a thread) that is given positions, and answers each with a move or an analysis.

Jobs and answers are JSON, those that come together in one message. A process ignores Ctrl-C, which is the server's business, and
ends when the server does, however that ended: its end of the pipe closes.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from reversi_env import Position, ReversiError, Rules
from reversi_env.rules import BLACK, WHITE

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from search.engine import Engine

log = logging.getLogger("reversi.server")

#: Engines that are kept with their tables, the ones used last.
KEPT_ENGINES = 12


class Searcher:
    """Answers jobs, one at a time. `stop` may be called from another thread, for the job of a number."""

    def __init__(self) -> None:
        self._engines: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._lock = threading.Lock()
        self._current: tuple[int, _Stoppable] | None = None
        self._stopped = -1

    def answer(self, job: dict[str, Any]) -> dict[str, Any]:
        """The answer to *job*: what was found, or ``error`` with a line that says why not; and the processor time it took.

        A fault of ours ends the one search (``fault`` is set), and not the worker with all the others that it was given.
        """
        began = thread_time()
        try:
            rules = Rules(job["size"], job["variant"])
            position = Position(rules, job["own"], job["opp"], BLACK if job["turn"] == "black" else WHITE)
            found = self._found(job, position)
        except ReversiError as error:
            found = {"error": str(error)[:200]}
        except MemoryError:
            raise
        except Exception as error:
            log.exception("a search failed: %s", job)
            found = {"error": f"the search failed: {type(error).__name__}", "fault": True}
        return found | {"number": job["number"], "cpu": thread_time() - began}

    def stop(self, number: int) -> None:
        """Cut job *number* short, if it is the present one; also if it has not yet come to its engine."""
        with self._lock:
            self._stopped = number
            if self._current and self._current[0] == number:
                self._current[1].stop()

    def warm_up(self) -> None:
        """Load what every search needs, before the first one does."""
        import search.agents
        import search.engine  # noqa: F401

        load_rules()

    def _found(self, job: dict[str, Any], position: Position) -> dict[str, Any]:
        if job.get("searches", True):
            return self._searched(job, position)
        began = perf_counter()
        move = self._chosen(job, position)
        return {"move": move, "value": None, "seconds": perf_counter() - began}

    def _searched(self, job: dict[str, Any], position: Position) -> dict[str, Any]:
        from search.limits import Limits

        engine = self._engine(job, position.rules)
        if job["kind"] == "analyse":
            from play.server.analysis import analyse

            with self._stoppable(job["number"], engine):
                return analyse(engine, position, job["seconds"])
        limits = Limits(job.get("seconds"), job.get("depth"), job.get("nodes"), job.get("exact"))
        ties = None if job.get("seed") is None else np.random.default_rng(job["seed"])
        with self._stoppable(job["number"], engine):
            found = engine.search(position, limits, ties=ties)
        return {name: getattr(found, name) for name in ("move", "value", "seconds")}

    def _chosen(self, job: dict[str, Any], position: Position) -> str:
        """The move of an agent that does not search; by lot among equals, differently in every game."""
        from search.agents import make

        spec = job["spec"].partition(":")[0]
        options = {"seed": job["seed"], "exact": job.get("exact"), "table": job["table"]}
        return position.rules.name_of(make(spec, **options).choose(position))

    def _engine(self, job: dict[str, Any], rules: Rules) -> Engine:
        """The engine for a kind of job; agents of different depths share none, or the weak would know what the strong found."""
        from search.engine import Engine

        key = (job["spec"], rules.size, rules.variant, job["table"])
        if key not in self._engines:
            self._engines[key] = Engine(job["name"], rules, megabytes=job["table"])
        self._engines.move_to_end(key)
        while len(self._engines) > KEPT_ENGINES:
            self._engines.popitem(last=False)
        return self._engines[key]

    @contextmanager
    def _stoppable(self, number: int, engine: Any) -> Iterator[None]:
        """Let `stop` reach *engine*; a stop that came before does so now."""
        stoppable = _Stoppable(engine)
        with self._lock:
            self._current = (number, stoppable)
            if self._stopped == number:
                stoppable.stop()
        try:
            yield
        finally:
            stoppable.end()
            with self._lock:
                self._current = None


class _Stoppable:
    """While it is entered, the engine can be stopped.

    A search forgets requests that are older than itself, and a stop may come before it has begun: so it is asked to stop again
    and again until it has.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._done = threading.Event()

    def stop(self) -> None:
        """Stop the search, begun or not."""
        threading.Thread(target=self._insist, daemon=True).start()

    def _insist(self) -> None:
        self._engine.stop()
        while not self._done.wait(0.02):
            self._engine.stop()

    def end(self) -> None:
        """The search has returned."""
        self._done.set()


def load_rules() -> None:
    """Load the kernels of the rules: the first move of a process takes a good part of a second."""
    position = Position.initial().play("d3")
    position.legal_moves()
    position.is_over()
    position.must_pass()


def main(connection: Connection) -> None:
    """A worker process: reads jobs and stops from *connection* until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(os, "nice"):
        os.nice(1)  # the server answers first
    searcher = Searcher()
    jobs: queue.SimpleQueue[list[dict[str, Any]]] = queue.SimpleQueue()
    threading.Thread(target=_work, args=(searcher, jobs, connection), daemon=True).start()
    try:
        while True:
            message = msgspec.json.decode(connection.recv_bytes())
            if "stop" in message:
                searcher.stop(message["stop"])
            else:
                jobs.put(message["jobs"])
    except (EOFError, OSError):
        os._exit(0)  # the server is gone; a kernel that still runs would keep the process


def _work(searcher: Searcher, jobs: queue.SimpleQueue[list[dict[str, Any]]], connection: Connection) -> None:
    searcher.warm_up()
    while True:
        try:
            answers = [searcher.answer(job) for job in jobs.get()]
            connection.send_bytes(msgspec.json.encode(answers))
        except OSError:
            os._exit(0)
        except BaseException:  # no memory: the server sees the end of the process, and starts another
            import traceback

            traceback.print_exc()
            os._exit(1)
