"""`Rules`: which game is played, as data — the board's squares, the start, and the sign of the objective."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from numbers import Integral
from typing import Literal, get_args

from reversi_env.errors import NotationError, RulesError, quoted

Variant = Literal["normal", "reversed"]
Start = Literal["standard", "parallel"]
SIZES = (4, 6, 8)
#: Rows and columns of the frame that all boards are centred in.
FRAME = 8
COLUMN_NAMES = "abcdefgh"
PASS_NAME = "pass"


#: The squares of every board size, centred in the frame.
_PLAYABLE = {4: 0x0000_3C3C_3C3C_0000, 6: 0x007E_7E7E_7E7E_7E00, 8: 0xFFFF_FFFF_FFFF_FFFF}


class Colour(IntEnum):
    """The two players. Black moves first; the numbers are those of `Position.to_matrix`."""

    BLACK = -1
    WHITE = 1

    @property
    def other(self) -> Colour:
        return Colour(-self.value)

    def __str__(self) -> str:
        return self.name.lower()


BLACK, WHITE = Colour.BLACK, Colour.WHITE


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a game: a board of ``size`` x ``size`` squares, most discs win (*normal*) or fewest do (*reversed*).

    ``start`` chooses the four discs of the start: *standard* (white on d4 and e5, black on e4 and d5 of the 8x8 board)
    or *parallel* (white on d4 and e4, black on d5 and e5).

    A smaller board is centred in the 8x8 frame of the bitboards. An *action* numbers the board's own squares row by row
    from the top left, and the last action, ``size ** 2``, is the pass; a *square* (`sq`) numbers the frame's. On the
    8x8 board both are the same.
    """

    size: int = 8
    variant: Variant = "normal"
    start: Start = "standard"

    def __post_init__(self) -> None:
        if not isinstance(self.size, Integral) or self.size not in SIZES:
            raise RulesError(f"size {quoted(self.size)} is not supported: expected one of 4, 6, 8")
        if self.variant not in get_args(Variant):
            raise RulesError(f"variant {quoted(self.variant)} is unknown: expected 'normal' or 'reversed'")
        if self.start not in get_args(Start):
            raise RulesError(f"start {quoted(self.start)} is unknown: expected 'standard' or 'parallel'")

    @property
    def margin(self) -> int:
        """Width of the rim between the board and the 8x8 frame."""
        return (FRAME - self.size) // 2

    @property
    def playable(self) -> int:
        """The board's squares in the frame."""
        return _PLAYABLE[self.size]

    @property
    def sign(self) -> int:
        """+1 if more discs are better, -1 if fewer are."""
        return 1 if self.variant == "normal" else -1

    @property
    def square_count(self) -> int:
        return self.size * self.size

    @property
    def pass_action(self) -> int:
        """The action that means a pass: the last one."""
        return self.square_count

    @property
    def start_boards(self) -> tuple[int, int]:
        """Boards (black, white) of the start."""
        north_west, north_east, south_west, south_east = (1 << sq for sq in (27, 28, 35, 36))
        if self.start == "standard":
            return north_east | south_west, north_west | south_east
        return south_west | south_east, north_west | north_east

    def squares(self) -> Iterator[int]:
        """The frame's square of every action but the pass, in order."""
        return (self.square_of(action) for action in range(self.square_count))

    def square_of(self, action: int) -> int:
        """The frame's square of an action that is not the pass."""
        row, column = divmod(action, self.size)
        return FRAME * (self.margin + row) + self.margin + column

    def action_of(self, sq: int) -> int:
        """The action that plays on the frame's square *sq*."""
        row, column = divmod(sq, FRAME)
        return self.size * (row - self.margin) + column - self.margin

    def name_of(self, action: int) -> str:
        """``'a1'`` … for a square of the board (a1 at the top left), ``'pass'`` for the pass."""
        if not 0 <= action <= self.pass_action:
            raise NotationError(f"action {quoted(action)} is off the board: expected 0 to {self.pass_action}")
        if action == self.pass_action:
            return PASS_NAME
        row, column = divmod(action, self.size)
        return f"{COLUMN_NAMES[column]}{row + 1}"

    def action_from_name(self, name: str) -> int:
        """The action of a square name in either case, or of ``pass``, ``pa``, ``ps`` or ``--``."""
        text = name.strip().lower() if isinstance(name, str) else ""
        if text in {PASS_NAME, "pa", "ps", "--"}:
            return self.pass_action
        columns = COLUMN_NAMES[: self.size]
        if len(text) == 2 and text[0] in columns and text[1] in "12345678"[: self.size]:
            return self.size * (int(text[1]) - 1) + columns.index(text[0])
        board, last = f"{self.size}x{self.size} board", f"{columns[-1]}{self.size}"
        raise NotationError(f"{quoted(name)} is not a square of the {board}: expected a1 to {last}, or pass")


def checked_rules(rules: Rules | None) -> Rules:
    """Return *rules*, by default those of the normal 8x8 game; raise a `RulesError` unless they are `Rules`."""
    if rules is None:
        return Rules()
    if not isinstance(rules, Rules):
        raise RulesError(f"rules {quoted(rules)}: expected Rules, as in Rules(size=8, variant='normal')")
    return rules
