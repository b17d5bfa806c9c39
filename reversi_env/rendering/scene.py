"""The squares of a position and the status line that all renderers draw, with their colours and proportions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reversi_env.errors import IllegalMoveError, check_integer
from reversi_env.rules import BLACK, WHITE, Colour, Rules

if TYPE_CHECKING:
    from reversi_env.position import Position


class Cell(NamedTuple):
    """A square of the board with its disc and marks."""

    row: int
    column: int
    disc: Colour | None
    legal: bool
    last: bool


def cells(position: Position, last_move: int | None = None) -> list[Cell]:
    """All squares of the board, row by row; *last_move* is the action to mark, if any."""
    rules, legal = position.rules, position.legal_board()
    marked = _checked(rules, last_move)
    discs = map({"X": BLACK, "O": WHITE}.get, position.to_text())
    return [
        Cell(*divmod(action, rules.size), disc, bool(legal >> sq & 1), action == marked)
        for action, (sq, disc) in enumerate(zip(rules.squares(), discs, strict=True))
    ]


def status(position: Position, last_move: int | None = None, names: tuple[str, str] = ("black", "white")) -> str:
    """Return the side to move or the winner, and the disc counts with the *names* of black and white."""
    is_pass = _checked(position.rules, last_move) == position.rules.pass_action
    passed = f"{position.turn.other} passed, " if is_pass else ""
    count = f"{names[0]} {position.discs(BLACK)}, {names[1]} {position.discs(WHITE)}"
    aim = "" if position.rules.variant == "normal" else ", fewest win"
    return f"{passed}{_outlook(position)} ({count}{aim})"


def _outlook(position: Position) -> str:
    if not position.is_over():
        return f"{position.turn} must pass" if position.must_pass() else f"{position.turn} to move"
    winner = position.winner()
    return "game over, draw" if winner is None else f"game over, {winner} wins"


def _checked(rules: Rules, last_move: int | None) -> int | None:
    if last_move is None:
        return None
    check_integer("last_move", last_move, 0, rules.pass_action, IllegalMoveError)
    return int(last_move)


class Radial(NamedTuple):
    """A radial gradient in the box that it fills, whose side counts as 1."""

    inner: str
    outer: str
    centre: tuple[float, float]
    radius: float


RIM = 0.5
THIN_RIM = 0.14
RIM_COLOUR = "#20312a"
CORNER_RADIUS = 0.16

FELT = Radial("#3d9a6d", "#2b7653", (0.5, 0.42), 0.8)
GRID_COLOUR = "#1d5a3e"
GRID_WIDTH = 0.03
STAR_RADIUS = 0.06

LABEL_COLOUR = "#b4cabd"
LABEL_SIZE = 0.26

DISC_RADIUS = 0.41
DISCS = {
    BLACK: Radial("#565c63", "#14171a", (0.36, 0.3), 0.68),
    WHITE: Radial("#ffffff", "#d8d5ca", (0.4, 0.34), 0.72),
}
EDGES = {BLACK: "#0c0e10", WHITE: "#b3afa2"}
EDGE_WIDTH = 0.02

SHADOW_OFFSET = (0.015, 0.035)
SHADOW_RADIUS = 0.46
SHADOW_OPACITY = 0.5
SHADOW_FADES_FROM = 0.78

LEGAL_RADIUS = 0.1
LEGAL_COLOURS = {BLACK: "#0c0e10", WHITE: "#ffffff"}
LEGAL_OPACITY = {BLACK: 0.42, WHITE: 0.6}

LAST_COLOUR = "#e8604c"
LAST_RADIUS = 0.15
LAST_WIDTH = 0.06


def stars(size: int) -> list[tuple[int, int]]:
    """The grid points with a dot, two squares from the edges; none on the 4x4 board, where they would meet."""
    return [(x, y) for x in (2, size - 2) for y in (2, size - 2)] if size > 4 else []
