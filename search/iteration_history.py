"""`IterationHistory`: best moves and values of a search's iterations, to decide whether to save time for later moves."""

from __future__ import annotations

#: Iterations in a row with the same best move, and the same reply to it, after which a move may be far ahead.
STEADY_ITERATIONS = 3
#: A value that fell by this much in two plies is looked into, in discs; two, since values of odd and even depths differ.
MAX_VALUE_DROP = 2.0


class IterationHistory:
    """Best lines and values of the iterations of one search."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, ...]] = []
        self._values: list[float] = []
        self._failing = False

    def failed_low(self) -> None:
        """The present iteration found less than its window: the value is about to fall, and another move may be better."""
        self._failing = True

    def add_iteration(self, line: tuple[str, ...], value: float) -> None:
        """Add a completed iteration with its principal variation and its *value* in discs."""
        self._values.append(value)  # first: the timer's thread counts the lines, and then reads the values
        self._lines.append(line[:2])
        self._failing = False

    @property
    def is_settled(self) -> bool:
        """Whether the best move is that of the iteration before, and has not become much worse."""
        if len(self._lines) < 3 or self._failing:
            return False
        return self._lines[-1][0] == self._lines[-2][0] and self._values[-1] > self._values[-3] - MAX_VALUE_DROP

    @property
    def is_steady(self) -> bool:
        """Whether the best move and the reply to it have been the same for some iterations."""
        last = self._lines[-STEADY_ITERATIONS:]
        return self.is_settled and len(last) == STEADY_ITERATIONS and len(last[0]) == 2 and len(set(last)) == 1
