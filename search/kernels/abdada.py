"""Simplified ABDADA (Kerrigan): marks of the positions that threads are searching.

A thread marks the position that it searches. A thread that finds a child marked defers the move, until the result is in the table.
Marks are hints: a lost or stale mark costs time but never changes a value, so they need no lock.
"""

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
#: Rank of deferred moves, after all others.
_DEFERRED_RANK = 1 << 40
_FREE = np.uint64(0)
_SPREAD = np.uint64(0x9E37_79B9_7F4A_7C15)


@kernel
def _mark_of(own, opp, depth):
    return position_hash(own, opp) + np.uint64(depth) * _SPREAD


@kernel
def _first_slot(mark):
    return np.int64(mark & np.uint64(BUSY_WORDS - SLOTS))


@kernel
def is_busy(marks, own, opp, depth):
    """Return whether a thread is searching the position to that *depth*."""
    mark = _mark_of(own, opp, depth)
    at = _first_slot(mark)
    for slot in range(SLOTS):
        if load_word(marks, at + slot) == mark:
            return True
    return False


@kernel
def mark_busy(marks, own, opp, depth):
    """Mark the position and *depth*; return the slot, or -1 if none was free."""
    mark = _mark_of(own, opp, depth)
    at = _first_slot(mark)
    for slot in range(SLOTS):
        if load_word(marks, at + slot) == _FREE:
            store_word(marks, at + slot, mark)
            return at + slot
    return np.int64(-1)


@kernel
def unmark_busy(marks, slot):
    if slot >= 0:
        store_word(marks, slot, _FREE)


def shares(thread: Any, depth: int) -> bool:
    """Return whether threads share searches to that *depth*: a constant for the record of a single thread. For use in kernels."""
    raise TypeError("shares is compiled into kernels")


@overload(shares)
def _shares(thread, depth):
    if "share_depth" in thread.fields:
        return lambda thread, depth: thread.busy != 0 and depth >= thread.share_depth
    return lambda thread, depth: False


@kernel
def defer_busy(thread, own, opp, level, at, listed, depth):
    """Defer the moves that other threads are searching, until move *at* of the list is not one of them or all are deferred."""
    while thread.rank[level, at] < _DEFERRED_RANK:
        flipped = thread.flipped[level, at]
        child_own, child_opp = opp ^ flipped, own | flipped | ONE << np.uint64(thread.square[level, at])
        if not is_busy(thread.busy, child_own, child_opp, depth):
            return
        thread.rank[level, at] = _DEFERRED_RANK
        pick_best(thread, level, at, listed)
