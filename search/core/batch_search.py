"""Searching many positions to one depth, without a word of Python between them.

Built on `midgame.negamax`, and with its conventions: values are UNITs for the side to move, a pass uses up no depth, a
game that ends within the depth counts its exact score.

**Why the values do not depend on the order of the positions**, though all of them use one table: every position of a
call has the same number of empty squares. A position that is met *k* moves below any of them has *k* empty squares
fewer, and is always searched to the same depth. So each bound that the table holds for a search to the full depth
bounds the one true value of that depth, whichever root it was found under. (With roots of different empties, an entry
left by a root further up would be deeper than asked for, and would be used all the same.) The caller must give a
cleared table to positions with another number of empties.
"""

from __future__ import annotations

import numpy as np

from reversi_env.core.compiling import kernel
from search.core.midgame import INFINITY, UNIT, negamax

#: From so much depth on a shallower search first tells about where the value lies, and which moves are good.
GUESS_DEPTH = 4
#: How much shallower that one is: an even number of plies, since values of odd and even depths differ.
GUESS_PLIES = 2
#: Half the width of the first window around the guess.
WINDOW = 4 * UNIT


@kernel
def search_many(thread_states, nets, own, opp, depth, values):
    """Write the value to *depth* plies of every position into *values*; return early, the rest unwritten, at a stop."""
    thread, net = thread_states[0], nets[0]
    # a literal argument would give negamax a type of its own, which crashes the next process, from the cache
    lowest, highest, shallow = np.int64(-INFINITY), np.int64(INFINITY), np.int64(depth - GUESS_PLIES)
    for i in range(own.size):
        low, high = lowest, highest
        if depth >= GUESS_DEPTH:
            guess = negamax(thread, net, own[i], opp[i], lowest, highest, shallow)
            low, high = np.int64(guess - WINDOW), np.int64(guess + WINDOW)
        value = negamax(thread, net, own[i], opp[i], low, high, depth)
        if value <= low or value >= high:  # outside the window: only a bound
            value = negamax(thread, net, own[i], opp[i], lowest, highest, depth)
        if thread.stop:
            return
        values[i] = value
