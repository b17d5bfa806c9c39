"""`Clock`: ends a search when its time is up, and so early that its result comes in time."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter

from search.limits import Limits

#: What it takes to wake up, stop and report, in seconds: the clock rings so much earlier, on a busy machine as much as it
#: has lately come too late there, but never by more than a share of the limit. What was learnt is forgotten at this rate.
RETURN_SECONDS = 0.002
MOST_OF_LIMIT = 0.3
FORGETTING = 0.95


class Lateness:
    """How long after the clock has rung an engine's results come, in ``seconds``, as it has lately been."""

    def __init__(self) -> None:
        self.seconds = RETURN_SECONDS

    def learn(self, late: float) -> None:
        """A result came so many seconds *late*."""
        self.seconds = max(late, RETURN_SECONDS, FORGETTING * self.seconds)


class Clock:
    """The time of one search, which begins now.

    It rings, which calls *stop* in a thread of its own, at the soft limit, or if *time_wanted* says then that more than that is
    of use, at the hard one; if there are any.
    """

    def __init__(
        self, limits: Limits, lateness: Lateness, time_wanted: Callable[[], float], stop: Callable[[], None]
    ) -> None:
        self._limits, self._lateness = limits, lateness
        self._time_wanted, self._stop = time_wanted, stop
        self._began = perf_counter()
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._rings_at = math.inf
        self._has_rung = self._ended = False

    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return perf_counter() - self._began

    def start(self) -> None:
        """Set it to ring, if there is a limit."""
        if self._limits.time is not None:
            self._ring_at(min(self._limits.soft or math.inf, self._limits.time))

    def end(self) -> None:
        """The search has ended: it rings no more, and if it had rung, it learns how late the result is."""
        with self._lock:
            self._ended = True
        if self._timer:
            self._timer.cancel()
        if self._has_rung:
            most = MOST_OF_LIMIT * (self._limits.time or 0.0)  # the machine may have slept
            self._lateness.learn(min(self.elapsed() - self._rings_at, most))

    def _ring_at(self, seconds: float) -> None:
        """Ring so many seconds after the beginning, or a little earlier: whoever hears it takes a while."""
        self._rings_at = seconds - min(self._lateness.seconds, MOST_OF_LIMIT * seconds)
        self._timer = threading.Timer(max(0.0, self._rings_at - self.elapsed()), partial(self._ring, seconds))
        self._timer.daemon = True
        self._timer.start()

    def _ring(self, seconds: float) -> None:
        with self._lock:  # a clock that is late must not stop the next search
            if self._ended:
                return
            if self._limits.time is not None and seconds < self._limits.time and seconds < self._time_wanted():
                self._ring_at(self._limits.time)
                return
            self._has_rung = True
            self._stop()
