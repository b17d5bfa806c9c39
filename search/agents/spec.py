"""`AgentSpec`: an agent as a short text such as ``six-factor:depth=4``.

A spec is ``name[:key=value,…]`` and means the same on the command line, in a match, and as an environment's opponent. An external
program is ``gtp:COMMAND LINE`` or ``nboard:COMMAND LINE``; its options are in brackets, ``gtp[time=0.1,limit=5]:COMMAND LINE``.
`search.agents.registry` has the names and their options.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reversi_env import ReversiError
from reversi_env.errors import did_you_mean, quoted
from reversi_env.options import Options
from search.agents.base import Agent
from search.agents.registry import PROGRAMS, AgentSpecError, SearchOptions, agent_kind, names, shared_options
from search.agents.searching import search_agent
from search.evaluators.base import Evaluator, file_name

_PROGRAM = re.compile(r"(?P<name>[a-z]+)(?:\[(?P<options>[^\]]*)\])?:(?P<command>.*)", re.DOTALL)


@dataclass(frozen=True)
class AgentSpec:
    """An agent as text: ``name[:key=value,…]``, or ``PROTOCOL[key=value,…]:COMMAND LINE`` for an external program.

    ``options`` are texts by name, in the order in which they were written; ``command`` is the command line of an external program,
    and empty for other agents. The constructor checks only the syntax; `check` and `make` check names, options and ranges.

    >>> spec = AgentSpec.parse("six-factor:depth=4,seed=1")
    >>> spec.name, spec.options
    ('six-factor', {'depth': '4', 'seed': '1'})
    >>> str(spec.with_(depth=6))
    'six-factor:depth=6,seed=1'
    """

    text: str
    name: str = field(init=False, repr=False, compare=False)
    options: Mapping[str, str] = field(init=False, repr=False, compare=False)
    command: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise AgentSpecError(f"agent {quoted(self.text)}: expected a text such as 'six-factor:depth=4'")
        if re.match(rf"({'|'.join(PROGRAMS)})(\[|:|$)", self.text):
            name, options, command = _split_program(self.text)
        else:
            name, _, options = self.text.partition(":")
            command = ""
        for key, value in (("name", name), ("options", _option_texts(self.text, name, options)), ("command", command)):
            object.__setattr__(self, key, value)

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, text: AgentSpec | str) -> AgentSpec:
        """Return the spec of *text*, or raise an `AgentSpecError`. A spec is returned unchanged."""
        return text if isinstance(text, AgentSpec) else cls(text)

    def with_(self, **options: object) -> AgentSpec:
        """Return the same agent with these options set."""
        return self._with_all({**self.options, **{key: str(value) for key, value in options.items()}})

    def without(self, *names: str) -> AgentSpec:
        """Return the same agent with these options unset."""
        return self._with_all({key: value for key, value in self.options.items() if key not in names})

    def _with_all(self, options: Mapping[str, str]) -> AgentSpec:
        listed = ",".join(f"{key}={value}" for key, value in options.items())
        if self.command:
            return AgentSpec(f"{self.name}[{listed}]:{self.command}")
        return AgentSpec(f"{self.name}:{listed}" if listed else self.name)

    def files(self) -> dict[str, str]:
        """Return the files that the spec names, by option: weights and a book."""
        named = {key: self.options[key] for key in ("weights", "book") if key in self.options}
        return {key: name for key, name in named.items() if (key, name) != ("book", "yes")}

    @property
    def is_program(self) -> bool:
        return bool(self.command)

    @property
    def evaluator(self) -> str:
        """The name of the evaluator that has the agent's name, with its weight file; see `check_not_program`."""
        self.check_not_program()
        return file_name(self.name, self.options["weights"]) if "weights" in self.options else self.name

    def check_not_program(self) -> None:
        """Raise an `AgentSpecError` if the name is unknown or the agent is an external program."""
        if self.is_program:
            raise AgentSpecError(f"agent {quoted(self.text)} is a program: expected one of {', '.join(names())}")
        agent_kind(self.name)

    def check(self) -> None:
        """Raise an `AgentSpecError` for an unknown name, an unknown option or a value out of range; no agent is made."""
        self._values({})

    def make(self, **defaults: object) -> Agent:
        """Return the agent. *defaults* hold for the options that the spec does not set and its agent has.

        A default that no agent of this project has raises an `AgentSpecError`, as a misspelt option does.
        """
        values, kind = self._values(defaults), agent_kind(self.name)
        return kind.make(self.command, **values) if self.is_program else kind.make(**values)

    def _values(self, defaults: Mapping[str, object]) -> dict[str, Any]:
        kind = agent_kind(self.name)
        usable = {key: value for key, value in defaults.items() if key in kind.option_names and value is not None}
        for key in defaults.keys() - kind.option_names - shared_options():
            raise AgentSpecError(
                f"option {quoted(key)} of agent {quoted(self.text)} is unknown{did_you_mean(key, kind.option_names)}: "
                f"expected one of {', '.join(sorted(kind.option_names))}"
            )
        try:
            return _set_options(kind.options.from_texts(self.options, **usable))
        except ReversiError as error:
            raise AgentSpecError(f"agent {quoted(self.text)}: {error}") from None


def _split_program(text: str) -> tuple[str, str, str]:
    match = _PROGRAM.fullmatch(text)
    example = "as in gtp:gtp-rhino -l 3 -b 0"
    if match is None:
        raise AgentSpecError(
            f"agent {quoted(text)}: expected PROTOCOL:COMMAND LINE or PROTOCOL[key=value,…]:COMMAND LINE, {example}"
        )
    try:
        words = shlex.split(match["command"])
    except ValueError as error:
        raise AgentSpecError(
            f"agent {quoted(text)}: its command line cannot be read ({error}): expected it quoted as in a shell"
        ) from None
    if not words:
        raise AgentSpecError(f"agent {quoted(text)}: expected a command line after the colon, {example}")
    return match["name"], match["options"] or "", match["command"].strip()


def _option_texts(spec: str, name: str, option_text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for number, item in enumerate(filter(None, option_text.split(","))):
        key, equals, value = item.partition("=")
        positional = agent_kind(name).positional if not equals and number == 0 else None
        if positional is not None:
            key, value = positional, item
        elif not equals:
            raise AgentSpecError(f"option {quoted(item)} of agent {quoted(spec)}: expected key=value")
        if key in options:
            raise AgentSpecError(f"option {quoted(key)} of agent {quoted(spec)} is set twice: expected it once")
        options[key] = value
    return options


def _set_options(options: Options) -> dict[str, Any]:
    return {name: value for name, value in vars(options).items() if value is not None}


def make_agent(spec: AgentSpec | Evaluator | str, **defaults: object) -> Agent:
    """Return the agent that *spec* describes; *defaults* hold for the options that it does not set and its agent has.

    An evaluator in place of a spec makes a search agent with these options, such as ``depth=4``.

    >>> from reversi_env import Position
    >>> make_agent("greedy:seed=3").choose(Position.initial()) in Position.initial().legal_actions()
    True
    """
    if isinstance(spec, Evaluator):
        try:
            return search_agent(spec, **_set_options(SearchOptions.from_dict(defaults)))
        except ReversiError as error:
            raise AgentSpecError(f"agent {quoted(spec.name)}: {error}") from None
    return AgentSpec.parse(spec).make(**defaults)
