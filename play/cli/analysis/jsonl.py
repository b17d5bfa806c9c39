"""`reversi analyse --jsonl`: requests and results as lines of JSON, several searches at once (docs/reference/protocols.md)."""

import json
import queue
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from play.background import in_background, run_until
from play.cli.positions import PositionOptions, read_problems
from play.first_start import compile_ahead, parts_of
from play.thinker import default_agent
from reversi_env import Position, ReversiError
from reversi_env.errors import quoted
from reversi_env.options import Options, option
from search.agents.book import solved_result
from search.agents.searching import SearchAgent
from search.agents.spec import AgentSpec
from search.engine.limits import Limits, SearchResult

#: Fields that limit a search; a request with one of them has none of the defaults.
LIMITS = ("time", "depth", "nodes")
#: Fields of a result.
RESULT = ("move", "value", "depth", "exact", "confidence", "pv", "nodes", "seconds")


class RequestError(ReversiError):
    """A request that cannot be read or searched."""


@dataclass(frozen=True)
class Request(Options):
    """A position and how to search it; the fields have the names of the command's options."""

    error = RequestError

    position: str = option(help="start, a board, moves or an OBF line; no file.")
    side: Literal["black", "white"] | None = option(None, "Side to move on a board.")
    size: int | None = option(None, "Board size of start or of moves.")
    variant: Literal["normal", "reversed"] | None = option(None, "Rules.")
    agent: str | None = option(None, "Spec of an agent that searches.")
    time: float | None = option(None, "Seconds.", low=0.001, high=1e6)
    depth: int | None = option(None, "Plies.", low=1, high=60)
    nodes: int | None = option(None, "Nodes per thread.", low=1)
    multi_pv: int = option(1, "Number of best moves with values.", low=1, high=64)
    exclude: tuple[str, ...] | None = option(None, "Legal moves that are not searched.")
    updates: bool = option(True, "Whether results of completed iterations are sent, too.")

    def read(self) -> Position:
        where = PositionOptions(self.side, None, None, self.size, self.variant)
        return next(read_problems(self.position, where, as_json=False, opens_files=False))[1].position


class Job:
    """A request that waits or is searched."""

    def __init__(self, request: Request, position: Position) -> None:
        self.request, self.position = request, position
        self.cancelled = threading.Event()
        self.runs = False


class AnalysisService:
    """Answers requests on *workers* threads, whose searches have *threads* each; *send* is called with every answer.

    *defaults* are fields of requests that do not have them.
    """

    def __init__(
        self, defaults: Mapping[str, Any], workers: int, threads: int, send: Callable[[dict[str, Any]], None]
    ) -> None:
        self._defaults, self._workers, self._threads, self._write = defaults, workers, threads, send
        self._queue: queue.Queue[int | str | None] = queue.Queue()
        self._jobs: dict[int | str, Job] = {}
        self._lock = threading.Lock()  # for the jobs and the output
        self._preparing = threading.Lock()

    def run(self, lines: Iterable[str]) -> None:
        """Answer *lines* to their end, and wait for the last search."""
        workers = [in_background(self._work) for _ in range(self._workers)]
        for line in filter(str.strip, lines):
            self._receive(line)
        for _ in workers:
            self._queue.put(None)
        for worker in workers:
            worker.result()

    def _receive(self, line: str) -> None:
        key = None
        try:
            try:
                fields = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise RequestError(f"line {quoted(line)}: expected a JSON object ({error})") from None
            if not isinstance(fields, dict):
                raise RequestError(f"line {quoted(line)}: expected a JSON object")
            cancels = fields.keys() == {"cancel"}
            key = fields.pop("cancel" if cancels else "id", None)
            if isinstance(key, bool) or not isinstance(key, (int, str)):
                key, wrong = None, quoted(key)
                raise RequestError(f"id {wrong}: expected an integer or a text in the field id, or in cancel alone")
            if cancels:
                self._cancel(key)
            else:
                self._add(key, fields)
        except ReversiError as error:
            with self._lock:
                self._write({"id": key, "type": "error", "error": str(error)})

    def _add(self, key: int | str, fields: dict[str, Any]) -> None:
        own_limits = fields.keys() & set(LIMITS)
        defaults = {name: value for name, value in self._defaults.items() if not (own_limits and name in LIMITS)}
        if "position" not in fields:
            raise RequestError("position is missing: expected start, a board or moves in the field position")
        request = Request.from_dict({**defaults, **fields})
        job = Job(request, request.read())
        with self._lock:
            if key in self._jobs:
                raise RequestError(f"id {quoted(key)} is in use: expected another id until its result is sent")
            self._jobs[key] = job
        self._queue.put(key)

    def _cancel(self, key: int | str) -> None:
        """Stop a running search, which then sends its result, or drop a waiting one; ignore a finished one."""
        with self._lock:
            if job := self._jobs.get(key):
                job.cancelled.set()
                if not job.runs:
                    del self._jobs[key]
                    self._write({"id": key, "type": "cancelled"})

    def _work(self) -> None:
        players: dict[str, SearchAgent] = {}
        while (key := self._queue.get()) is not None:
            with self._lock:
                job = self._jobs.get(key)
                if job is None or job.runs:  # cancelled, and perhaps requested again
                    continue
                job.runs = True
            try:
                answer = self._search(key, job, players)
            except (ReversiError, OSError) as error:
                answer = {"type": "error", "error": str(error)}
            except Exception as error:  # a defect must not end the worker
                traceback.print_exc()
                players.clear()
                answer = {"type": "error", "error": f"internal error, {type(error).__name__}: {error}"}
            with self._lock:
                del self._jobs[key]
                self._write({"id": key, **answer})

    def _search(self, key: int | str, job: Job, players: dict[str, SearchAgent]) -> dict[str, Any]:
        request, position = job.request, job.position
        if not (request.agent or request.exclude) and (solved := solved_result(position, request.multi_pv)):
            return {"type": "result", "cancelled": False, **_fields(solved)}
        player = self._player(request.agent or default_agent(position.rules), players)
        with self._preparing:
            compile_ahead(parts_of([player]), partial(player.prepare, position.rules))
        limits = {name: getattr(request, name) for name in LIMITS}
        engine = player.engine(position.rules)

        def update(result: SearchResult) -> None:
            with self._lock:
                if not job.cancelled.is_set():
                    self._write({"id": key, "type": "update", **_fields(result)})

        work = partial(
            engine.search,
            position,
            Limits(**limits) if any(limits.values()) else None,
            multi_pv=request.multi_pv,
            exclude=request.exclude or (),
            on_iteration=update if request.updates else None,
        )
        result = run_until(job.cancelled.is_set, work, engine.stop)
        return {"type": "result", "cancelled": job.cancelled.is_set(), **_fields(result)}

    def _player(self, spec: str, players: dict[str, SearchAgent]) -> SearchAgent:
        if spec not in players:
            parsed = AgentSpec.parse(spec)
            parsed.check_not_program()
            player = parsed.make(threads=self._threads)
            if type(player) is not SearchAgent:
                raise RequestError(f"agent {quoted(spec)}: expected an evaluator, such as network or six-factor")
            for name in parsed.options.keys() & {*LIMITS, "book"}:
                raise RequestError(
                    f"option {quoted(name)} of agent {quoted(spec)}: expected none; limits are separate fields"
                )
            players[spec] = player
        return players[spec]


def _fields(result: SearchResult) -> dict[str, Any]:
    moves = [{"move": entry.move, "value": entry.value} for entry in result.moves]
    return {name: getattr(result, name) for name in RESULT} | ({"moves": moves} if moves else {})
