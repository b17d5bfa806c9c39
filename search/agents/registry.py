"""The table of agents: names, options and import paths.

``_KINDS`` has the built-in agents, ``PROGRAMS`` the external ones; the name of any evaluator is an alpha-beta agent with it.
docs/reference/agents.md describes them all.

Packages add agents and evaluators by entry points of the group ``reversi_lab.agents``. The name of an entry point is that of the
agent; its object is a subclass of `Agent` with ``spec_options``, or an `Evaluator`.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal

from reversi_env import ReversiError, loading
from reversi_env.errors import did_you_mean, quoted
from reversi_env.options import Options, option
from search import evaluators
from search.agents.base import Agent
from search.agents.searching import search_agent

_exact = partial(option, None, "Empty squares from which on it plays perfectly.", low=0, high=64)
_threads = partial(option, None, "Number of threads.", low=1, high=1024)
_table = partial(option, None, "Size of the transposition table in MiB.", low=0.001, high=1 << 20)
_depth = partial(option, None, "Search depth in plies.", low=1, high=60)
_time = partial(option, None, "Seconds per move.", low=0.001, high=1_000_000)
_weights = partial(option, None, "Weight file.")
_temperature = partial(option, None, "Sampling temperature of the moves; 0 plays the best move.", low=0, high=100)


class AgentSpecError(ReversiError):
    """An agent spec with an unknown name, option or value."""


# --- options: None leaves the choice to the agent -------------------------------------------------


@dataclass(frozen=True)
class _SeedOptions(Options):
    seed: int | None = option(None, "Random seed; in a search it decides between moves of equal value.", low=0)


@dataclass(frozen=True)
class _SolverOptions(_SeedOptions):
    exact: int | None = _exact()
    threads: int | None = _threads()
    table: float | None = _table()


@dataclass(frozen=True)
class _PerfectOptions(_SeedOptions):
    threads: int | None = _threads()
    table: float | None = _table()
    book: str | None = option(None, "File of a solved book.")


@dataclass(frozen=True)
class GreedyInvincibleOptions(_SolverOptions):
    """Options of ``greedy-invincible``."""

    evaluator: str | None = option(None, "Name of the evaluator (default: sixteen-weight).")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evaluator is not None:
            evaluators.get_evaluator(self.evaluator)


@dataclass(frozen=True)
class SearchOptions(_SeedOptions):
    """Options of alpha-beta search."""

    depth: int | None = _depth()
    time: float | None = _time()
    nodes: int | None = option(None, "Nodes per move and thread.", low=1)
    table: float | None = _table()
    book: str | None = option(None, "Opening book: yes for the packaged one, or a file.")
    variety: float | None = option(None, "Maximum loss of a book move in discs; 0 plays the best.", low=0, high=64)
    exact: int | None = _exact()
    threads: int | None = _threads()


@dataclass(frozen=True)
class WeightedSearchOptions(SearchOptions):
    """Options of alpha-beta search with an evaluator that reads weight files."""

    weights: str | None = _weights()
    probcut: float | None = option(None, "ProbCut margin in standard deviations; 0 for none.", low=0, high=10)


@dataclass(frozen=True)
class _HumanOptions(_SeedOptions):
    level: int | None = option(None, "Level.", low=1, high=10)


@dataclass(frozen=True)
class _FileOptions(Options):
    weights: str | None = _weights()


@dataclass(frozen=True)
class _PolicyOptions(_SeedOptions):
    weights: str | None = _weights()
    temperature: float | None = _temperature()


@dataclass(frozen=True)
class _PolicySearchOptions(_SeedOptions):
    weights: str | None = _weights()
    depth: int | None = _depth()
    exact: int | None = _exact()


@dataclass(frozen=True)
class _ZeroOptions(_PolicyOptions):
    simulations: int | None = option(None, "Maximum simulations of the tree search per move.", low=0, high=100_000)
    time: float | None = _time()
    depth: int | None = option(None, "Depth of alpha-beta in plies.", low=0, high=10)
    exact: int | None = _exact()
    device: Literal["cpu", "cuda"] | None = option(None, "Device of the network.")


@dataclass(frozen=True)
class _ProgramOptions(Options):
    time: float | None = option(None, "Seconds per move, sent to the program.", low=0.001, high=1_000_000)
    limit: float | None = option(None, "Seconds after which it loses the game.", low=0.001, high=1_000_000)


@dataclass(frozen=True)
class _NBoardOptions(_ProgramOptions):
    depth: int | None = _depth()


@dataclass(frozen=True)
class AgentKind:
    """How agents of one name are made: a callable or its import path, and its keyword arguments.

    *positional* is the option whose name may be left out: ``rl:FILE`` is ``rl:weights=FILE``.
    """

    maker: str | Callable[..., Agent]
    options: type[Options]
    positional: str | None = None

    @property
    def option_names(self) -> set[str]:
        return {field.name for field in fields(self.options)}

    def make(self, *arguments: Any, **options: Any) -> Agent:
        agent: Agent = (loading.load(self.maker) if isinstance(self.maker, str) else self.maker)(*arguments, **options)
        return agent


_KINDS: dict[str, AgentKind] = {
    "random": AgentKind("search.agents.simple:RandomAgent", _SeedOptions),
    "greedy": AgentKind("search.agents.simple:GreedyAgent", _SeedOptions),
    "greedy-invincible": AgentKind("search.agents.simple:greedy_invincible_agent", GreedyInvincibleOptions),
    "exact": AgentKind("search.agents.simple:exact_agent", _SolverOptions),
    "perfect": AgentKind("search.agents.simple:PerfectAgent", _PerfectOptions),
    "human": AgentKind("models.human:HumanAgent", _HumanOptions, "level"),
    "zero": AgentKind("models.zero:ZeroAgent", _ZeroOptions, "weights"),
    "gpt": AgentKind("models.gpt:GPTAgent", _FileOptions, "weights"),
    "rl": AgentKind("models.policy:PolicyAgent", _PolicyOptions, "weights"),
    "rl-search": AgentKind("models.policy:PolicySearchAgent", _PolicySearchOptions, "weights"),
}
#: External programs by protocol.
PROGRAMS = {
    "gtp": AgentKind("search.agents.external.gtp:GtpAgent", _ProgramOptions),
    "nboard": AgentKind("search.agents.external.nboard:NBoardAgent", _NBoardOptions),
}


def agent_kind(name: str) -> AgentKind:
    """Return the entry of that name, or raise an `AgentSpecError`. An entry point of that name is loaded."""
    if kind := PROGRAMS.get(name) or _KINDS.get(name):
        return kind
    if evaluators.exists(name):
        options = WeightedSearchOptions if evaluators.takes_weights(name) else SearchOptions
        return AgentKind(partial(search_agent, name), options)
    plugin = loading.load_entry_point(name)
    if isinstance(plugin, type) and issubclass(plugin, Agent):
        return AgentKind(plugin, plugin.spec_options)
    if plugin is not None:
        raise loading.EntryPointError(
            f"entry point {name!r} is {quoted(plugin)}: expected a subclass of Agent, or an Evaluator"
        )
    near = did_you_mean(name.lower(), dict.fromkeys((*names(), *PROGRAMS)))
    raise AgentSpecError(f"agent {quoted(name)} is unknown{near}: expected one of {', '.join(names())}")


def names() -> tuple[str, ...]:
    """Return the names of all agents, evaluators and entry points included; no entry point is loaded."""
    return tuple(sorted({*_KINDS, *loading.entry_point_names(), *evaluators.names()}))


def option_names(name: str) -> tuple[str, ...]:
    return tuple(sorted(agent_kind(name).option_names))


def shared_options() -> set[str]:
    """Return the options of all agents of this project; an agent ignores a default for an option that only others have."""
    kinds = (*_KINDS.values(), *PROGRAMS.values(), AgentKind(search_agent, WeightedSearchOptions))
    return set[str]().union(*(kind.option_names for kind in kinds))
