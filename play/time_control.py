"""Time control: how many seconds of the game clock a move may use.

The engine solves the last twenty-odd squares, after which its moves take no time. Before, a move gets time by its weight: little in
the opening, most from about forty empties to the solution, for which `SOLVING_WEIGHT` is reserved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from reversi_env import Position, ReversiError

#: Empty squares at which the engine begins to solve, with ten seconds left; one more or less for each doubling or halving.
SOLVING_EMPTIES = 26
#: Time reserved for the solution, in weights of moves; and the part of the rest that it may use.
SOLVING_WEIGHT, SOLVING_PART = 5.0, 0.5
#: A move's weight rises between these numbers of empty squares, from the first weight to the second.
OPENING_EMPTIES, MIDGAME_EMPTIES = 52, 40
OPENING_WEIGHT, MIDGAME_WEIGHT = 0.4, 1.4
#: A move whose search has not settled may use this multiple of its share, and at most this part of the rest.
MAX_SHARES, MAX_PART = 2.5, 0.6
#: Overhead of a move in the controller, the pipe and a busy machine, in seconds and as a part of the clock.
OVERHEAD_SECONDS, OVERHEAD_PART = 0.05, 0.02
#: Minimum time of a search.
MIN_SECONDS = 0.002


@dataclass(frozen=True)
class TimeControl:
    """The time of one side in seconds: *left* now, then *period* seconds for every *moves* moves.

    ``in_period`` is the number of moves to be made within *left*, 0 during the main time. Without *period* there is only the main
    time, with an *increment* after every move.
    """

    left: float
    period: float = 0.0
    moves: int = 0
    in_period: int = 0
    increment: float = 0.0

    def __post_init__(self) -> None:
        seconds = (self.left, self.period, self.increment)
        if not (all(0 <= time < 1e9 for time in seconds) and self.moves >= 0 and self.in_period >= 0):
            raise ReversiError(
                f"clock {self.left}, {self.period}, {self.moves}, {self.increment}: expected seconds and moves of 0 or more"
            )

    def usual_seconds(self, position: Position) -> float:
        """Return the seconds that the side to move should usually spend on *position*."""
        usable = self._usable()
        if self.in_period:
            moves_left = max(1, (position.empties + 1) // 2)  # an upper bound if the other side does not pass
            seconds = usable / min(self.in_period, moves_left)
        else:
            seconds = min(usable * _part(position.empties, usable) + self._gained(), self._largest())
        return max(seconds, MIN_SECONDS)

    def max_seconds(self, position: Position) -> float:
        """Return the maximum number of seconds for *position*, if the search has not settled by then."""
        usual = self.usual_seconds(position)
        return max(usual, min(MAX_SHARES * usual, MAX_PART * self._usable()))

    def _usable(self) -> float:
        return max(0.0, self.left * (1 - OVERHEAD_PART) - OVERHEAD_SECONDS)

    def _gained(self) -> float:
        """Return the seconds that a move may use of its increment, or of a period that begins after the main time."""
        per_move = self.increment + (self.period / self.moves if self.moves else 0.0)
        return max(0.0, 0.9 * per_move - OVERHEAD_SECONDS)

    def _largest(self) -> float:
        """Return the maximum for a move: periods begin within it, an increment comes only after it."""
        return max(self._usable(), self._gained() if self.moves else 0.0)

    def after(self, seconds: float) -> TimeControl:
        """Return the clock after a move that took *seconds*."""
        left = max(0.0, self.left - seconds) + self.increment
        if not self.in_period:
            spent = seconds > self.left and self.moves > 0
            return self._period_begun().after(seconds - self.left) if spent else replace(self, left=left)
        return self._period_begun() if self.in_period == 1 else replace(self, left=left, in_period=self.in_period - 1)

    def _period_begun(self) -> TimeControl:
        return replace(self, left=self.period, in_period=self.moves)


def _part(empties: int, usable: float) -> float:
    solving = SOLVING_EMPTIES + round(math.log2(max(usable, MIN_SECONDS) / 10))
    if empties <= solving:
        return SOLVING_PART
    return _weight(empties) / (sum(map(_weight, range(empties, solving, -2))) + SOLVING_WEIGHT)


def _weight(empties: int) -> float:
    progress = (OPENING_EMPTIES - empties) / (OPENING_EMPTIES - MIDGAME_EMPTIES)
    return OPENING_WEIGHT + (MIDGAME_WEIGHT - OPENING_WEIGHT) * min(max(progress, 0.0), 1.0)
