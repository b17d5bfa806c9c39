"""Names of the classical openings of 8x8 Reversi.

A name belongs to the position after its line, in all eight images and however it was reached. The name of a game is that of its
last position that has one.

>>> name_of_game("f5 d6 c3 d3 c4 f4".split()), name_of_game(["e6", "f4"])
('Tiger', 'Perpendicular Opening')
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from reversi_env.notation.transcript import read_transcript
from reversi_env.position import Move, Position
from reversi_env.rules import Rules
from reversi_env.storage.packaged import DATA, packaged_bytes

_FILE = DATA / "openings.txt"
#: The game that the names belong to.
_RULES = Rules()


class Opening(NamedTuple):
    """A line of moves from the start, and its name."""

    moves: tuple[str, ...]
    name: str


@cache
def openings() -> tuple[Opening, ...]:
    """Return all named openings in the order of their file; every line begins with c4."""
    lines = (line for line in packaged_bytes(_FILE).decode().splitlines() if line and not line.startswith("#"))
    named_lines = []
    for line in lines:
        moves, name = line.split(" ", 1)
        named_lines.append(Opening(tuple(read_transcript(moves).moves), name))
    return tuple(named_lines)


def opening_name(position: Position) -> str | None:
    """The name of the line that leads to *position*, under any symmetry and from any order of moves; None if it has none."""
    if position.rules != _RULES:
        return None
    canonical = position.canonical()
    return _names().get((canonical.own, canonical.opp))


def name_of_positions(positions: Iterable[Position]) -> str | None:
    """Return the name of a game by its positions: that of the last position that has one; None if none has."""
    return next(filter(None, map(opening_name, reversed(list(positions)))), None)


def name_of_game(moves: Sequence[Move], start: Position | None = None) -> str | None:
    """Return the name of a game by its moves from *start*, by default the initial position; None if no position has a name."""
    positions = [start or Position.initial()]
    for move in moves:
        positions.append(positions[-1].play(move))
    return name_of_positions(positions)


@cache
def _names() -> dict[tuple[int, int], str]:
    """The names by the canonical boards after their lines; of two lines to one position the first in the list."""
    names: dict[tuple[int, int], str] = {}
    for opening in openings():
        canonical = Position.initial().play_all(opening.moves).canonical()
        names.setdefault((canonical.own, canonical.opp), opening.name)
    return names
