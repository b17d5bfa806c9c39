"""The board as text: plain ASCII for any terminal and log file, or ANSI colours for games in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reversi_env.rendering.scene import Cell, cells, status
from reversi_env.rules import BLACK, COLUMN_NAMES, WHITE

if TYPE_CHECKING:  # `Position` imports this module for its text
    from reversi_env.position import Position

_RESET = "\x1b[0m"
_FAINT = "\x1b[2m"
_FELT = ("\x1b[48;5;29m", "\x1b[48;5;35m")
_LAST_FELT = "\x1b[48;5;178m"
_DISC_INK = {BLACK: "\x1b[38;5;16m", WHITE: "\x1b[38;5;231m"}
_LEGAL_INK = "\x1b[38;5;157m"


def render_ansi(position: Position, last_move: int | None = None, *, colour: bool = False) -> str:
    """Return the board with its coordinates and a line with the side to move or the winner.

    Plain: ``X`` black, ``O`` white, ``.`` empty, ``+`` a legal move, and brackets around the last move. With *colour*:
    round discs on green squares, a dot on legal moves and a golden square under the last move. *last_move* is an action
    of `Rules`; a pass is in the last line only.
    """
    squares = cells(position, last_move)
    size = position.rules.size
    rows = [squares[size * row : size * (row + 1)] for row in range(size)]
    lines = _coloured(rows) if colour else _plain(rows)
    names = ("black", "white") if colour else ("X", "O")
    return "\n".join([*lines, "", status(position, last_move, names)])


def _plain(rows: list[list[Cell]]) -> list[str]:
    header = "   " + " ".join(COLUMN_NAMES[: len(rows)])
    return [header, *(f"{number} {_plain_row(row)}" for number, row in enumerate(rows, 1))]


def _plain_row(row: list[Cell]) -> str:
    """The squares of a row; the gaps beside the last move hold its brackets."""
    gaps = [" "] * (len(row) + 1)
    for cell in row:
        if cell.last:
            gaps[cell.column : cell.column + 2] = "[]"
    return "".join(gap + _letter(cell) for gap, cell in zip(gaps, row, strict=False)) + gaps[-1].rstrip()


def _letter(cell: Cell) -> str:
    if cell.disc is None:
        return "+" if cell.legal else "."
    return "X" if cell.disc == BLACK else "O"


def _coloured(rows: list[list[Cell]]) -> list[str]:
    header = f"{_FAINT}   {'  '.join(COLUMN_NAMES[: len(rows)])}{_RESET}"
    lines = ("".join(map(_coloured_square, row)) for row in rows)
    return [header, *(f"{_FAINT}{number}{_RESET} {line}{_RESET}" for number, line in enumerate(lines, 1))]


def _coloured_square(cell: Cell) -> str:
    felt = _LAST_FELT if cell.last else _FELT[(cell.row + cell.column) % 2]
    if cell.disc is not None:
        return f"{felt}{_DISC_INK[cell.disc]} ● "
    return f"{felt}{_LEGAL_INK} • " if cell.legal else f"{felt}   "
