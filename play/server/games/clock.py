"""`ServerTime`, the time base of stored games; `Clock`, the game clock of both sides; and `RateLimiter`."""

from collections.abc import Callable
from time import monotonic
from typing import Any

from play.server.messages import ClockState
from reversi_env.rules import BLACK, WHITE, Colour

#: Minimum seconds that a side keeps when the increment of a move is taken back, if it has as many.
MIN_LEFT = 1.0


class ServerTime:
    """Seconds for which the server has run since its database was created, without the time between runs."""

    def __init__(self, monotonic: Callable[[], float] = monotonic) -> None:
        self._monotonic = monotonic
        self.resume(0.0)

    def resume(self, seconds: float) -> None:
        """Continue from *seconds*, where an earlier run of the server ended."""
        self._began = self._monotonic() - seconds

    def now(self) -> float:
        return self._monotonic() - self._began


class Clock:
    """Seconds left for each side, and the side whose time runs. Points in time are those of the `ServerTime`.

    A flag falls *grace* seconds after its side has used up its time. The grace compensates for network latency, per game.
    """

    def __init__(self, black: float, white: float, increment: float, grace: float) -> None:
        self._left = {BLACK: black, WHITE: white}
        self.increment, self.grace = increment, grace
        self.running: Colour | None = None
        self._since = 0.0

    def left(self, colour: Colour, now: float) -> float:
        """Return the seconds that *colour* has left at *now*; negative in its grace."""
        used = now - self._since if colour == self.running else 0.0
        return self._left[colour] - used

    def until_flag(self, now: float) -> float:
        """Return the seconds until the running side's flag falls; 0 or less if it has fallen."""
        return float("inf") if self.running is None else self.left(self.running, now) + self.grace

    def stop(self, now: float) -> None:
        if self.running is not None:
            self._left[self.running] = self.left(self.running, now)
        self.running = None

    def run(self, colour: Colour, now: float) -> None:
        """Let the time of *colour* run from *now* on."""
        self.running, self._since = colour, now

    def press(self, mover: Colour, now: float, *, seconds: float | None = None) -> bool:
        """Charge *mover* the time that ran, or *seconds*; return whether the move was in time."""
        before = self._left[mover]
        self.stop(now)
        if seconds is not None:
            self._left[mover] = before - seconds
        in_time = self._left[mover] + self.grace > 0
        if in_time:
            self._left[mover] += self.increment
        return in_time

    def take_back(self, mover: Colour) -> None:
        """Take back the increment of a move of *mover*, whose flag cannot fall by this."""
        self._left[mover] = max(self._left[mover] - self.increment, min(self._left[mover], MIN_LEFT))

    def state(self, now: float) -> ClockState:
        """Return the message about the clock, rounded to hundredths of a second."""
        black, white = (round(max(0.0, self.left(colour, now)), 2) for colour in (BLACK, WHITE))
        running: Any = None if self.running is None else str(self.running)
        return ClockState(black, white, self.increment, running, self.grace)


class RateLimiter:
    """Token buckets by name: each holds *burst* permissions and gains *rate* per second."""

    def __init__(self, burst: float, rate: float) -> None:
        self._burst, self._rate = burst, rate
        self._buckets: dict[str, tuple[float, float]] = {}

    def try_acquire(self, name: str) -> bool:
        """Take a permission, and return whether there was one."""
        return self.reserve(name, max_wait=0.0) is not None

    def reserve(self, name: str, cost: float = 1.0, max_wait: float = float("inf")) -> float | None:
        """Take *cost* permissions and return the seconds until they are due; take nothing and return None if above *max_wait*."""
        now = monotonic()
        level, at = self._buckets.get(name, (self._burst, now))
        level = min(self._burst, level + self._rate * (now - at)) - cost
        wait = 0.0 if level >= 0 else -level / self._rate if self._rate else float("inf")
        if wait > max_wait:
            return None
        if len(self._buckets) > 10_000:
            full = self._burst - 1
            self._buckets = {n: b for n, b in self._buckets.items() if b[0] + self._rate * (now - b[1]) < full}
        self._buckets[name] = (level, now)
        return wait
