"""The agents that a stranger may name, and how much they may ask for.

A spec from the network names one of the agents here and sets plain numbers within the server's limits. Everything else that specs
can say elsewhere – weight files by path, threads, table sizes, programs to run – is refused.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from models.network import FOLDER
from play.server.messages import AgentEntry, Refused
from play.server.options import ServerOptions
from play.server.worker import LimitedAgent
from reversi_env import ReversiError
from reversi_env.extras import installed, missing
from reversi_env.rules import SIZES
from search.agents import AgentSpec
from train.rl import FOLDER as POLICIES

_TEXTS = {
    "network": ("Network", "a trained pattern network under alpha-beta; the strongest"),
    "six-factor": ("Six factors", "corners, mobility, frontier, table: report 001"),
    "four-attribute": ("Four attributes", "parity, mobility, corners, stability: report 003"),
    "cell-utility": ("Cell utility", "a table of squares, discs and mobility: report 004"),
    "position-stability": ("Position and stability", "written for the reversed game: report 000"),
    "double-alpha": ("Double Alpha", "sixteen evolved weights: report 002"),
    "ten-weight": ("Ten weights", "an evolved table of squares: report 002"),
    "mobility": ("Mobility", "counts moves, nothing else"),
    "discs": ("Disc counter", "counts discs, nothing else"),
    "rl": ("Self-taught", "learnt by playing against itself, and looks no move ahead"),
    "greedy-invincible": ("Greedy, then perfect", "takes all it can, and plays the last twelve squares perfectly"),
    "greedy": ("Greedy", "takes what is best right now"),
    "random": ("Random", "any legal move"),
}
_ALIASES = {"sixteen-weight": "double-alpha"}
_EVALUATORS = {"double-alpha": "sixteen-weight"}
_PLAIN = ("rl", "greedy-invincible", "greedy", "random")
_OPTIONS = frozenset({"depth", "time", "nodes", "level", "exact", "seed"})
#: Empty squares that a spec may have solved exactly: a second or so.
MOST_EXACT = 18
#: A search to a fixed depth up to this one is done in a moment, and needs no clock of its own.
SHORT_DEPTH = 6


@cache
def network_sizes() -> list[int]:
    """The sizes that there are trained weights for, in both variants."""
    return [n for n in SIZES if all(any(FOLDER.glob(f"{n}x{n}-{v}-*.safetensors")) for v in ("normal", "reversed"))]


@cache
def policy_sizes() -> list[int]:
    """The sizes that there is a trained policy for, in both variants; none without torch, which policies need."""
    if not installed("torch"):
        return []
    files = [path.name for path in POLICIES.glob("ppo-*.safetensors")]
    return [n for n in SIZES if all(any(f"{n}x{n}-{v}-" in name for name in files) for v in ("normal", "reversed"))]


def entries() -> list[AgentEntry]:
    """All agents, the strongest first."""
    return [
        AgentEntry(name, title, about, name not in _PLAIN, _sizes(name))
        for name, (title, about) in _TEXTS.items()
        if _sizes(name)
    ]


def _sizes(name: str) -> list[int]:
    return {"network": network_sizes, "rl": policy_sizes}.get(name, lambda: list(SIZES))()


def default_evaluator(size: int) -> str:
    """What positions of that size are analysed with."""
    return "network" if size in network_sizes() else "six-factor"


def limited_agent(spec: str, size: int, options: ServerOptions, *, lenient: bool = False) -> LimitedAgent:
    """What *spec* asks for, within the limits; refused if it names what is not on offer.

    *lenient*: what is beyond the limits is cut down to them, for games that were created when they were wider.
    """
    try:
        parsed = AgentSpec.parse(spec)
    except ReversiError:
        parsed = AgentSpec("")
    known = _ALIASES.get(parsed.name, parsed.name)
    if known not in _TEXTS:
        shown = spec.partition(":")[0][:30]
        raise Refused(400, "unknown_agent", f"agent {shown!r} is not on offer: expected one of {', '.join(_TEXTS)}")
    for key in parsed.options:
        if key not in _OPTIONS:
            raise Refused(
                400, "bad_agent", f"option {key[:30]!r} is not on offer: expected {', '.join(sorted(_OPTIONS))}"
            )
    try:
        parsed.check()
        if known != "rl":  # which would load torch here, where nothing may wait
            parsed.make()
    except (ReversiError, ValueError) as error:
        raise Refused(400, "bad_agent", str(error)[:200]) from None
    _check_size(known, size)
    return _limited(parsed, options, lenient)


def check_evaluator(name: str, size: int) -> None:
    """Refuse what no position can be analysed with."""
    if name not in _TEXTS or name in _PLAIN or name == "double-alpha":
        searching = ", ".join(n for n in _TEXTS if n not in _PLAIN and n != "double-alpha")
        raise Refused(400, "unknown_agent", f"agent {name[:30]!r} analyses nothing: expected one of {searching}")
    _check_size(name, size)


def _check_size(name: str, size: int) -> None:
    if name == "rl" and not _sizes(name):
        raise Refused(400, "bad_agent", str(missing("torch", "agent 'rl'")))
    if size not in _sizes(name):
        sizes = ", ".join(map(str, _sizes(name)))
        what = "network" if name == "network" else "policy"
        raise Refused(400, "bad_agent", f"no {what} for {size}x{size}: expected size {sizes}, or another agent")


def _limited(spec: AgentSpec, options: ServerOptions, lenient: bool) -> LimitedAgent:
    name, texts = spec.name, spec.options

    def number(key: str, most: float | None = None, convert: type = int) -> Any:
        if key not in texts:
            return None
        value = convert(texts[key])
        if most is None or value <= most:
            return value
        if lenient:
            return convert(most)
        raise Refused(400, "bad_agent", f"{key} {value:g}: expected at most {most:g} on this server")

    searches = name not in _PLAIN
    depth = number("depth", options.deepest) or number("level")
    nodes, time = number("nodes"), number("time", options.longest_think, float)
    if searches and depth is None and nodes is None and time is None:
        depth = 4
    exact = number("exact", MOST_EXACT)
    quick = depth is not None and depth <= SHORT_DEPTH and (exact or 0) <= depth + 6
    seconds = (
        None if (quick and time is None) or not searches else min(time or options.longest_think, options.longest_think)
    )
    return LimitedAgent(str(spec), _EVALUATORS.get(name, name), searches, seconds, depth, nodes, exact, number("seed"))
