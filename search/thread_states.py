"""Records for searching threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from reversi_env import ReversiError, Rules
from reversi_env.errors import quoted
from search.core.abdada import BUSY_WORDS
from search.core.shallow_table import SHALLOW_WORDS
from search.core.thread_state import THREAD_STATE
from search.probcut import EXACT

NO_NODE_LIMIT = 1 << 62
#: More empties than any board has.
NEVER = 99


def make_thread_states(rules: Rules, threads: int = 1, dtype: np.dtype = THREAD_STATE) -> np.ndarray:
    """A WORK record for each thread, or one of *dtype*, which has the same fields and more."""
    thread_states = np.zeros(threads, dtype)
    thread_states["playable"] = rules.playable
    thread_states["squares"] = rules.square_count
    thread_states["sign"] = rules.sign
    thread_states["node_limit"] = NO_NODE_LIMIT
    thread_states["cut_slope"] = thread_states["end_slope"] = 1.0
    thread_states["selectivity"] = EXACT
    thread_states["rank_empties"] = NEVER
    corners = [0, rules.size - 1, rules.square_count - rules.size, rules.square_count - 1]
    thread_states["corners"] = sum(1 << rules.square_of(action) for action in corners)
    thread_states["corner_reply"] = 1 if rules.sign > 0 else 0
    return thread_states


def attach_shallow_tables(thread_states: np.ndarray) -> np.ndarray:
    """Give each thread its own small table of positions near the end; they are to be kept as long as the records are used."""
    rows = np.zeros((len(thread_states), SHALLOW_WORDS), np.uint64)
    thread_states["shallow_table"] = [row.ctypes.data for row in rows]
    return rows


@contextmanager
def sharing(thread_states: np.ndarray) -> Iterator[None]:
    """Within it the threads mark what they are searching, and leave it to each other."""
    marks = np.zeros(BUSY_WORDS, np.uint64)
    thread_states["busy"] = marks.ctypes.data
    try:
        yield
    finally:
        thread_states["busy"] = 0


def checked_threads(threads: int) -> int:
    """The number of threads, if it is one."""
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 1024:
        raise ReversiError(f"threads={quoted(threads)}: expected a whole number from 1 to 1024")
    return threads
