"""The characters that say whose turn it is behind a board, in OBF and in GGF."""

from __future__ import annotations

from reversi_env.errors import NotationError, quoted
from reversi_env.rules import BLACK, WHITE, Colour

_COLOURS = dict.fromkeys("Xx*Bb", BLACK) | dict.fromkeys("Oo0Ww", WHITE)


def side_from_character(character: str) -> Colour:
    """Return the side to move: ``X x * B b`` is black, ``O o 0 W w`` is white."""
    if character not in _COLOURS:
        raise NotationError(f"side to move {quoted(character)}: expected X or * for black, O for white")
    return _COLOURS[character]
