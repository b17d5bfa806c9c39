"""Time limits of searches: timers, the history of iterations under a game clock, and stop flags.

How much time a move gets under a game clock is decided by `play.time_control`.
"""

import math
import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np

from search.engine.limits import Limits

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

    It expires at the soft limit, or at the hard limit if *target_seconds* is then longer, and calls *stop* in its own thread.
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
        return perf_counter() - self._began

    def start(self) -> None:
        if self._limits.time is not None:
            self._schedule(min(self._limits.soft or math.inf, self._limits.time))

    def end(self) -> None:
        """End the timer. If it has expired, record the latency of the result."""
        with self._lock:
            self._ended = True
        if self._timer:
            self._timer.cancel()
        if self._expired:
            most = MAX_SHARE_OF_LIMIT * (self._limits.time or 0.0)  # the computer may have been suspended
            self._stop_latency.observe(min(self.elapsed() - self._expires_at, most))

    def _schedule(self, seconds: float) -> None:
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


#: Iterations in a row with the same best move, and the same reply to it, after which a move may be far ahead.
SAME_REPLY_ITERATIONS = 3
#: Maximum fall of the value in discs within two plies of a settled search. Values of odd and even depths differ.
MAX_VALUE_DROP = 2.0


class IterationHistory:
    """Best lines and values of the iterations of one search."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, ...]] = []
        self._values: list[float] = []
        self._failing = False

    def failed_low(self) -> None:
        """Record that the current iteration failed low: another move may be better."""
        self._failing = True

    def add_iteration(self, line: tuple[str, ...], value: float) -> None:
        """Add a completed iteration with its principal variation and its *value* in discs."""
        self._values.append(value)  # first: the timer's thread counts the lines, and then reads the values
        self._lines.append(line[:2])
        self._failing = False

    @property
    def is_settled(self) -> bool:
        """Whether the last two iterations have the same best move, and its value did not fall much."""
        if len(self._lines) < 3 or self._failing:
            return False
        return self._lines[-1][0] == self._lines[-2][0] and self._values[-1] > self._values[-3] - MAX_VALUE_DROP

    @property
    def has_same_reply(self) -> bool:
        """Whether the search is settled, and the reply to the best move has been the same for SAME_REPLY_ITERATIONS."""
        last = self._lines[-SAME_REPLY_ITERATIONS:]
        return self.is_settled and len(last) == SAME_REPLY_ITERATIONS and len(last[0]) == 2 and len(set(last)) == 1


class StopSwitch:
    """The stop flags of the threads' records, and whether a stop was requested.

    Kernels set a flag at a node limit, and a thread that is done sets those of the others; `release` clears them. A concurrent
    request is not lost: it is recorded before the flags are set, and checked after they are cleared.
    """

    def __init__(self, thread_states: np.ndarray) -> None:
        self._flags = thread_states["stop"]
        self.requested = False

    def request(self) -> None:
        """Make the kernels return as soon as they can; callable from any thread at any moment."""
        self.requested = True
        self._flags[:] = 1

    def withdraw(self) -> None:
        """Clear an earlier request at the start of a search."""
        self.requested = False
        self.release()

    def release(self) -> None:
        """Clear the flags unless a stop was requested."""
        self._flags[:] = 0
        if self.requested:
            self._flags[:] = 1

    def halt(self) -> None:
        """Set the flags without a request, until `release`."""
        self._flags[:] = 1
