"""`ServerTime` and `Clock`: the time of games and of both sides; and `RateLimiter`."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from play.server.messages import ClockState
from reversi_env.rules import BLACK, WHITE, Colour

#: Seconds that whoever has them keeps when moves are taken back.
LEAST_LEFT = 1.0


class ServerTime:
    """What games are timed by: the seconds that the server has been up since its database was made, restarts left out.

    It is the same before and after a restart, and goes on whether a game is in memory or not. *monotonic* tells how it passes.
    """

    def __init__(self, monotonic: Callable[[], float] = monotonic) -> None:
        self._monotonic = monotonic
        self.resume(0.0)

    def resume(self, seconds: float) -> None:
        """Go on from *seconds*, where an earlier run of the server ended."""
        self._began = self._monotonic() - seconds

    def now(self) -> float:
        """The seconds so far."""
        return self._monotonic() - self._began


class Clock:
    """Seconds left for each side, and the side whose time runs. Moments are those of the `ServerTime`.

    A flag falls *grace* seconds after its side has used up its time. What a side has used of its grace is gone: it is for the
    whole game, for what networks take, and not for every move.
    """

    def __init__(self, black: float, white: float, increment: float, grace: float) -> None:
        self._left = {BLACK: black, WHITE: white}
        self.increment, self.grace = increment, grace
        self.running: Colour | None = None
        self._since = 0.0

    def left(self, colour: Colour, now: float) -> float:
        """Seconds that *colour* has left at *now*; below 0 in its grace."""
        used = now - self._since if colour == self.running else 0.0
        return self._left[colour] - used

    def until_flag(self, now: float) -> float:
        """Seconds until the flag of the side falls whose time runs; 0 or less if it has."""
        return float("inf") if self.running is None else self.left(self.running, now) + self.grace

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
            self._left[mover] = before - seconds
        in_time = self._left[mover] + self.grace > 0
        if in_time:
            self._left[mover] += self.increment
        return in_time

    def take_back(self, mover: Colour) -> None:
        """A move of *mover* does not count, nor does its increment; but nobody is out of time for taking back."""
        self._left[mover] = max(self._left[mover] - self.increment, min(self._left[mover], LEAST_LEFT))

    def state(self, now: float) -> ClockState:
        """What is told to clients, in hundredths of a second."""
        black, white = (round(max(0.0, self.left(colour, now)), 2) for colour in (BLACK, WHITE))
        running = None if self.running is None else ("black" if self.running == BLACK else "white")
        return ClockState(black, white, self.increment, running, self.grace)  # type: ignore[arg-type]


class RateLimiter:
    """Token buckets by name: each holds *burst* permissions and gains *rate* a second."""

    def __init__(self, burst: float, rate: float) -> None:
        self._burst, self._rate = burst, rate
        self._buckets: dict[str, tuple[float, float]] = {}

    def try_acquire(self, name: str) -> bool:
        """Whether there was a permission left, which is now taken."""
        now = monotonic()
        level, at = self._buckets.get(name, (self._burst, now))
        level = min(self._burst, level + self._rate * (now - at))
        if level < 1:
            return False
        if len(self._buckets) > 10_000:
            self._drop_full(now)
        self._buckets[name] = (level - 1, now)
        return True

    def _drop_full(self, now: float) -> None:
        full = self._burst - 1
        self._buckets = {n: b for n, b in self._buckets.items() if b[0] + self._rate * (now - b[1]) < full}
