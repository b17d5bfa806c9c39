"""`SearchTimer`: stops a search so early that its result comes within the time limit."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter

from search.limits import Limits

#: Minimum time from the timer's expiry to the result, in seconds. The timer expires that much earlier; on a busy machine the
#: estimate grows with the observed latency, up to a share of the limit, and decays at LATENCY_DECAY per search.
MIN_STOP_SECONDS = 0.002
MAX_SHARE_OF_LIMIT = 0.3
LATENCY_DECAY = 0.95


class StopLatency:
    """The recent delay between a stop request and the engine's result, in ``seconds``."""

    def __init__(self) -> None:
        self.seconds = MIN_STOP_SECONDS

    def observe(self, late: float) -> None:
        """Add an observation: a result came *late* seconds after the request."""
        self.seconds = max(late, MIN_STOP_SECONDS, LATENCY_DECAY * self.seconds)


class SearchTimer:
    """The time of one search, which begins now.

    It expires at the soft limit, or at the hard limit if *target_seconds* then asks for more, and calls *stop* in its own thread.
    """

    def __init__(
        self, limits: Limits, stop_latency: StopLatency, target_seconds: Callable[[], float], stop: Callable[[], None]
    ) -> None:
        self._limits, self._stop_latency = limits, stop_latency
        self._target_seconds, self._stop = target_seconds, stop
        self._began = perf_counter()
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._expires_at = math.inf
        self._expired = self._ended = False

    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return perf_counter() - self._began

    def start(self) -> None:
        """Start the timer, if there is a limit."""
        if self._limits.time is not None:
            self._schedule(min(self._limits.soft or math.inf, self._limits.time))

    def end(self) -> None:
        """End the timer. If it has expired, record the latency of the result."""
        with self._lock:
            self._ended = True
        if self._timer:
            self._timer.cancel()
        if self._expired:
            most = MAX_SHARE_OF_LIMIT * (self._limits.time or 0.0)  # the machine may have slept
            self._stop_latency.observe(min(self.elapsed() - self._expires_at, most))

    def _schedule(self, seconds: float) -> None:
        """Expire *seconds* after the start, less the expected latency."""
        self._expires_at = seconds - min(self._stop_latency.seconds, MAX_SHARE_OF_LIMIT * seconds)
        self._timer = threading.Timer(max(0.0, self._expires_at - self.elapsed()), partial(self._expire, seconds))
        self._timer.daemon = True
        self._timer.start()

    def _expire(self, seconds: float) -> None:
        with self._lock:  # a late timer must not stop the next search
            if self._ended:
                return
            if self._limits.time is not None and seconds < self._limits.time and seconds < self._target_seconds():
                self._schedule(self._limits.time)
                return
            self._expired = True
            self._stop()
