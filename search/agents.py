"""Agents: players made from a short text such as ``six-factor:depth=4``.

A spec is ``name[:key=value,…]`` and means the same on the command line, in a match, and as an environment's opponent.
Names:

* ``random``, ``greedy`` – no search;
* ``greedy-invincible`` – greedy, then perfect for the last twelve empty squares (``exact=``), after report 002;
* every evaluator by its own name (``six-factor``, ``four-attribute``, …) – alpha-beta with it, and exact near the end;
* ``double-alpha`` – the search of report 002: its sixteen-weight evaluation under iterative deepening;
* ``network`` – alpha-beta with a trained network (``weights=FILE`` for one of your own; ``probcut=`` standard deviations
  of safety for selective search, 0 for none; by default it is used where the clock or the nodes are limited);
* ``exact`` – the solver alone; a random move while more than ``exact`` squares are empty;
* ``rl`` and ``rl-search`` – a policy trained by reinforcement learning, and alpha-beta over its value (``train.rl``; ``rl:FILE``);
* ``gtp:COMMAND LINE`` and ``nboard:COMMAND LINE`` – another program, see `search.external.specs`.

Options of the searching agents: ``depth`` (plies), ``time`` (seconds a move), ``nodes``, ``threads``, ``table`` (MiB),
``exact`` (empty squares from which on it solves; by default six more than it searches deep, or as the clock allows), ``level``
1 to 4 (report 001: the depth), ``seed`` (equally good moves are drawn by lot; without it the first one is played).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from reversi_env import Position, ReversiError, Rules, plugins
from reversi_env.errors import shown
from search import evaluators
from search.external.specs import KINDS, agent_class, is_external, parse_external
from search.limits import Limits, SearchResult

DEFAULT_DEPTH = 4
INVINCIBLE_EMPTIES = 12


class AgentSpecError(ReversiError):
    """An agent spec that names no agent, or an option or value the agent does not take."""


class Agent(Protocol):
    """A player. It may keep state between moves (a random generator, a table), but none that a new game must reset."""

    def choose(self, position: Position) -> int:
        """The action to play in *position*, whose game is not over; the pass where nothing else is legal."""
        ...


@runtime_checkable
class FollowingAgent(Protocol):
    """A player that wants the moves that led to a position as well: another program, which follows whole games."""

    def choose_after(self, start: Position, moves: Sequence[str]) -> int:
        """The action to play after *moves*, by name with every pass, from *start*."""
        ...


def choose(agent: Agent, position: Position, start: Position, moves: Sequence[str]) -> int:
    """What *agent* plays in *position*, which *moves* lead to from *start*."""
    return agent.choose_after(start, moves) if isinstance(agent, FollowingAgent) else agent.choose(position)


def close(agent: Agent) -> None:
    """End what *agent* keeps running; only other programs need it."""
    if hasattr(agent, "close"):
        agent.close()


class RandomAgent:
    """Plays a uniformly random legal move."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def choose(self, position: Position) -> int:
        """A legal action, each equally likely."""
        actions = position.legal_actions()
        return actions[int(self._generator.integers(len(actions)))]


class GreedyAgent:
    """Takes the move that is best in discs right after it: most, or fewest in the reversed game. Ties are drawn by lot."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def choose(self, position: Position) -> int:
        """An action with the best disc difference after one ply."""
        actions = position.legal_actions()
        gains = np.array([-position.rules.sign * position.play(action).disc_difference() for action in actions])
        best = np.flatnonzero(gains == gains.max())
        return actions[int(best[self._generator.integers(best.size)])]


class ExactAgent:
    """Plays perfectly once at most *exact* squares are empty, and leaves the moves before that to another agent."""

    def __init__(self, before: Agent, exact: int = INVINCIBLE_EMPTIES, threads: int = 1, table: float = 64) -> None:
        self._before, self._exact = before, exact
        self.threads, self._table = threads, table
        self._solvers: dict[tuple[int, str], Any] = {}

    def choose(self, position: Position) -> int:
        """A best action, or the other agent's."""
        if position.empties > self._exact or position.must_pass():
            return self._before.choose(position)
        move = self.prepare(position.rules).solve(position).move
        return position.rules.action_from_name(move)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_solvers": {}}  # a copy makes its own when it first needs them

    def prepare(self, rules: Rules) -> Any:
        """The solver for that game; made at the first call, which is when its kernels are loaded or compiled."""
        from search.solver import Solver
        from search.table import Table

        key = (rules.size, rules.variant)
        if key not in self._solvers:
            self._solvers[key] = Solver(rules, threads=self.threads, table=Table(self._table))
            self._solvers[key].load_kernels()
        return self._solvers[key]


