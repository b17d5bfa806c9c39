"""`Limits` of a search, and `SearchResult`."""

from dataclasses import dataclass

from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import quoted
from reversi_env.options import Options, option


class LimitsError(ReversiError):
    """Invalid limits of a search."""


@dataclass(frozen=True)
class Limits(Options):
    """Limits of a search; the first one reached ends it. An unlimited search ends when the position is solved or at a stop.

    ``empties_exact``: None leaves it to the engine, which solves when it expects to finish in time.

    ``soft`` is the target time under a game clock. A search with a stable best move stops there, or earlier if the move is clearly
    best; an unstable one may use up to ``time``.
    """

    error = LimitsError

    time: float | None = option(None, "Seconds of wall clock.", low=1e-9, high=1e9)
    depth: int | None = option(None, "Depth in plies.", low=1, high=10**9)
    nodes: int | None = option(None, "Nodes per thread.", low=1, high=(1 << 63) - 1)
    empties_exact: int | None = option(None, "Empty squares from which on to solve exactly.", low=0, high=10**9)
    soft: float | None = option(None, "Target time in seconds.", low=1e-9, high=1e9)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.soft is not None and self.time is None:
            raise LimitsError(f"soft={quoted(self.soft)} without time: expected a time limit, too")


@dataclass(frozen=True)
class MoveValue:
    """A root move by name, and its value in discs for the side to move at the root."""

    move: str
    value: float


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a search, seen from the side to move.

    ``move`` by name (None when the game is over), ``value`` in discs, ``depth`` in plies (the number of empties if it was searched
    to the end). ``confidence`` in percent: 100 is proven; less is a selective search to the end, whose value is off by at most two
    discs with that probability; 0 is an estimate of a search that did not reach the end. ``pv``: the principal variation by names;
    ``nodes`` of all threads; ``seconds``; ``moves``: the root moves with their values in a multi-PV search.
    """

    move: str | None
    value: float
    depth: int
    confidence: int
    pv: tuple[str, ...]
    nodes: int
    seconds: float
    moves: tuple[MoveValue, ...] = ()

    @property
    def exact(self) -> bool:
        return self.confidence == 100


def certainty(confidence: int, depth: int) -> str:
    """Return the reliability of a value as text.

    >>> certainty(100, 20), certainty(98, 24), certainty(0, 12)
    ('exact', '98 % certain', 'depth 12')
    """
    return "exact" if confidence == 100 else f"{confidence} % certain" if confidence else f"depth {depth}"


def check_game(position: Position, rules: Rules) -> None:
    """Raise a `ReversiError` unless *position* has the board size and variant of *rules*; the start does not matter."""
    if (position.rules.size, position.rules.variant) != (rules.size, rules.variant):
        raise ReversiError(f"position of {position.rules}: expected one of {rules}")
