"""Which positions are being searched right now, so that threads share out the work instead of doing it twice.

A thread that comes to a position marks it; one that finds a child marked leaves it for later, when the other's result
will be in the table (ABDADA in Kerrigan's simplified form). Marks are hints: one that is lost or left over costs some
time and never a wrong value, so they need no lock.
"""

from __future__ import annotations

import numpy as np

from reversi_env.core.compiling import kernel
from reversi_env.core.symmetry import position_hash
from search.core.memory import load_word, store_word

SLOTS = 4
BUSY_WORDS = SLOTS << 13
_NOBODY = np.uint64(0)


@kernel
def _first_slot(mark):
    return np.int64(mark & np.uint64(BUSY_WORDS - SLOTS))


@kernel
def is_busy(marks, own, opp):
    """Whether a thread is searching the position."""
    mark = position_hash(own, opp)
    at = _first_slot(mark)
    for slot in range(SLOTS):
        if load_word(marks, at + slot) == mark:
            return True
    return False


@kernel
def set_busy(marks, own, opp):
    """Mark the position; the slot, or -1 if none was free."""
    mark = position_hash(own, opp)
    at = _first_slot(mark)
    for slot in range(SLOTS):
        if load_word(marks, at + slot) == _NOBODY:
            store_word(marks, at + slot, mark)
            return at + slot
    return np.int64(-1)


@kernel
def set_free(marks, slot):
    """Take back a mark."""
    if slot >= 0:
        store_word(marks, slot, _NOBODY)