class SearchAgent:
    """Alpha-beta with an evaluator under fixed limits, on so many *threads*; each game it meets gets an engine with tables."""

    def __init__(
        self,
        evaluator: str,
        limits: Limits,
        threads: int = 1,
        table: float = 64,
        seed: int | None = None,
        probcut: float | None = None,
    ) -> None:
        self.evaluator, self.limits = evaluators.get(evaluator), limits
        self.threads, self._table, self._probcut = threads, table, probcut
        self._ties = None if seed is None else np.random.default_rng(seed)
        self._engines: dict[tuple[int, str], Any] = {}

    def choose(self, position: Position) -> int:
        """The engine's best action."""
        move = self.search(position).move
        return position.rules.action_from_name(move if move is not None else "pass")

    def search(self, position: Position, limits: Limits | None = None, **options: int) -> SearchResult:
        """All that the engine finds out, within *limits* in place of the agent's own if given."""
        return self.prepare(position.rules).search(position, limits or self.limits, ties=self._ties, **options)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_engines": {}, "evaluator": self.evaluator.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"evaluator": evaluators.get(state["evaluator"])})

    def prepare(self, rules: Rules) -> Any:
        """The engine for that game; made at the first call, which is when its kernels are loaded or compiled."""
        from search.engine import Engine

        key = (rules.size, rules.variant)
        if key not in self._engines:
            engine = Engine(
                self.evaluator,
                rules,
                threads=self.threads,
                megabytes=self._table,
                selective=self._probcut != 0,
            )
            if self._probcut is not None:
                engine.set_probcut(self._probcut)
            self._engines[key] = engine
        return self._engines[key]


def _searching(
    evaluator: str,
    *,
    depth: int | None = None,
    time: float | None = None,
    nodes: int | None = None,
    exact: int | None = None,
    level: int | None = None,
    threads: int = 1,
    table: float = 64,
    seed: int | None = None,
    weights: str | None = None,
    probcut: float | None = None,
) -> SearchAgent:
    if weights is not None:
        evaluator = f"{evaluator}:weights={weights}"
    if depth is None:
        depth = level
    if depth is None and time is None and nodes is None:
        depth = DEFAULT_DEPTH
    limits = Limits(time=time, depth=depth, nodes=nodes, empties_exact=exact)
    return SearchAgent(evaluator, limits, threads, table, seed, probcut)


def _greedy_invincible(*, exact: int = INVINCIBLE_EMPTIES, threads: int = 1, table: float = 64, seed: int = 0) -> Agent:
    return ExactAgent(GreedyAgent(seed), exact, threads, table)


def _exact(*, exact: int = 16, threads: int = 1, table: float = 64, seed: int = 0) -> Agent:
    return ExactAgent(RandomAgent(seed), exact, threads, table)


def reads_whole(low: int, high: int | None = None) -> Callable[[str], int]:
    """What reads an option that is a whole number."""

    def read(text: str) -> int:
        number = int(text)
        if number < low or (high is not None and number > high):
            raise ValueError
        return number

    read.__doc__ = f"a whole number, {low} or more" if high is None else f"a whole number from {low} to {high}"
    return read


def reads_number(low: float, high: float) -> Callable[[str], float]:
    """What reads an option that is a number."""

    def read(text: str) -> float:
        number = float(text)
        if not low <= number <= high:
            raise ValueError
        return number

    read.__doc__ = f"a number from {low:.10g} to {high:.10g}"
    return read


def reads_path(text: str) -> str:
    """Replaced below: what a value must be."""
    if not text:
        raise ValueError
    return text


reads_path.__doc__ = "the path of a weight file"


_SEED = {"seed": reads_whole(0)}
_SOLVING = _SEED | {"exact": reads_whole(0, 64), "threads": reads_whole(1, 1024), "table": reads_number(0.001, 2**20)}
_SEARCHING = _SOLVING | {
    "depth": reads_whole(1, 60),
    "time": reads_number(0.001, 1e6),
    "nodes": reads_whole(1, 10**18),
    "level": reads_whole(1, 4),
}

_EXTERNAL = {"time": _SEARCHING["time"], "limit": reads_number(0.001, 1e6), "depth": _SEARCHING["depth"]}
_LEARNED = _SEARCHING | {"weights": reads_path, "probcut": reads_number(0, 10)}

_FIXED: dict[str, tuple[Callable[..., Agent], dict[str, Callable[[str], Any]]]] = {
    "random": (RandomAgent, _SEED),
    "greedy": (GreedyAgent, _SEED),
    "greedy-invincible": (_greedy_invincible, _SOLVING),
    "exact": (_exact, _SOLVING),
    "double-alpha": (partial(_searching, "sixteen-weight"), _SEARCHING),
}
#: The option that may stand without its name, first, by agent: ``rl:FILE`` is ``rl:weights=FILE``.
_FIRST: dict[str, str] = {}
#: Entry points in this group have the name of the agent that they `register`, and are loaded when it is asked for.
PLUGINS = "reversi_search.agents"


