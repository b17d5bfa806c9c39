"""Agents: players made from a short text such as ``six-factor:depth=4``.

A spec is ``name[:key=value,…]`` and means the same on the command line, in a match, and as an environment's opponent.
Names:

* ``random``, ``greedy`` – no search;
* ``greedy-invincible`` – after report 002: the move with the best evaluation (``evaluator=``, ``sixteen-weight`` by default), then
  perfect play of the last twelve empty squares (``exact=``);
* every evaluator by its own name (``six-factor``, ``four-attribute``, …) – alpha-beta with it, and exact near the end;
* ``double-alpha`` – the search of report 002, Double-Alpha Maximax, with its time control and an ``evaluator=``, ``sixteen-weight``
  by default. It takes ``depth``, ``time``, ``nodes``, ``table``, ``seed``, ``book`` and ``variety``, and uses four
  fifths of ``time`` or ``nodes``. It finds out who wins, not by how much, and has no solver of endgames;
* ``network`` – alpha-beta with a trained network (``weights=FILE`` for one of your own; ``probcut=`` standard deviations
  of safety for selective search, 0 for none; by default it is used where the clock or the nodes are limited);
* ``exact`` – the solver alone; a random move while more than ``exact`` squares are empty;
* ``human`` – ten levels for people, ``human:level=1`` to ``10`` or ``human:1`` (`models.human`);
* ``rl`` and ``rl-search`` – a policy trained by reinforcement learning, and alpha-beta over its value (``train.rl``; ``rl:FILE``);
* ``gtp:COMMAND LINE`` and ``nboard:COMMAND LINE`` – another program; everything behind the first colon is the command line, quoted
  as in a shell. Its options stand in brackets, ``gtp[time=0.1,limit=5]:…``: ``time`` (seconds a move that the program is told,
  where its protocol can say so), ``limit`` (seconds a move after which it has lost the game; 60 if not given), ``depth`` (plies;
  ``nboard`` only, 8 if not given).

Options of the searching agents: ``depth`` (plies), ``time`` (seconds a move), ``nodes``, ``threads``, ``table`` (MiB),
``exact`` (empty squares from which on it solves; by default six more than it searches deep, or as the clock allows), ``seed``
(equally good moves are drawn at random; without it the first one is played), ``book`` (``yes`` for the packaged book of
openings, or the file of one; none if not given), ``variety`` (maximum loss of a book move in discs, at most a sixth of the book's
margin: one of these moves is drawn at random, 0 for the best).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from reversi_env import ReversiError, plugins
from reversi_env.errors import did_you_mean, quoted
from search import evaluators
from search.agents.base import Agent
from search.agents.players import (
    INVINCIBLE_EMPTIES,
    DoubleAlphaAgent,
    ExactAgent,
    GreedyAgent,
    RandomAgent,
    SearchAgent,
)
from search.engine.limits import Limits
from search.evaluators.base import Evaluator, file_name

DEFAULT_DEPTH = 4
_PROGRAM = re.compile(r"(?P<kind>[a-z]+)(?:\[(?P<options>[^\]]*)\])?:(?P<command>.*)", re.DOTALL)


class AgentSpecError(ReversiError):
    """An agent spec that names no agent, or an option or value the agent does not take."""


# --- specs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AgentSpec:
    """A player as text, parsed once: ``name[:key=value,…]``, or ``KIND[key=value,…]:COMMAND LINE`` for another program.

    ``options`` are texts by name, in the order in which they were written; ``command`` is the command line of another program, and
    empty for agents of this package. Only the grammar is checked here: `check` and `make_agent` know the names, options and ranges.

    >>> spec = AgentSpec.parse("six-factor:depth=4,seed=1")
    >>> spec.name, spec.options
    ('six-factor', {'depth': '4', 'seed': '1'})
    >>> str(spec.with_(depth=6)), str(spec.with_defaults(depth=6, time=0.5))
    ('six-factor:depth=6,seed=1', 'six-factor:depth=4,seed=1,time=0.5')
    """

    text: str
    name: str = field(init=False, repr=False, compare=False)
    options: Mapping[str, str] = field(init=False, repr=False, compare=False)
    command: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise AgentSpecError(f"agent {quoted(self.text)}: expected a text such as 'six-factor:depth=4'")
        program = re.match(rf"({'|'.join(PROGRAMS)})(\[|:|$)", self.text) is not None
        name, options, command = _split_program(self.text) if program else (*_split(self.text), "")
        for key, value in (("name", name), ("options", _option_texts(self.text, name, options)), ("command", command)):
            object.__setattr__(self, key, value)

    def __str__(self) -> str:
        """The text, as it was written."""
        return self.text

    @classmethod
    def parse(cls, text: AgentSpec | str) -> AgentSpec:
        """The spec that *text* is; an `AgentSpecError` if it follows no grammar. A spec is given back as it is."""
        return text if isinstance(text, AgentSpec) else cls(text)

    def with_(self, **options: object) -> AgentSpec:
        """The same agent with these options in place of its own, or beside them."""
        return self._with_all({**self.options, **{key: str(value) for key, value in options.items()}})

    def without(self, *names: str) -> AgentSpec:
        """The same agent without these options of its own."""
        return self._with_all({key: value for key, value in self.options.items() if key not in names})

    def _with_all(self, options: Mapping[str, str]) -> AgentSpec:
        """The same agent with just these options."""
        listed = ",".join(f"{key}={value}" for key, value in options.items())
        if self.command:
            return AgentSpec(f"{self.name}[{listed}]:{self.command}")
        return AgentSpec(f"{self.name}:{listed}" if listed else self.name)

    def with_defaults(self, **options: object) -> AgentSpec:
        """The same agent with those of these options that it leaves open; None stands for no option."""
        missing = {key: value for key, value in options.items() if key not in self.options and value is not None}
        return self.with_(**missing) if missing else self

    def files(self) -> dict[str, str]:
        """The files that it names, by option: weights, and a book."""
        named = {key: self.options[key] for key in ("weights", "book") if key in self.options}
        return {key: name for key, name in named.items() if (key, name) != ("book", "yes")}

    @property
    def is_program(self) -> bool:
        """Whether it is another program."""
        return bool(self.command)

    @property
    def evaluator(self) -> str:
        """The name of the evaluator that has the agent's name, with its weight file; see `check_own`."""
        self.check_own()
        return file_name(self.name, self.options["weights"]) if "weights" in self.options else self.name

    def check_own(self) -> None:
        """Raise an `AgentSpecError` if this is no agent of this package or a plug-in: another program, or an unknown name."""
        if self.is_program:
            raise AgentSpecError(f"agent {quoted(self.text)} is another program: expected one of {', '.join(names())}")
        _kind(self.name)

    def check(self) -> None:
        """Raise an `AgentSpecError` if it names no agent or has options that it does not take; nothing is made or loaded."""
        self._values({})

    def make(self, **defaults: object) -> Agent:
        """The agent; *defaults* hold for the options that the spec leaves open and its agent knows.

        An option that neither its agent nor any of this module knows, as one that is misspelt, is an `AgentSpecError`.
        """
        values = self._values(defaults)
        kind = _kind(self.name)
        return kind.make(self.command, **values) if self.is_program else kind.make(**values)

    def _values(self, defaults: Mapping[str, object]) -> dict[str, Any]:
        """The options that the agent is made of."""
        known = _kind(self.name).options
        for key, value in defaults.items():
            if key not in known and key not in _SHARED:
                _value(self.text, key, str(value), known)  # which refuses it
        values = {key: value for key, value in defaults.items() if key in known and value is not None}
        return values | {key: _value(self.text, key, text, known) for key, text in self.options.items()}


