"""Lists of moves, one a level, inside the record of a searching thread: no array is made while it searches.

A level is a number of empty squares, which no two positions on the way to a leaf share. Each entry has the flipped discs,
the square, and a rank: the lower, the earlier it is searched. Moves are brought forward one by one as they are needed,
since most positions are done with after the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reversi_env.compiler.kernel import kernel

#: Room in a list of moves; no board is known, reachable or not, with more than 35.
MAX_MOVES = 40
#: A power of two that no place in a list reaches.
_PLACES = 64
#: The fields that a record needs to hold the lists.
MOVE_LISTS: list[Any] = [
    ("flipped", np.uint64, (64, MAX_MOVES)),
    ("square", np.int64, (64, MAX_MOVES)),
    ("rank", np.int64, (64, MAX_MOVES)),
]


@kernel
def add_move(thread, level, listed, flipped, sq, rank):
    """Write a move behind the *listed* ones of its level; how many there are now."""
    thread.flipped[level, listed], thread.square[level, listed], thread.rank[level, listed] = flipped, sq, rank
    return listed + 1


@kernel
def pick_best(thread, level, at, listed):
    """Exchange move *at* of this level with the best one from there on; of equals, with the first.

    The lowest of the ranks with their places needs no branch that is hard to predict: 1.5 % of the midgame's time on x86.
    """
    lowest = thread.rank[level, at] * _PLACES + at
    for i in range(at + 1, listed):
        lowest = min(lowest, thread.rank[level, i] * _PLACES + i)
    best = lowest & (_PLACES - 1)
    if best != at:
        flipped, sq, rank = thread.flipped[level, best], thread.square[level, best], thread.rank[level, best]
        thread.flipped[level, best], thread.square[level, best] = thread.flipped[level, at], thread.square[level, at]
        thread.rank[level, best] = thread.rank[level, at]
        thread.flipped[level, at], thread.square[level, at], thread.rank[level, at] = flipped, sq, rank
