"""How long to think: a clock for the rest of the game, shared out over the moves that need thought.

Reversi ends at a known move at the latest, and this engine solves the last twenty-odd squares exactly. A solved position is
answered at once from then on. So the time is dealt out in equal shares to the moves before that, with `SOLVING_SHARES` more
kept for the solution; from there on every move may use a large part of what is left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from reversi_env import Position, ReversiError

#: Empty squares from which on the engine tries to solve, if the time allows.
SOLVING_EMPTIES = 22
#: What is kept for the solution, in shares of an ordinary move; and the part of the rest that it may use.
SOLVING_SHARES, SOLVING_PART = 6.0, 0.35
#: Seconds of a move that go to the controller, the pipe and a busy machine, and the part of the clock kept for them.
OVERHEAD_SECONDS, OVERHEAD_PART = 0.05, 0.02
#: The least time that makes sense to ask for.
LEAST_SECONDS = 0.002


@dataclass(frozen=True)
class Clock:
    """One side's time, in seconds: `left` now, and then, again and again, *period* seconds for every *moves* moves.

    ``in_period`` is the number of moves to be made within `left`, 0 while the main time lasts. Without *period* the main time
    is all there is.
    """

    left: float
    period: float = 0.0
    moves: int = 0
    in_period: int = 0

    def __post_init__(self) -> None:
        if not (0 <= self.left < 1e9 and 0 <= self.period < 1e9 and self.moves >= 0 and self.in_period >= 0):
            raise ReversiError(
                f"clock {self.left}, {self.period}, {self.moves}: expected seconds and moves of 0 or more"
            )

    def share(self, position: Position) -> float:
        """Seconds that the side to move should think about *position*."""
        usable = max(0.0, self.left * (1 - OVERHEAD_PART) - OVERHEAD_SECONDS)
        per_move = self.period / self.moves if self.moves else 0.0
        if self.in_period:
            share = usable / min(self.in_period, _moves_to_make(position))
        else:
            share = usable * _part(position.empties) + max(0.0, 0.9 * per_move - OVERHEAD_SECONDS)
            share = min(share, max(usable, per_move * 0.9 - OVERHEAD_SECONDS))
        return max(share, LEAST_SECONDS)

    def after(self, seconds: float) -> Clock:
        """The clock after a move that took so many seconds."""
        left = max(0.0, self.left - seconds)
        if not self.in_period:
            spent = seconds > self.left and self.moves > 0
            return self._period_begun().after(seconds - self.left) if spent else replace(self, left=left)
        return self._period_begun() if self.in_period == 1 else replace(self, left=left, in_period=self.in_period - 1)

    def _period_begun(self) -> Clock:
        return replace(self, left=self.period, in_period=self.moves)


def _moves_to_make(position: Position) -> int:
    """Moves that the side to move has at most, passes by the other side left aside."""
    return max(1, (position.empties + 1) // 2)


def _part(empties: int) -> float:
    """The part of the time left that a move deserves."""
    if empties <= SOLVING_EMPTIES:
        return SOLVING_PART if empties > 2 else 0.5
    before_solving = (empties - SOLVING_EMPTIES + 1) // 2
    return 1 / (before_solving + SOLVING_SHARES)
