"""Which positions are being searched right now, so that threads share out the work instead of doing it twice.

A thread that comes to a position marks it; one that finds a child marked leaves it for later, when the other's result
will be in the table (ABDADA in Kerrigan's simplified form). Marks are hints: one that is lost or left over costs some
time and never a wrong value, so they need no lock.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import ONE
from reversi_env.kernels.symmetry import position_hash
from search.kernels.ordering import pick_best
from search.kernels.table import load_word, store_word

SLOTS = 4
BUSY_WORDS = SLOTS << 13
#: Rank of moves that were put off: behind every other.
_DEFERRED_RANK = 1 << 40
_NOBODY = np.uint64(0)
_SPREAD = np.uint64(0x9E37_79B9_7F4A_7C15)


@kernel
def _mark_of(own, opp, depth):
    """What stands for a search of the position to that depth."""
    return position_hash(own, opp) + np.uint64(depth) * _SPREAD


@kernel
def _first_slot(mark):
    return np.int64(mark & np.uint64(BUSY_WORDS - SLOTS))


@kernel
def is_busy(marks, own, opp, depth):
    """Whether a thread is searching the position to that *depth*."""
    mark = _mark_of(own, opp, depth)
    at = _first_slot(mark)
    for slot in range(SLOTS):
        if load_word(marks, at + slot) == mark:
            return True
    return False


@kernel
def mark_busy(marks, own, opp, depth):
    """Mark the position and *depth*; the slot, or -1 if none was free."""
    mark = _mark_of(own, opp, depth)
    at = _first_slot(mark)
    for slot in range(SLOTS):
        if load_word(marks, at + slot) == _NOBODY:
            store_word(marks, at + slot, mark)
            return at + slot
    return np.int64(-1)


@kernel
def unmark_busy(marks, slot):
    """Take back a mark."""
    if slot >= 0:
        store_word(marks, slot, _NOBODY)


def shares(thread: Any, depth: int) -> bool:
    """Whether threads share what is searched to that *depth*: a constant for a record of one thread alone. For use in kernels."""
    raise TypeError("shares is compiled into kernels")


@overload(shares)
def _shares(thread, depth):
    if "share_depth" in thread.fields:
        return lambda thread, depth: thread.busy != 0 and depth >= thread.share_depth
    return lambda thread, depth: False


@kernel
def defer_busy(thread, own, opp, level, at, listed, depth):
    """Put moves that other threads are searching behind all others, until another one, if any is left, is move *at* of the list."""
    while thread.rank[level, at] < _DEFERRED_RANK:
        flipped = thread.flipped[level, at]
        child_own, child_opp = opp ^ flipped, own | flipped | ONE << np.uint64(thread.square[level, at])
        if not is_busy(thread.busy, child_own, child_opp, depth):
            return
        thread.rank[level, at] = _DEFERRED_RANK
        pick_best(thread, level, at, listed)