def register(
    name: str, factory: Callable[..., Agent], readers: dict[str, Callable[[str], Any]], first: str | None = None
) -> None:
    """Make an agent available under *name*: how it is made of its options, and what reads each option's text.

    *first*: the option whose value may stand alone behind the colon. A reader raises ValueError, and its docstring says what it
    expects.
    """
    _FIXED[name] = factory, readers
    if first is not None:
        _FIRST[name] = first


def names() -> tuple[str, ...]:
    """All agents that `make` knows, evaluators included; plug-ins are not loaded for it."""
    return tuple(sorted({*_FIXED, *plugins.names(PLUGINS), *evaluators.names()}))


def option_names(name: str) -> tuple[str, ...]:
    """The options that the agent of that name takes."""
    return tuple(sorted(_factory(name)[1]))


def make(spec: str, **defaults: object) -> Agent:
    """The agent that *spec* describes; *defaults* hold for the options that it leaves open and its agent knows.

    >>> make("greedy:seed=3").choose(Position.initial()) in Position.initial().legal_actions()
    True
    """
    factory, options = _read(spec, defaults)
    return factory(**options)


def check(spec: str) -> None:
    """Raise an `AgentSpecError` if *spec* names no agent or has options that it does not take; nothing is made or loaded."""
    _read(spec, {})


def _read(spec: str, defaults: dict[str, object]) -> tuple[Callable[..., Agent], dict[str, Any]]:
    """How to make the agent of *spec*, and of which options."""
    if is_external(spec):
        factory, readers, options = _external(spec)
    else:
        name, options = parse_spec(spec)
        factory, readers = _factory(name)
    known = {key: value for key, value in defaults.items() if key in readers and value is not None}
    if "level" in options:  # another name for the depth
        known.pop("depth", None)
    for key, text in options.items():
        known[key] = _read_option(spec, key, text, readers)
    return factory, known


def parse_spec(spec: str) -> tuple[str, dict[str, str]]:
    """The name and the option texts of a spec; the name is checked, the options are not yet."""
    if not isinstance(spec, str):
        raise AgentSpecError(f"agent {shown(spec)}: expected a text such as 'six-factor:depth=4'")
    if is_external(spec):
        raise AgentSpecError(f"agent {shown(spec)} is another program: expected one of {', '.join(names())}")
    name, _, option_text = spec.partition(":")
    _factory(name)
    return name, _option_texts(spec, option_text, _FIRST.get(name))


def _option_texts(spec: str, option_text: str, first: str | None = None) -> dict[str, str]:
    options: dict[str, str] = {}
    for number, item in enumerate(filter(None, option_text.split(","))):
        key, equals, value = item.partition("=")
        if not equals and first is not None and number == 0:
            key, equals, value = first, "=", item
        if not equals:
            raise AgentSpecError(f"option {shown(item)} of agent {shown(spec)}: expected key=value")
        if key in options:
            raise AgentSpecError(f"option {shown(key)} of agent {shown(spec)} is given twice: expected it once")
        options[key] = value
    return options


def _external(spec: str) -> tuple[Callable[..., Agent], dict[str, Callable[[str], Any]], dict[str, str]]:
    """How to make the player that is another program, how its options are read, and those that *spec* gives."""
    try:
        kind, option_text, command = parse_external(spec)
    except ValueError as error:
        raise AgentSpecError(f"agent {shown(spec)}: {error}") from None
    readers = {key: _EXTERNAL[key] for key in KINDS[kind]}
    return partial(agent_class(kind), command), readers, _option_texts(spec, option_text)


def _factory(name: str) -> tuple[Callable[..., Agent], dict[str, Callable[[str], Any]]]:
    if name not in _FIXED and not evaluators.exists(name):
        plugins.load_named(PLUGINS, name)
    if name in _FIXED:
        return _FIXED[name]
    if evaluators.exists(name):
        return partial(_searching, name), _LEARNED if evaluators.takes_weights(name) else _SEARCHING
    close = get_close_matches(name.lower(), (*names(), *KINDS), n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise AgentSpecError(f"agent {shown(name)} is unknown{hint}: expected one of {', '.join(names())}")


def _read_option(spec: str, key: str, text: str, readers: dict[str, Callable[[str], Any]]) -> Any:
    if key not in readers:
        close = get_close_matches(key.lower(), readers, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise AgentSpecError(
            f"option {shown(f'{key}={text}')} of agent {shown(spec)} is unknown{hint}: "
            f"expected one of {', '.join(sorted(readers))}"
        )
    try:
        return readers[key](text)
    except ValueError:
        raise AgentSpecError(f"{key}={shown(text)} of agent {shown(spec)}: expected {readers[key].__doc__}") from None
