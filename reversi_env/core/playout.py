"""Random play inside compiled code: a counter-based generator, uniform choice of a move, whole games."""

from __future__ import annotations

import numpy as np

from reversi_env.core.bitboard import NO_SQUARE, ONE, legal_moves, play
from reversi_env.core.compiling import kernel
from reversi_env.core.intrinsics import popcount, trailing_zeros
from reversi_env.core.symmetry import mix
from reversi_env.core.threads import claim_rows, claimed_rows, loop

#: No game has more plies: at most 60 squares are filled, and no two passes follow each other.
LONGEST_GAME = 120
GOLDEN_GAMMA = np.uint64(0x9E37_79B9_7F4A_7C15)


@kernel
def next_random(state):
    """The next 64 random bits of SplitMix64 and the state that follows."""
    state += GOLDEN_GAMMA
    return mix(state), state


@kernel
def stream_state(seed, number):
    """The generator state that stream *number* of *seed* begins with.

    The seed is mixed before the number is added: sums of the two would give neighbouring seeds the same streams.
    """
    return mix(mix(seed + GOLDEN_GAMMA) + number)


@kernel
def nth_square(board, n):
    """The square of the *n*-th set bit of *board*, counted from zero."""
    for _ in range(n):
        board &= board - ONE
    return trailing_zeros(board)


@kernel
def random_square(board, word):
    """A uniformly chosen square of the non-empty *board*, from 64 random bits (bias below 2**-26)."""
    choice = ((word >> np.uint64(32)) * np.uint64(popcount(board))) >> np.uint64(32)
    return nth_square(board, np.int64(choice))


@kernel
def random_plies(own, opp, playable, limit, state):
    """Play at most *limit* uniformly random legal moves and passes: (own, opp, plies played, generator state) thereafter.

    The boards are seen by the side to move then. Fewer plies than *limit* mean that the game is over.
    """
    for ply in range(limit):
        moves = legal_moves(own, opp, playable)
        if moves != NO_SQUARE:
            word, state = next_random(state)
            own, opp = play(random_square(moves, word), own, opp)
        elif legal_moves(opp, own, playable) != NO_SQUARE:
            own, opp = opp, own
        else:
            return own, opp, ply, state
    return own, opp, limit, state


@loop(grain=16)
def count_random_plies(share, own, opp, playable, seed, lengths):
    """Plies of random games from one position to the end; game *i* depends on (seed, i) only."""
    while claim_rows(share):
        for game in claimed_rows(share):
            _, _, lengths[game], _ = random_plies(own, opp, playable, LONGEST_GAME, stream_state(seed, game))


@loop(grain=64)
def random_positions_loop(share, own, opp, playable, plies, seed, reached):
    """Advance each position by ``plies[i]`` random plies, starting over (at most a hundred times) where a game ends before that."""
    while claim_rows(share):
        for i in claimed_rows(share):
            state = stream_state(seed, i)
            reached[i] = False
            for _ in range(100):
                end_own, end_opp, played, state = random_plies(own[i], opp[i], playable, plies[i], state)
                if played == plies[i]:
                    own[i], opp[i] = end_own, end_opp
                    reached[i] = True
                    break