def _split(text: str) -> tuple[str, str]:
    name, _, options = text.partition(":")
    return name, options


def _split_program(text: str) -> tuple[str, str, str]:
    """The kind, the options and the command line of a program's spec."""
    match = _PROGRAM.fullmatch(text)
    if match is None:
        raise AgentSpecError(
            f"agent {quoted(text)}: expected KIND:COMMAND LINE or KIND[key=value,…]:COMMAND LINE, as in gtp:gtp-rhino -l 3 -b 0"
        )
    try:
        words = shlex.split(match["command"])
    except ValueError as error:
        raise AgentSpecError(
            f"agent {quoted(text)}: its command line cannot be read ({error}): expected it quoted as in a shell"
        ) from None
    if not words:
        raise AgentSpecError(
            f"agent {quoted(text)}: expected a command line behind the colon, as in gtp:gtp-rhino -l 3 -b 0"
        )
    return match["kind"], match["options"] or "", match["command"].strip()


def _option_texts(spec: str, name: str, option_text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for number, item in enumerate(filter(None, option_text.split(","))):
        key, equals, value = item.partition("=")
        positional = _kind(name).positional if not equals and number == 0 else None
        if positional is not None:
            key, value = positional, item
        elif not equals:
            raise AgentSpecError(f"option {quoted(item)} of agent {quoted(spec)}: expected key=value")
        if key in options:
            raise AgentSpecError(f"option {quoted(key)} of agent {quoted(spec)} is given twice: expected it once")
        options[key] = value
    return options


def _value(spec: str, key: str, text: str, options: Mapping[str, Option]) -> Any:
    if key not in options:
        raise AgentSpecError(
            f"option {quoted(f'{key}={text}')} of agent {quoted(spec)} is unknown{did_you_mean(key.lower(), options)}: "
            f"expected one of {', '.join(sorted(options))}"
        )
    try:
        return options[key].read(text)
    except ValueError:
        raise AgentSpecError(
            f"{key}={quoted(text)} of agent {quoted(spec)}: expected {options[key].expected}"
        ) from None


# --- kinds of agents ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """How an option's text is read (a ValueError refuses it), and what is expected, in words."""

    read: Callable[[str], Any]
    expected: str


def integer_option(low: int, high: int | None = None) -> Option:
    """An option that is a whole number."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit():
            raise ValueError
        number = int(text)
        if number < low or (high is not None and number > high):
            raise ValueError
        return number

    return Option(read, f"a whole number, {low} or more" if high is None else f"a whole number from {low} to {high}")


def number_option(low: float, high: float) -> Option:
    """An option that is a number."""

    def read(text: str) -> float:
        value = float(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return Option(read, f"a number from {low:.10g} to {high:.10g}")


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _device(text: str) -> str:
    if text not in ("cpu", "cuda"):
        raise ValueError
    return text


WEIGHT_FILE = Option(_not_empty, "the path of a weight file")
SEED = integer_option(0)
DEPTH = integer_option(1, 60)
EXACT = integer_option(0, 64)
_SOLVING = {"seed": SEED, "exact": EXACT, "threads": integer_option(1, 1024), "table": number_option(0.001, 2**20)}
_SEARCHING = _SOLVING | {
    "depth": DEPTH,
    "time": number_option(0.001, 1e6),
    "nodes": integer_option(1, 10**18),
    "book": Option(_not_empty, "yes, or the path of a book"),
    "variety": number_option(0, 64),
}
PROBCUT = number_option(0, 10)
#: Evaluator of the players of report 002, unless they are told another.
REPORT_002_EVALUATOR = "sixteen-weight"
_EVALUATOR = {"evaluator": Option(lambda text: evaluators.get_evaluator(text).name, "the name of an evaluator")}
_LEARNED = _SEARCHING | {"weights": WEIGHT_FILE, "probcut": PROBCUT}
_PLAYING = {"time": _SEARCHING["time"], "limit": number_option(0.001, 1e6)}
#: Options that may be meant for another agent: those who do not know them play without.
_SHARED = _LEARNED | _PLAYING


@dataclass(frozen=True)
class _AgentKind:
    """How agents of a name are made, of which options, and which of them may stand first without its name."""

    make: Callable[..., Agent]
    options: Mapping[str, Option]
    positional: str | None = None


def _make_search_agent(
    evaluator: Evaluator | str,
    *,
    depth: int | None = None,
    time: float | None = None,
    nodes: int | None = None,
    exact: int | None = None,
    weights: str | None = None,
    **options: Any,
) -> Agent:
    if weights is not None:
        evaluator = file_name(str(evaluator), weights)
    return SearchAgent(evaluator, _limits(depth, time, nodes, exact), **options)


def _limits(depth: int | None, time: float | None, nodes: int | None, exact: int | None = None) -> Limits:
    if depth is None and time is None and nodes is None:
        depth = DEFAULT_DEPTH
    return Limits(time=time, depth=depth, nodes=nodes, empties_exact=exact)


def _double_alpha(
    *,
    evaluator: str = REPORT_002_EVALUATOR,
    depth: int | None = None,
    time: float | None = None,
    nodes: int | None = None,
    **options: Any,
) -> Agent:
    return DoubleAlphaAgent(evaluator, _limits(depth, time, nodes), **options)


def _greedy_invincible(
    *, evaluator: str = REPORT_002_EVALUATOR, exact: int = INVINCIBLE_EMPTIES, seed: int = 0, **options: Any
) -> Agent:
    return ExactAgent(GreedyAgent(seed, evaluator), exact, **options)


def _exact(*, exact: int = 16, seed: int = 0, **options: Any) -> Agent:
    return ExactAgent(RandomAgent(seed), exact, **options)


def lazy_agent(place: str) -> Callable[..., Agent]:
    """Return a maker of agents of the class at *place*, ``module:name``, which is imported for the first of them."""

    def make(*command: str, **options: Any) -> Agent:
        agent: Agent = plugins.load(place)(*command, **options)
        return agent

    return make


#: The agents of this project; those of the higher layers by import path. Other packages `register` theirs.
_KINDS: dict[str, _AgentKind] = {
    "random": _AgentKind(RandomAgent, {"seed": SEED}),
    "greedy": _AgentKind(GreedyAgent, {"seed": SEED}),
    "greedy-invincible": _AgentKind(_greedy_invincible, _SOLVING | _EVALUATOR),
    "exact": _AgentKind(_exact, _SOLVING),
    "double-alpha": _AgentKind(
        _double_alpha,
        {key: option for key, option in _SEARCHING.items() if key not in ("exact", "threads")} | _EVALUATOR,
    ),
    "human": _AgentKind(lazy_agent("models.human:HumanAgent"), {"level": integer_option(1, 10), "seed": SEED}, "level"),
    "zero": _AgentKind(
        lazy_agent("models.zero:ZeroAgent"),
        {
            "weights": WEIGHT_FILE,
            "simulations": integer_option(0, 100_000),
            "depth": integer_option(0, 10),
            "exact": EXACT,
            "temperature": number_option(0, 100),
            "seed": SEED,
            "device": Option(_device, "cpu or cuda"),
        },
        "weights",
    ),
    "rl": _AgentKind(
        lazy_agent("models.policy.agent:PolicyAgent"),
        {"weights": WEIGHT_FILE, "seed": SEED, "temperature": number_option(0, 100)},
        "weights",
    ),
    "rl-search": _AgentKind(
        lazy_agent("models.policy.agent:PolicySearchAgent"),
        {"weights": WEIGHT_FILE, "seed": SEED, "depth": DEPTH, "exact": EXACT},
        "weights",
    ),
}
#: Other programs, by the protocol that they speak.
PROGRAMS: dict[str, _AgentKind] = {
    "gtp": _AgentKind(lazy_agent("search.agents.external.gtp:GtpAgent"), _PLAYING),
    "nboard": _AgentKind(lazy_agent("search.agents.external.nboard:NBoardAgent"), _PLAYING | {"depth": DEPTH}),
}


def register(
    name: str, make: Callable[..., Agent], options: Mapping[str, Option], positional: str | None = None
) -> None:
    """Make an agent available under *name*: how it is made of its options, and how each option's text is read.

    *positional*: the option whose value may stand alone behind the colon: ``rl:FILE`` is ``rl:weights=FILE``.
    """
    _KINDS[name] = _AgentKind(make, options, positional)


def _kind(name: str) -> _AgentKind:
    if name in PROGRAMS:
        return PROGRAMS[name]
    if name not in _KINDS and not evaluators.exists(name):
        plugins.load_named(name)
    if name in _KINDS:
        return _KINDS[name]
    if evaluators.exists(name):
        return _AgentKind(partial(_make_search_agent, name), _LEARNED if evaluators.takes_weights(name) else _SEARCHING)
    near = did_you_mean(name.lower(), dict.fromkeys((*names(), *PROGRAMS)))
    raise AgentSpecError(f"agent {quoted(name)} is unknown{near}: expected one of {', '.join(names())}")


# --- agents by name -------------------------------------------------------------------------------


def names() -> tuple[str, ...]:
    """All agents that `make_agent` knows, evaluators included; plug-ins are not loaded for it."""
    return tuple(sorted({*_KINDS, *plugins.names(), *evaluators.names()}))


def option_names(name: str) -> tuple[str, ...]:
    """The options that the agent of that name takes."""
    return tuple(sorted(_kind(name).options))


def make_agent(spec: AgentSpec | Evaluator | str, **defaults: object) -> Agent:
    """The agent that *spec* describes; *defaults* hold for the options that it leaves open and its agent knows.

    An evaluator, in place of a spec, searches with the options given, such as ``depth=4``.

    >>> from reversi_env import Position
    >>> make_agent("greedy:seed=3").choose(Position.initial()) in Position.initial().legal_actions()
    True
    """
    if isinstance(spec, Evaluator):
        options = {
            key: _value(f"{spec.name}:{key}={text}", key, str(text), _SEARCHING) for key, text in defaults.items()
        }
        return _make_search_agent(spec, **options)
    return AgentSpec.parse(spec).make(**defaults)
