"""What there is to draw: the one reading of a position that every renderer shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reversi_env.errors import IllegalMoveError, quoted
from reversi_env.rules import BLACK, WHITE, Colour, Rules

if TYPE_CHECKING:  # it draws itself in a notebook
    from reversi_env.position import Position


class Cell(NamedTuple):
    """A square of the board and what lies on it."""

    row: int
    column: int
    disc: Colour | None
    legal: bool
    last: bool


def cells(position: Position, last_move: int | None = None) -> list[Cell]:
    """All squares of the board, row by row; *last_move* is the action to mark, if any."""
    rules, legal = position.rules, position.legal_board()
    marked = _checked(rules, last_move)
    return [
        Cell(*divmod(action, rules.size), _disc(position, sq), bool(legal >> sq & 1), action == marked)
        for action, sq in enumerate(rules.squares())
    ]


def status(position: Position, last_move: int | None = None, names: tuple[str, str] = ("black", "white")) -> str:
    """Who is to move or who won, and the disc counts under the *names* of black and white."""
    passed = (
        f"{position.turn.other} passed, " if _checked(position.rules, last_move) == position.rules.pass_action else ""
    )
    count = f"{names[0]} {position.discs(BLACK)}, {names[1]} {position.discs(WHITE)}"
    aim = "" if position.rules.variant == "normal" else ", fewest win"
    return f"{passed}{_outlook(position)} ({count}{aim})"


def _outlook(position: Position) -> str:
    if not position.is_over():
        return f"{position.turn} must pass" if position.must_pass() else f"{position.turn} to move"
    winner = position.winner()
    return "game over, draw" if winner is None else f"game over, {winner} wins"


def _disc(position: Position, sq: int) -> Colour | None:
    if position.black >> sq & 1:
        return BLACK
    return WHITE if position.white >> sq & 1 else None


def _checked(rules: Rules, last_move: int | None) -> int | None:
    if last_move is None:
        return None
    whole = isinstance(last_move, (int, np.integer)) and not isinstance(last_move, bool)
    if whole and 0 <= last_move <= rules.pass_action:
        return int(last_move)
    raise IllegalMoveError(
        f"last move {quoted(last_move)} is not on the {rules.size}x{rules.size} board: "
        f"expected a number from 0 to {rules.pass_action}, or None"
    )
