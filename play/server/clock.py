"""`Clock`: the time of both sides; and `Buckets`, how often anybody may do something."""

from __future__ import annotations

from time import monotonic

from play.server.messages import ClockState
from reversi_env.rules import BLACK, WHITE, Colour


class Clock:
    """Seconds left for each side, and the side whose time runs. Times are those of `time.monotonic`."""

    def __init__(self, black: float, white: float, increment: float) -> None:
        self._left = {BLACK: black, WHITE: white}
        self.increment = increment
        self.running: Colour | None = None
        self._since = 0.0

    def left(self, colour: Colour, now: float) -> float:
        """Seconds that *colour* has left at *now*; never below 0."""
        used = now - self._since if colour == self.running else 0.0
        return max(0.0, self._left[colour] - used)

    def stop(self, now: float) -> None:
        """Stop the time that runs."""
        if self.running is not None:
            self._left[self.running] = self.left(self.running, now)
        self.running = None

    def run(self, colour: Colour, now: float) -> None:
        """Let the time of *colour* run from *now* on."""
        self.running, self._since = colour, now

    def press(self, mover: Colour, now: float, *, seconds: float | None = None) -> bool:
        """*mover* has moved, and is charged what ran, or *seconds* if given; whether it was in time."""
        before = self._left[mover]
        self.stop(now)
        if seconds is not None:
            self._left[mover] = max(0.0, before - seconds)
        in_time = self._left[mover] > 0
        self._left[mover] += self.increment
        return in_time

    def state(self, now: float) -> ClockState:
        """What is told to clients, in hundredths of a second."""
        black, white = (round(self.left(colour, now), 2) for colour in (BLACK, WHITE))
        running = None if self.running is None else ("black" if self.running == BLACK else "white")
        return ClockState(black, white, self.increment, running)  # type: ignore[arg-type]


class Buckets:
    """Token buckets by name: each holds *burst* permissions and gains *rate* a second."""

    def __init__(self, burst: float, rate: float) -> None:
        self._burst, self._rate = burst, rate
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> bool:
        """Whether there was a permission left, which is now taken."""
        now = monotonic()
        level, at = self._buckets.get(name, (self._burst, now))
        level = min(self._burst, level + self._rate * (now - at))
        if level < 1:
            return False
        if len(self._buckets) > 10_000:
            self._forget_the_full(now)
        self._buckets[name] = (level - 1, now)
        return True

    def _forget_the_full(self, now: float) -> None:
        full = self._burst - 1
        self._buckets = {n: b for n, b in self._buckets.items() if b[0] + self._rate * (now - b[1]) < full}
