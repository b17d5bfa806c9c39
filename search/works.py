"""Records for searching threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from reversi_env import ReversiError, Rules
from reversi_env.errors import quoted
from search.core.busy import BUSY_WORDS
from search.core.near_table import NEAR_WORDS
from search.core.work import WORK
from search.cuts import EXACT

NO_NODE_LIMIT = 1 << 62
#: More empties than any board has.
NEVER = 99


def make_works(rules: Rules, threads: int = 1, dtype: np.dtype = WORK) -> np.ndarray:
    """A WORK record for each thread, or one of *dtype*, which has the same fields and more."""
    works = np.zeros(threads, dtype)
    works["playable"] = rules.playable
    works["squares"] = rules.square_count
    works["sign"] = rules.sign
    works["node_limit"] = NO_NODE_LIMIT
    works["cut_slope"] = works["end_slope"] = 1.0
    works["step"] = EXACT
    works["rank_empties"] = NEVER
    corners = [0, rules.size - 1, rules.square_count - rules.size, rules.square_count - 1]
    works["corners"] = sum(1 << rules.square_of(action) for action in corners)
    works["corner_reply"] = 1 if rules.sign > 0 else 0
    return works


def give_near_tables(works: np.ndarray) -> np.ndarray:
    """Give each thread its own small table of positions near the end; they are to be kept as long as the records are used."""
    rows = np.zeros((len(works), NEAR_WORDS), np.uint64)
    works["near"] = [row.ctypes.data for row in rows]
    return rows


@contextmanager
def sharing(works: np.ndarray) -> Iterator[None]:
    """Within it the threads mark what they are searching, and leave it to each other."""
    marks = np.zeros(BUSY_WORDS, np.uint64)
    works["busy"] = marks.ctypes.data
    try:
        yield
    finally:
        works["busy"] = 0


def checked_threads(threads: int) -> int:
    """The number of threads, if it is one."""
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 1024:
        raise ReversiError(f"threads={quoted(threads)}: expected a whole number from 1 to 1024")
    return threads
