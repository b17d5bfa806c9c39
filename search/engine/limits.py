"""What a search may use, and what it found."""

from __future__ import annotations

from dataclasses import dataclass, field

from reversi_env import ReversiError
from reversi_env.errors import quoted


class LimitsError(ReversiError):
    """A limit that makes no sense."""


@dataclass(frozen=True)
class Limits:
    """How long a search may go on; whatever is reached first ends it.

    ``time`` in seconds of wall clock, ``depth`` in plies, ``nodes`` visited by one thread. ``empties_exact``: solve
    exactly from so many empty squares on; None leaves that to the engine, which solves when it expects to finish in
    time. With none of them a search goes on until it has solved the position, or `Engine.stop` ends it.

    ``soft`` (seconds) is the target time under a game clock. A search with a stable best move stops there, or earlier if the move
    is clearly best; an unstable one may use up to ``time``.
    """

    time: float | None = None
    depth: int | None = None
    nodes: int | None = None
    empties_exact: int | None = None
    soft: float | None = None

    def __post_init__(self) -> None:
        for name, seconds in (("time", self.time), ("soft", self.soft)):
            is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
            if seconds is not None and not (is_number and 0 < seconds < 1e9):
                raise LimitsError(f"{name}={quoted(seconds)}: expected seconds above 0")
        if self.soft is not None and self.time is None:
            raise LimitsError(f"soft={quoted(self.soft)} without time: expected the most that may be used, too")
        for name, least in (("depth", 1), ("nodes", 1), ("empties_exact", 0)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise LimitsError(f"{name}={quoted(value)}: expected a whole number of {least} or more")
            if value is not None and value >= 1 << 63:
                raise LimitsError(f"{name}={quoted(value)}: expected less than {1 << 63}, which is as good as no limit")


@dataclass(frozen=True)
class MoveValue:
    """A root move by name, and its value in discs for the side to move at the root."""

    move: str
    value: float


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a search, seen from the side to move.

    ``move`` by name (None when the game is over), ``value`` in discs, ``depth`` in plies (the number of empties if it was
    searched to the end), ``confidence`` in percent: 100 is proven, less a selective search to the end, whose value is so
    likely no more than two discs off, 0 an estimate of a search that did not reach it. ``pv``: the expected line by names,
    ``nodes`` of all threads, ``seconds``, and ``moves``: every root move's value, if asked for.
    """

    move: str | None
    value: float
    depth: int
    confidence: int
    pv: tuple[str, ...]
    nodes: int
    seconds: float
    moves: tuple[MoveValue, ...] = field(default=())

    @property
    def exact(self) -> bool:
        """Whether the value is proven."""
        return self.confidence == 100


def certainty(confidence: int, depth: int) -> str:
    """How much a value is worth, in words.

    >>> certainty(100, 20), certainty(98, 24), certainty(0, 12)
    ('exact', '98 %', 'depth 12')
    """
    return "exact" if confidence == 100 else f"{confidence} %" if confidence else f"depth {depth}"
