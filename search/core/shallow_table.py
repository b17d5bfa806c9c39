"""The small table of positions near the end of the game: each thread has its own, as large as the processor's nearest caches.

Most positions that a solver looks up have 7 to 9 empty squares. In the table that all threads share each of them costs a trip to
memory, for a result that is soon forgotten; here a position has one place, by its empties and its hash, and whoever comes last
keeps it. FFO 40-44 take 0.9 of the time on an ARM Neoverse with fetching ahead, though some more positions are searched (1 % with
the network's order, 4 % without). With 10 empties as well there were 7 % more without it, and no gain.
"""

from __future__ import annotations

import numpy as np

from reversi_env.core.compiling import kernel
from reversi_env.core.symmetry import position_hash
from search.core.memory import load_word, prefetch_word, store_word
from search.core.table import NO_MOVE, lower_of, move_of, pack, upper_of

#: Fewest and most empties of a position that is kept here.
MIN_EMPTIES, MAX_EMPTIES = 7, 9
#: Confidence of all entries: nothing near the end is ever cut (`search.core.endgame`).
EXACT = 5
#: An entry is a position and the data word of `search.core.table`; so many bits of the hash choose it.
_WORDS, _BITS = 3, 13
#: 64-bit words of a thread's table.
SHALLOW_WORDS = (MAX_EMPTIES - MIN_EMPTIES + 1) * _WORDS << _BITS
_NO_MOVES, _SHIFT = np.uint64(0), np.uint64(64 - _BITS)


@kernel
def shallow_slot(own, opp, count):
    """Index of the first word of the position's entry."""
    return (((count - MIN_EMPTIES) << _BITS) + np.int64(position_hash(own, opp) >> _SHIFT)) * _WORDS


@kernel
def shallow_probe(table, own, opp, count):
    """Data word of the position's entry, or 0 if there is none."""
    at = shallow_slot(own, opp, count)
    return load_word(table, at + 2) if load_word(table, at) == own and load_word(table, at + 1) == opp else _NO_MOVES


@kernel
def shallow_prefetch(table, own, opp, count):
    """Have the position's entry brought into the nearest cache while other work is done."""
    prefetch_word(table, shallow_slot(own, opp, count))


@kernel
def shallow_store(table, own, opp, lower, upper, move, count):
    """Keep bounds, narrowed by those that are known, and the best move; NO_MOVE: the one that is known stays."""
    at = shallow_slot(own, opp, count)
    data = shallow_probe(table, own, opp, count)
    if data:
        lower, upper = max(lower, lower_of(data)), min(upper, upper_of(data))
        move = move_of(data) if move == NO_MOVE else move
    store_word(table, at, own)
    store_word(table, at + 1, opp)
    store_word(table, at + 2, pack(lower, upper, move, NO_MOVE, count + EXACT, 0))
