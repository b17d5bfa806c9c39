"""The interface of the courses on Reversed Reversi (CS303 and others): a class `AI` that a referee asks for moves.

A referee creates one ``AI(chessboard_size, color, time_out)`` per side and calls ``go(chessboard)`` when that side is to move, with
an array of -1 (black), 0 (empty) and 1 (white). `go` never takes longer than *time_out* seconds, even if kernels have to be
compiled: compilation begins in a thread of the constructor, and the list has a legal move at once.
"""

import os
from concurrent.futures import wait
from functools import partial
from time import perf_counter
from typing import Literal

import numpy as np

from play.background import in_background
from play.thinker import Thinker, default_agent
from reversi_env import Position, Rules
from reversi_env.errors import PositionError, quoted
from reversi_env.rules import Colour

COLOR_BLACK, COLOR_WHITE, COLOR_NONE = -1, 1, 0

#: Reserve of the time limit: a part of it within these seconds.
RESERVE_PART, MIN_RESERVE, MAX_RESERVE = 0.08, 0.05, 0.5
#: Part of the remaining time for the engine; the rest covers a late reply on a busy machine.
ENGINE_PART = 0.9
_DIRECTIONS = [(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1) if row or column]

Square = tuple[int, int]


class AI:
    """A player of Reversed Reversi, or of the ``"normal"`` *variant*, with the courses' interface.

    ``candidate_list`` has the legal moves as (row, column), the last of which is played; it is empty if there is none.
    *agent* is an agent spec, by default the strongest for that board.
    """

    def __init__(
        self,
        chessboard_size: int,
        color: int,
        time_out: float,
        *,
        agent: str | None = None,
        variant: Literal["normal", "reversed"] = "reversed",
    ) -> None:
        self._rules = Rules(chessboard_size, variant)
        if isinstance(color, bool) or color not in (COLOR_BLACK, COLOR_WHITE):
            raise PositionError(f"color {quoted(color)}: expected -1 (COLOR_BLACK) or 1 (COLOR_WHITE)")
        self.chessboard_size, self.color, self.time_out = chessboard_size, color, time_out
        self.candidate_list: list[Square] = []
        self._agent = agent or default_agent(self._rules)
        self._load_in_background()

    def go(self, chessboard: np.ndarray) -> None:
        """Fill `candidate_list` for *chessboard*, within `time_out` seconds."""
        reserve = min(max(RESERVE_PART * self.time_out, MIN_RESERVE), MAX_RESERVE, self.time_out / 2)
        deadline = perf_counter() + self.time_out - reserve
        self.candidate_list.clear()
        board = np.asarray(chessboard)
        moves = legal_moves(board, self.color)
        if not moves:
            return
        edges = (0, self.chessboard_size - 1)  # the move on the fewest edges is last: corners are worst
        moves.sort(key=lambda square: -sum(coordinate in edges for coordinate in square))
        self.candidate_list.extend(moves)
        if len(moves) == 1:
            return
        answer = in_background(partial(self._think, board.copy(), deadline))
        if wait([answer], max(0.0, deadline - perf_counter())).done and (best := answer.result()) is not None:
            self.candidate_list.append(best)

    def _think(self, board: np.ndarray, deadline: float) -> Square | None:
        """Return the agent's move, or None if it is not ready in time."""
        if self._process != os.getpid():  # a referee that forks leaves the loading thread behind
            self._load_in_background()
        self._loaded.result()
        time = ENGINE_PART * (deadline - perf_counter())
        if time <= 0:
            return None
        position = Position.from_matrix(board, Colour(self.color), self._rules)
        action = self._rules.action_from_name(self._thinker.think(position, time=time).move)
        return divmod(action, self._rules.size)

    def _load_in_background(self) -> None:
        # Packages are imported before the thread starts: two threads that import the same package may deadlock.
        self._thinker = Thinker(self._agent)
        self._thinker.check(self._rules)
        self._process, self._loaded = os.getpid(), in_background(partial(self._thinker.prepare, self._rules))


def legal_moves(board: np.ndarray, color: int) -> list[Square]:
    """Return the legal moves of *color* row by row, in plain Python: nothing has to be compiled for it."""
    squares: list[list[int]] = board.tolist()
    empty = [(int(row), int(column)) for row, column in zip(*np.nonzero(board == COLOR_NONE), strict=True)]
    return [square for square in empty if any(_flips(squares, color, square, step) for step in _DIRECTIONS)]


def _flips(board: list[list[int]], color: int, square: Square, step: Square) -> bool:
    size = len(board)
    row, column = square[0] + step[0], square[1] + step[1]
    flipped = 0
    while 0 <= row < size and 0 <= column < size and board[row][column] == -color:
        row, column, flipped = row + step[0], column + step[1], flipped + 1
    return flipped > 0 and 0 <= row < size and 0 <= column < size and board[row][column] == color
