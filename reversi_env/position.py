"""`Position`: an immutable board with the side to move, which calls the kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from reversi_env.errors import IllegalMoveError, PositionError, RulesError, count_noun, quoted
from reversi_env.kernels import bitboard
from reversi_env.kernels.bitboard import perft as count_sequences
from reversi_env.kernels.frame import squares_of
from reversi_env.kernels.stability import stable_discs
from reversi_env.kernels.symmetry import canonical, position_hash, transform
from reversi_env.rules import BLACK, SIZES, WHITE, Colour, Rules, checked_rules

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: What `Position.play` accepts: a square name, ``"pass"``, or an action number.
Move = str | int

_DISC_CHARACTERS = {"X": BLACK, "x": BLACK, "*": BLACK, "B": BLACK, "b": BLACK, "●": BLACK}
_DISC_CHARACTERS |= {"O": WHITE, "o": WHITE, "0": WHITE, "W": WHITE, "w": WHITE, "○": WHITE}
_EMPTY_CHARACTERS = "-._"
_DISCS = str.maketrans("012", "-XO")


@dataclass(frozen=True, slots=True)
class Position:
    """A position: the rules, the discs of the side to move (`own`) and of the other side (`opp`), and whose turn it is.

    `own` and `opp` are Python ints. A disc on square ``sq`` of the 8x8 frame sets bit ``sq``. Positions never change, and
    compare and hash by value: `play` returns a new position.

    >>> position = Position.initial()
    >>> position.legal_moves()
    ['d3', 'c4', 'f5', 'e6']
    >>> position.play("d3").play("c5").turn
    <Colour.BLACK: -1>
    """

    rules: Rules
    own: int
    opp: int
    turn: Colour = BLACK

    def __post_init__(self) -> None:
        for name in ("own", "opp"):
            board = getattr(self, name)
            if isinstance(board, np.integer):  # kernels and arrays give numpy integers; keep one representation
                object.__setattr__(self, name, int(board))
            elif not isinstance(board, int) or isinstance(board, bool):
                raise PositionError(f"board {name} is {quoted(board)}: expected an integer; set a bit for every disc")
        if (self.own | self.opp) & ~self.rules.playable:
            size = self.rules.size
            raise PositionError(
                f"boards {self.own:#x} and {self.opp:#x}: expected discs on the {size}x{size} board only"
            )
        if self.own & self.opp:
            squares = squares_of(self.own & self.opp)
            overlap = ", ".join(self.rules.name_of(self.rules.action_of(sq)) for sq in squares)
            raise PositionError(f"discs of both colours on {overlap}: expected at most one disc per square")
        if self.turn.__class__ is not Colour:
            if isinstance(self.turn, bool) or self.turn not in (BLACK, WHITE):
                raise PositionError(f"turn {quoted(self.turn)} is not a colour: expected BLACK or WHITE")
            object.__setattr__(self, "turn", Colour(self.turn))

    # --- constructors ------------------------------------------------------------------------------

    @classmethod
    def initial(cls, rules: Rules | None = None) -> Position:
        """Return the start position, black to move."""
        rules = checked_rules(rules)
        black, white = rules.start_boards
        return cls(rules, black, white, BLACK)

    @classmethod
    def from_colours(cls, rules: Rules, black: int, white: int, turn: Colour = BLACK) -> Position:
        """Return the position with these black and white discs."""
        return cls(rules, black, white, turn) if turn == BLACK else cls(rules, white, black, turn)

    @classmethod
    def from_text(cls, text: str, turn: Colour = BLACK, rules: Rules | None = None) -> Position:
        """Read a board from text: one character per square, row by row; white space is ignored.

        Black is ``X x * B b ●``, white is ``O o 0 W w ○``, empty is ``- . _``. Without *rules* the size follows from
        the length.
        """
        if not isinstance(text, str):
            raise PositionError(f"board {quoted(text)} is not text: expected one character per square")
        squares = "".join(text.split())
        if rules is None:
            sizes = {size * size: size for size in SIZES}
            rules = Rules(sizes[len(squares)]) if len(squares) in sizes else None
        if rules is None or len(squares) != rules.square_count:
            count, expected = count_noun(len(squares), "square"), rules.square_count if rules else "16, 36 or 64"
            raise PositionError(f"board {quoted(text)} has {count}: expected {expected}")
        boards = {BLACK: 0, WHITE: 0}
        for action, character in enumerate(squares):
            colour = _DISC_CHARACTERS.get(character)
            if colour is not None:
                boards[colour] |= 1 << rules.square_of(action)
            elif character not in _EMPTY_CHARACTERS:
                place = f"square {rules.name_of(action)} of board {quoted(text)}"
                raise PositionError(f"{quoted(character)} at {place}: expected X, O or -")
        return cls.from_colours(rules, boards[BLACK], boards[WHITE], turn)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, turn: Colour = BLACK, rules: Rules | None = None) -> Position:
        """Read a square matrix of -1 (black), 0 (empty) and +1 (white), top row first."""
        try:
            cells = np.asarray(matrix)
        except ValueError:
            raise PositionError(f"matrix {quoted(matrix)}: expected rows of equal length") from None
        if cells.dtype.kind not in "iuf" or not np.isin(cells, (-1, 0, 1)).all():
            raise PositionError(f"matrix {quoted(matrix)}: expected entries -1, 0 and 1")
        rules = rules or Rules(len(cells) if cells.ndim == 2 else 8)
        if cells.shape != (rules.size, rules.size):
            raise PositionError(f"matrix of shape {cells.shape}: expected {rules.size} x {rules.size}")
        boards = [
            sum(1 << rules.square_of(int(action)) for action in np.flatnonzero(cells == colour))
            for colour in (BLACK, WHITE)
        ]
        return cls.from_colours(rules, boards[0], boards[1], turn)

    # --- queries ----------------------------------------------------------------------------------

    @property
    def black(self) -> int:
        """Board of the black discs."""
        return self.own if self.turn == BLACK else self.opp

    @property
    def white(self) -> int:
        """Board of the white discs."""
        return self.opp if self.turn == BLACK else self.own

    @property
    def round(self) -> int:
        """Number of discs on the board."""
        return (self.own | self.opp).bit_count()

    @property
    def empties(self) -> int:
        return self.rules.square_count - self.round

    def discs(self, colour: Colour | None = None) -> int:
        """Return the number of discs of *colour*, by default of both colours."""
        if colour is None:
            return self.round
        return (self.own if self._is_turn(colour) else self.opp).bit_count()

    def _is_turn(self, colour: Colour | None) -> bool:
        """Return whether *colour*, by default the side to move, is the side to move."""
        if colour is None or colour == self.turn:
            return True
        if colour == -self.turn:
            return False
        raise PositionError(f"colour {quoted(colour)}: expected BLACK or WHITE, or None for the side to move")

    def legal_board(self) -> int:
        """Return the board of the squares where the side to move may play."""
        return int(bitboard.legal_moves(*self._boards(), np.uint64(self.rules.playable)))

    def legal_actions(self) -> list[int]:
        """Return the legal actions in ascending order: squares, or only the pass; an empty list if the game is over."""
        moves = self.legal_board()
        if moves:
            return [self.rules.action_of(sq) for sq in squares_of(moves)]
        return [] if self.is_over() else [self.rules.pass_action]

    def legal_moves(self) -> list[str]:
        """Return the names of the legal moves: squares, or ``['pass']``; an empty list if the game is over."""
        return [self.rules.name_of(action) for action in self.legal_actions()]

    def must_pass(self) -> bool:
        """Return whether the side to move has no legal square, but the other side has one."""
        return not self.legal_board() and not self.is_over()

    def is_over(self) -> bool:
        return bool(bitboard.is_over(*self._boards(), np.uint64(self.rules.playable)))

    def disc_difference(self, colour: Colour | None = None) -> int:
        """Return the discs of *colour* (by default the side to move) minus the other side's, without the empty squares."""
        difference = self.own.bit_count() - self.opp.bit_count()
        return difference if self._is_turn(colour) else -difference

    def score(self, colour: Colour | None = None) -> int:
        """Return the result of the finished game in discs for *colour* (by default the side to move), positive for a win.

        The empty squares count for the winner. In the reversed game the side with fewer discs wins.
        """
        if not self.is_over():
            raise PositionError("score(): expected a finished game; use disc_difference() to count the discs")
        final = self.rules.sign * int(bitboard.final_score(*self._boards(), np.uint64(self.rules.playable)))
        return final if self._is_turn(colour) else -final

    def winner(self) -> Colour | None:
        """Return the side that won; ``None`` for a draw or an unfinished game."""
        if not self.is_over() or self.own.bit_count() == self.opp.bit_count():
            return None
        return self.turn if self.score() > 0 else self.turn.other

    def stable(self, colour: Colour | None = None) -> int:
        """Return the board of discs of *colour* (by default the side to move) that can provably never be flipped."""
        boards = self._boards() if self._is_turn(colour) else self._boards()[::-1]
        return int(stable_discs(*boards, np.uint64(self.rules.playable)))

    def frontier(self, colour: Colour | None = None) -> int:
        """Return the board of discs of *colour* (by default the side to move) that touch an empty square."""
        boards = self._boards() if self._is_turn(colour) else self._boards()[::-1]
        return int(bitboard.frontier(*boards, np.uint64(self.rules.playable)))

    # --- playing ----------------------------------------------------------------------------------

    def play(self, move: Move) -> Position:
        """Return the position after *move*: a square name, an action number, or the pass (by name or number)."""
        action = self._action(move)
        own, opp = self._boards()
        if action == self.rules.pass_action:
            if not self.must_pass():
                reason = "the game is over" if self.is_over() else f"the legal moves are {' '.join(self.legal_moves())}"
                raise IllegalMoveError(f"pass by {self.turn} is not allowed: {reason}")
            return Position(self.rules, self.opp, self.own, self.turn.other)
        sq = self.rules.square_of(action)
        if not self.legal_board() >> sq & 1:
            expected = " ".join(self.legal_moves()) or "none, the game is over"
            name = self.rules.name_of(action)
            raise IllegalMoveError(f"{name} by {self.turn} is illegal: the legal moves are {expected}")
        next_own, next_opp = bitboard.play(sq, own, opp)
        return Position(self.rules, int(next_own), int(next_opp), self.turn.other)

    def play_all(self, moves: Iterable[Move]) -> Position:
        """Return the position after all *moves*, one after the other."""
        position = self
        for move in moves:
            position = position.play(move)
        return position

    def perft(self, depth: int) -> int:
        """Return the number of move sequences of exactly *depth* plies; a pass is a ply, games that end earlier do not count."""
        if not isinstance(depth, int) or isinstance(depth, bool) or depth < 0:
            raise RulesError(f"depth {quoted(depth)}: expected an integer of at least 0")
        if depth > 2 * self.rules.square_count:
            return 0  # no game is longer, even with passes
        return int(count_sequences(*self._boards(), np.uint64(self.rules.playable), depth))

    # --- symmetry ---------------------------------------------------------------------------------

    def transformed(self, symmetry: int) -> Position:
        """Return the image under one of the eight symmetries, 0-7 (see `reversi_env.kernels.symmetry`)."""
        if not isinstance(symmetry, Integral) or symmetry not in range(8):
            raise PositionError(f"symmetry {quoted(symmetry)} does not exist: expected 0 to 7")
        own, opp = (int(transform(board, int(symmetry))) for board in self._boards())
        return Position(self.rules, own, opp, self.turn)

    def canonical(self) -> Position:
        """Return the canonical form: the same position for all eight symmetric images."""
        own, opp, _ = canonical(*self._boards())
        return Position(self.rules, int(own), int(opp), self.turn)

    def hash64(self) -> int:
        """Return a 64-bit hash of the boards seen from the side to move; it is the same on every machine."""
        return int(position_hash(*self._boards()))

    # --- output -----------------------------------------------------------------------------------

    def to_text(self) -> str:
        """Return one character per square, row by row: X black, O white, - empty."""
        # Decimal digits from the bits, black plus twice white, give one digit per square: twenty times faster than a loop.
        digits = int(f"{self.black:b}") + 2 * int(f"{self.white:b}")
        frame = str(digits).zfill(64)[::-1].translate(_DISCS)
        size, first = self.rules.size, 9 * self.rules.margin
        return "".join(frame[at : at + size] for at in range(first, first + 8 * size, 8))

    def to_matrix(self) -> np.ndarray:
        """Return the n x n int8 matrix of -1 (black), 0 (empty) and +1 (white)."""
        cells = [(self.white >> sq & 1) - (self.black >> sq & 1) for sq in self.rules.squares()]
        return np.array(cells, np.int8).reshape(self.rules.size, self.rules.size)

    def __repr__(self) -> str:
        """Return Python code that creates this position with `from_text`."""
        size, text = self.rules.size, self.to_text()
        rows = "\n".join(text[start : start + size] for start in range(0, size * size, size))
        rules = "" if self.rules == Rules(size) else f", {self.rules!r}"
        return f'Position.from_text("""\n{rows}""", {self.turn.name}{rules})'

    def __str__(self) -> str:
        """Return the plain board of `render_ansi`: legal moves are ``+``, and the last line has the side to move or the winner."""
        from reversi_env.rendering.text import render_ansi

        return render_ansi(self)

    def _repr_svg_(self) -> str:
        """Return the board as an SVG picture, for notebooks."""
        from reversi_env.rendering.svg import render_svg

        return render_svg(self)

    def _boards(self) -> tuple[np.uint64, np.uint64]:
        """Return (own, opp) as uint64, the type that the kernels need."""
        return np.uint64(self.own), np.uint64(self.opp)

    def _action(self, move: Move) -> int:
        if isinstance(move, str):
            return self.rules.action_from_name(move)
        if isinstance(move, (int, np.integer)) and not isinstance(move, bool) and 0 <= move <= self.rules.pass_action:
            return int(move)
        last = self.rules.pass_action
        raise IllegalMoveError(f"{quoted(move)} is not a move: expected a square, 'pass' or a number from 0 to {last}")
