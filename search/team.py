"""`Team`: the threads of one search, as many at a time as there are cores for.

Threads that search one tree repeat some of each other's work, about an eighth with two. That is cheap on a core of one's
own. Where the operating system gives two threads no more than one core between them, because other processes want the
rest, they are slower than one. So the caller's thread watches how much time on cores its process gets, lets as many
threads sleep as there are none for, and tries again after a while.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter, process_time

import numpy as np

from search.stopping import StopSwitch

#: Seconds between two looks at the clocks.
WINDOW = 0.1
#: A thread is kept if it gets at least this much of a core …
LEAST = 0.2
#: … and after so many seconds another try is made; twice as many each time on end, up to the longest.
REST, LONGEST_REST = 0.5, 2.0


class Room:
    """How many of *threads* there are cores for."""

    def __init__(self, threads: int) -> None:
        self.threads = self.awake = threads
        self._seconds = self._used = 0.0
        self._rest, self._rests_until = REST, 0.0

    def note(self, seconds: float, used: float) -> None:
        """The process has *used* so many seconds of cores' time in so many *seconds*."""
        self._seconds, self._used = self._seconds + seconds, self._used + used
        if self._seconds < WINDOW:
            return
        room = max(1, int(self._used / self._seconds + 1 - LEAST))
        self._seconds = self._used = 0.0
        if room < self.awake:
            self.awake, self._rests_until = room, perf_counter() + self._rest
            self._rest = min(2 * self._rest, LONGEST_REST)
        elif self.awake == self.threads:
            self._rest = REST
        elif perf_counter() > self._rests_until:
            self.awake = self.threads


class Team:
    """The threads of a search, one for each record of *works*."""

    def __init__(self, works: np.ndarray, switch: StopSwitch) -> None:
        self._works, self._switch, self._room = works, switch, Room(len(works))
        self._may_run = [threading.Event() for _ in works]
        self._ended = threading.Event()

    def run(self, search: Callable[[int], bool], *, any_ends: bool = False) -> None:
        """Run ``search(k)`` for every record in a thread of its own, the first being the search that matters.

        When it ends, the others are stopped; with *any_ends* it ends when any of them does. A search that is stopped to
        sleep for a while is called again later, and had better find in the table what it knew. *search* tells whether it
        came to its end. All threads have ended when this returns.
        """
        self._search, self._any_ends = search, any_ends
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._ended.clear()
        try:
            self._wake(self._room.awake)
            self._watch()
        finally:
            self._end()
            for thread in self._threads:
                thread.join()
        if self._error:
            raise self._error

    def _member(self, k: int) -> None:
        try:
            while not self._search(k) and k and not self._must_end(k):
                self._may_run[k].wait()
        except BaseException as error:
            self._error = error
        if k == 0 or self._any_ends or self._error:
            self._end()

    def _must_end(self, k: int) -> bool:
        work = self._works[k]
        return bool(self._ended.is_set() or self._switch.requested or work["nodes"] > work["node_limit"])

    def _end(self) -> None:
        self._ended.set()
        self._switch.halt()
        for event in self._may_run:
            event.set()

    def _watch(self) -> None:
        """Keep as many threads awake as there is room for, until the search has ended."""
        seen, used, ended = perf_counter(), process_time(), False
        while not ended:
            ended = self._ended.wait(WINDOW)
            now, used_now, awake = perf_counter(), process_time(), self._room.awake
            self._room.note(now - seen, used_now - used)
            seen, used = now, used_now
            if ended or self._room.awake == awake:
                continue
            if self._room.awake < awake:
                self._let_sleep(self._room.awake)
            else:
                self._wake(self._room.awake)

    def _let_sleep(self, awake: int) -> None:
        """Stop all but the first *awake*."""
        for event in self._may_run[awake:]:
            event.clear()
        self._works["stop"][awake:] = 1
        if self._ended.is_set():  # which would have woken them
            self._end()

    def _wake(self, awake: int) -> None:
        """Let the first *awake* go on, or begin."""
        for k in range(1, awake):
            if not self._may_run[k].is_set():
                self._works["stop"][k] = 0
        if self._ended.is_set() or self._switch.requested:  # whose flags these may have been
            self._switch.halt()
        for event in self._may_run[:awake]:
            event.set()
        for k in range(len(self._threads), awake):
            thread = threading.Thread(target=self._member, args=(k,))
            thread.start()
            self._threads.append(thread)
