"""The agents that a client may request, and the limits of each.

A spec of a client names one of these agents and sets numbers within the server's limits. Everything else that specs can contain
(weight files and books by path, threads, table sizes, programs to run) is refused.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

from models.evaluator import FOLDER as NETWORKS
from models.human import LEVELS, RATINGS
from play.server.messages import AgentEntry, Refused
from play.server.options import ServerOptions
from reversi_env import ReversiError, Rules
from reversi_env.errors import is_installed, missing_extra_error
from reversi_env.rules import SIZES, Variant
from search.agents.base import Agent
from search.agents.book import PACKAGED, packaged_book, solved_book
from search.agents.registry import option_names
from search.agents.searching import SearchAgent
from search.agents.simple import INVINCIBLE_EMPTIES, SMALL_SIZE, ExactAgent, PerfectAgent
from search.agents.spec import AgentSpec

#: The agents on offer, the levels for people first, then the strongest first. Their texts are the page's in English.
NAMES = (
    *("human", "perfect", "network", "six-factor", "four-attribute", "cell-utility", "position-stability"),
    *("ten-weight", "mobility", "discs", "zero", "rl", "greedy-invincible", "greedy", "random"),
)
_WORDS = Path(__file__).resolve().parents[1] / "web" / "words" / "en.json"
VARIANTS: tuple[Variant, ...] = get_args(Variant)
_PLAIN = ("human", "perfect", "zero", "rl", "greedy-invincible", "greedy", "random")
_OPTIONS = frozenset({"depth", "time", "nodes", "level", "exact", "seed", "book", "variety", "simulations"})
#: Agents that need trained weights: the folder with them, and how the files' names begin.
_WEIGHTS = {"network": (NETWORKS, ""), "rl": (NETWORKS / "residual", "ppo-"), "zero": (NETWORKS / "residual", "zero-")}
#: Agents that need torch. Only workers create them, since importing torch would block the event loop.
_WITH_TORCH = ("rl", "zero")
#: Seconds per move of the tree search if the spec sets no time.
ZERO_SECONDS = 1.0
#: Maximum seconds per move of `perfect`, whose move is not proven if it is stopped. Most moves take less than one second.
PERFECT_SECONDS = 60.0
#: Maximum of the option `exact`, the empty squares that are solved; takes about a second.
MAX_EXACT = 18
#: A search to a fixed depth up to this one needs no time limit.
SHORT_DEPTH = 6


@dataclass(frozen=True)
class LimitedAgent:
    """An agent within the server's limits, and its maximum seconds per move; None if every move is quick.

    Every other agent has a limit, so that none can occupy a worker.
    """

    spec: AgentSpec
    seconds: float | None = None


@cache
def sizes(name: str) -> list[int]:
    """Return the sizes that an agent plays in both variants; none if it needs torch and torch is missing.

    Without a solved book the first moves of `perfect` on 6x6 would take minutes.
    """
    if name == "perfect":
        return [n for n in SIZES if n == SMALL_SIZE or all(solved_book(Rules(n, game)) for game in VARIANTS)]
    if name not in _WEIGHTS:
        return list(SIZES)
    if name in _WITH_TORCH and not is_installed("torch"):
        return []
    folder, start = _WEIGHTS[name]
    return [n for n in SIZES if all(any(folder.glob(f"{start}{n}x{n}-{game}-*.safetensors")) for game in VARIANTS)]


def entries() -> list[AgentEntry]:
    """Return all agents: the levels for people, then the strongest first."""
    more: dict[str, dict[str, Any]] = {
        "human": {"levels": [level.title for level in LEVELS], "ratings": list(RATINGS)},
        "network": {"books": book_sizes()},
    }
    words = json.loads(_WORDS.read_bytes())
    return [
        AgentEntry(
            name, words[f"agent.{name}"], words[f"about.{name}"], name not in _PLAIN, sizes(name), **more.get(name, {})
        )
        for name in NAMES
        if sizes(name)
    ]


def limited_agent(spec: str, size: int, options: ServerOptions, *, lenient: bool = False) -> LimitedAgent:
    """Return the agent of *spec* within the limits; refused if it is not on offer.

    *lenient*, for stored games: values are cut down to the limits, and options that the agent does not have are dropped.
    """
    try:
        parsed = AgentSpec.parse(spec)
    except ReversiError:
        parsed = AgentSpec("")
    if parsed.name not in NAMES:
        name = spec.partition(":")[0][:30]
        raise Refused(400, "unknown_agent", f"agent {name!r} is not on offer: expected one of {', '.join(NAMES)}")
    if lenient:
        parsed = parsed.without(*parsed.options.keys() - (_OPTIONS & {*option_names(parsed.name)}))
    for key in parsed.options.keys() - _OPTIONS:
        expected = ", ".join(sorted(_OPTIONS))
        raise Refused(400, "bad_agent", f"option {key[:30]!r} is not on offer: expected {expected}")
    try:
        parsed.check()
        _check_size(parsed.name, size)
        _check_book(parsed, size)
        limited = _with_limits(parsed, options, lenient)
        if parsed.name == "zero":
            return _limited_zero(limited, options)
        agent = None if parsed.name in _WITH_TORCH else limited.make()
    except ReversiError as error:
        raise Refused(400, "bad_agent", str(error)[:200]) from None
    return LimitedAgent(limited, _seconds(agent, options))


def _limited_zero(spec: AgentSpec, options: ServerOptions) -> LimitedAgent:
    if "depth" in spec.options:  # alpha-beta with a torch network cannot be stopped
        raise Refused(400, "bad_agent", "option 'depth' of zero is not on offer: expected time or simulations")
    spec = spec.with_(**{"time": min(ZERO_SECONDS, options.max_think_time), **spec.options})
    return LimitedAgent(spec, float(spec.options["time"]))


def _check_book(spec: AgentSpec, size: int) -> None:
    if spec.options.get("book", PACKAGED) != PACKAGED:
        raise Refused(400, "bad_agent", f"a book by its file is not on offer: expected book={PACKAGED}")
    if "book" in spec.options and size not in book_sizes():
        raise Refused(400, "bad_agent", f"no book for {size}x{size}: expected size {', '.join(map(str, book_sizes()))}")


@cache
def book_sizes() -> list[int]:
    """Return the sizes with a packaged book for both variants; `network` would play a solved one at any strength."""
    games = {size: [Rules(size, game) for game in VARIANTS] for size in SIZES}
    return [size for size in SIZES if all(packaged_book(game) and not solved_book(game) for game in games[size])]


def _with_limits(spec: AgentSpec, options: ServerOptions, lenient: bool) -> AgentSpec:
    for key, most in (("depth", options.max_depth), ("time", options.max_think_time), ("exact", MAX_EXACT)):
        value = float(spec.options.get(key, 0))
        if value > most and not lenient:
            raise Refused(400, "bad_agent", f"{key} {value:g}: expected at most {most:g} on this server")
        if value > most:
            spec = spec.with_(**{key: most})
    return spec


def _seconds(agent: Agent | None, options: ServerOptions) -> float | None:
    """Return the agent's own time limit; None if its searches are quick, otherwise the server's limit."""
    if isinstance(agent, PerfectAgent):
        return max(PERFECT_SECONDS, options.max_think_time)
    if isinstance(agent, ExactAgent):
        return None if agent.exact <= INVINCIBLE_EMPTIES else options.max_think_time
    if not isinstance(agent, SearchAgent):
        return None
    depth, exact = agent.limits.depth, agent.limits.empties_exact or 0
    is_quick = depth is not None and depth <= SHORT_DEPTH and exact <= depth + 6
    return agent.limits.time or (None if is_quick else options.max_think_time)


def evaluator(name: str | None, size: int) -> str:
    """Return the agent for analysis: *name*, refused if it does not search, or by default the strongest."""
    searching = [each for each in NAMES if each not in _PLAIN]
    name = name or next(each for each in ("network", "six-factor") if size in sizes(each))
    if name not in searching:
        expected = ", ".join(searching)
        raise Refused(400, "unknown_agent", f"agent {name[:30]!r} analyses nothing: expected one of {expected}")
    _check_size(name, size)
    return name


def _check_size(name: str, size: int) -> None:
    if name in _WITH_TORCH and not sizes(name):
        raise Refused(400, "bad_agent", str(missing_extra_error("torch", f"agent {name!r}")))
    if size not in sizes(name):
        listed, what = ", ".join(map(str, sizes(name))), "policy" if name == "rl" else "network"
        raise Refused(400, "bad_agent", f"no {what} for {size}x{size}: expected size {listed}, or another agent")
