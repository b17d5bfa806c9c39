"""`Thinker`: an agent with a clock, a stop and values of moves, for games with people and for protocols; `Ponderer`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from play.background import POLL_SECONDS, in_background
from play.first_start import compile_ahead, parts_of
from play.time_control import TimeControl
from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import quoted
from reversi_env.rules import PASS_NAME
from search.agents.base import TimedAgent
from search.agents.searching import SearchAgent
from search.agents.spec import AgentSpec
from search.engine.limits import Limits, MoveValue

if TYPE_CHECKING:
    from search.engine.engine import Engine

#: Options of a spec that limit its search.
_LIMITS = frozenset({"time", "depth", "nodes", "simulations"})
#: Options of a spec that a controller may change while it runs.
SETTABLE_OPTIONS = ("threads", "table", "level", "depth")


@dataclass(frozen=True)
class Thought:
    """An agent's move with its value and search data, for the side to move.

    ``value`` in discs is None for agents without values; ``moves`` has the values of the requested number of moves, best first.
    The other fields are those of `search.engine.limits.SearchResult`.
    """

    move: str
    value: float | None = None
    depth: int = 0
    confidence: int = 0
    pv: tuple[str, ...] = ()
    nodes: int = 0
    seconds: float = 0.0
    moves: tuple[MoveValue, ...] = ()

    @property
    def exact(self) -> bool:
        return self.confidence == 100


class Thinker:
    """The agent of *spec*, with *options* as defaults for what the spec does not set.

    *time*, in seconds per move without a clock, holds for a spec that sets no limit. `stop` may be called from any thread,
    again and again until the search has ended: a first call may come before it has begun.
    """

    def __init__(self, spec: str, *, time: float = 1.0, **options: object) -> None:
        self.spec = AgentSpec.parse(spec)
        self._settings = {"time": time, **options}
        own = {} if self.spec.is_program else self.spec.options
        options = {key: value for key, value in options.items() if value is not None}
        self.limited = bool(_LIMITS & (own.keys() | options.keys()))
        self.agent = self.spec.make(**(options if self.limited else {**options, "time": time}))

    @property
    def has_values(self) -> bool:
        return isinstance(self.agent, TimedAgent)

    def set_option(self, name: str, value: str) -> None:
        """Set one of the `SETTABLE_OPTIONS`; raise a ReversiError if the agent does not accept it."""
        if name not in SETTABLE_OPTIONS:
            raise ReversiError(f"option {quoted(name)}: expected one of {', '.join(SETTABLE_OPTIONS)}")
        spec = AgentSpec.parse(f"human:level={value}") if name == "level" else self.spec.with_(**{name: value})
        spec.check()
        vars(self).update(vars(Thinker(spec.text, **self._settings)))  # type: ignore[arg-type]

    def check(self, rules: Rules) -> None:
        """Raise a ReversiError if the agent cannot play that game; cheap, nothing is compiled."""
        self.agent.check(rules)

    def prepare(self, rules: Rules) -> None:
        """Load what the agent needs for that game, and compile what is not cached on this machine."""
        compile_ahead(parts_of([self.agent]), lambda: self.agent.prepare(rules))

    def think(
        self,
        position: Position,
        *,
        time: float | None = None,
        depth: int | None = None,
        moves: int = 1,
        clock: TimeControl | None = None,
    ) -> Thought:
        """Return the move for *position*, within *time* seconds and *depth* plies or the time control *clock*.

        These limits hold in addition to those of the spec; a time replaces the default. *moves* is the number of values.
        """
        if position.is_over():
            raise ReversiError("nothing to think about: the game is over")
        self.prepare(position.rules)
        began = perf_counter()
        if isinstance(self.agent, TimedAgent):
            limits = self._clocked(position, clock, depth) if clock else self._limits(time, depth)
            result = self.agent.search(position, limits, multi_pv=moves)
            return Thought(**(vars(result) | {"move": result.move or PASS_NAME}))
        action = self.agent.choose(position)
        return Thought(position.rules.name_of(action), seconds=perf_counter() - began)

    def ponder(
        self,
        position: Position,
        is_over: Callable[[], bool],
        *,
        depth: int | None = None,
        clock: TimeControl | None = None,
    ) -> None:
        """Search *position* in advance until *is_over* and `stop` is called, if the agent can ponder."""
        if isinstance(self.agent, SearchAgent):
            limits = self._clocked(position, clock, depth) if clock else self._limits(None, depth)
            ponder(self.agent.engine(position.rules), position, limits, is_over)

    def stop(self) -> None:
        """End the search early: the best move so far is the result."""
        self.agent.stop()

    def _clocked(self, position: Position, clock: TimeControl, depth: int | None) -> Limits:
        return self._limits(clock.max_seconds(position), depth, clock.usual_seconds(position))

    def _limits(self, time: float | None, depth: int | None, soft: float | None = None) -> Limits:
        assert isinstance(self.agent, TimedAgent)
        own = self.agent.limits
        depth = depth if isinstance(self.agent, SearchAgent) else None  # a tree search has none
        if not self.limited and (time is not None or depth is not None):
            own = replace(own, time=None)
        return replace(own, time=_least(own.time, time), depth=_least(own.depth, depth), soft=soft)


def default_agent(rules: Rules) -> str:
    """Return the spec of the strongest agent for that game."""
    from models.evaluator import strongest_evaluator

    return strongest_evaluator(rules)


def prepared_thinker(agent: str | None, rules: Rules, time: float = 1.0, threads: int | None = None) -> Thinker:
    """Return the thinker of *agent*, by default the strongest, with everything loaded for that game."""
    thinker = Thinker(agent or default_agent(rules), time=time, threads=threads)
    thinker.check(rules)
    thinker.prepare(rules)
    return thinker


def _least(first: Any, second: Any) -> Any:
    return min((limit for limit in (first, second) if limit is not None), default=None)


#: Number of searches of one position, each with twice the time of the one before: whenever the reply comes, the table holds a
#: search that had about the time elapsed. The last one ends after about a hundred times the time of a move.
ROUNDS = 7


def ponder(engine: Engine, position: Position, limits: Limits, is_over: Callable[[], bool]) -> None:
    """Search *position* under *limits*, and again with more time, until *is_over* and the engine is stopped.

    It ends earlier with an exact result, or without a time limit, since more time would not change the search.
    """
    for _ in range(ROUNDS):
        if is_over() or engine.search(position, limits).exact or limits.time is None:
            return
        limits = replace(limits, time=2 * limits.time, soft=None)


def expected_position(position: Position, line: Sequence[str]) -> Position | None:
    """Return the position after our move in *position* and the expected reply, the first of *line*; None if the game ends.

    Without an expected reply it is the position with the opponent to move.
    """
    after = position.play_all(line[:2])
    return None if not line or after.is_over() else after


class Ponderer:
    """Lets *thinker* ponder between moves, if *on*.

    `expect` is called with the chosen move, `begin` when there is nothing else to do, and `end` before the thinker is used again;
    all by one thread.
    """

    def __init__(self, thinker: Thinker, on: bool = True) -> None:
        self._thinker, self._on = thinker, on
        self._after: Position | None = None
        self._expected: Position | None = None
        self._work: Future[None] | None = None

    def expect(self, position: Position, line: Sequence[str]) -> None:
        """Note that the move chosen in *position* is the first of *line*, and its second the expected reply."""
        if self._on and line:
            self._after, self._expected = position.play(line[0]), expected_position(position, line)

    def begin(self, present: Position, *, depth: int | None = None, clock: TimeControl | None = None) -> None:
        """Ponder if *present* is the position after the chosen move, under the limits of a move."""
        if self._expected and present == self._after and not self._work:
            self._over = threading.Event()
            work = partial(self._thinker.ponder, self._expected, self._over.is_set, depth=depth, clock=clock)
            self._work = in_background(work)

    def end(self) -> None:
        """Stop pondering, and wait for its end."""
        while self._work and not self._work.done():
            self._over.set()
            self._thinker.stop()
            wait([self._work], POLL_SECONDS)
        self._work = None
