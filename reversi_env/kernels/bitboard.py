"""The rules of Reversi on two 64-bit boards.

`own` holds the discs of the side to move, `opp` those of the other side, `playable` the squares of the board within the
8x8 frame (all 64, or a centred 6x6 or 4x4). All boards are uint64, all counts int64. Normal and Reversed share every
function: they differ only in the sign that the caller puts on a final score.
"""

import numpy as np

from reversi_env.compiler.kernel import inlined_kernel, kernel
from reversi_env.kernels.simd import outflanked, popcount, run_ends, trailing_zeros

#: The empty bitboard.
NO_SQUARES = np.uint64(0)
ONE = np.uint64(1)
#: Value of `sq` that means a pass.
PASS_SQUARE = 64


@kernel
def bit_of(sq):
    """Board with only square *sq* set; empty for a pass."""
    return NO_SQUARES if sq == PASS_SQUARE else ONE << np.uint64(sq)


@kernel
def count(board):
    """Number of squares set: `popcount` for callers outside compiled code, such as a simulated GPU kernel."""
    return popcount(board)


@kernel
def first_square(board):
    """The lowest square of a board that is not empty: `trailing_zeros` for the same callers."""
    return trailing_zeros(board)


@inlined_kernel
def legal_moves(own, opp, playable):
    """Squares where the side to move may play: empty ones that outflank at least one disc."""
    return run_ends(own, opp) & playable & ~(own | opp)


@kernel
def flips(sq, own, opp):
    """Discs of *opp* that are flipped when *own* plays at *sq*; empty if the move is illegal."""
    return outflanked(sq, own, opp)


@kernel
def play(sq, own, opp):
    """Boards (own, opp) after the side to move plays the legal move *sq* or passes, seen by the *next* side to move."""
    if sq == PASS_SQUARE:
        return opp, own
    flipped = outflanked(sq, own, opp)
    return opp ^ flipped, own | flipped | (ONE << np.uint64(sq))


@kernel
def is_over(own, opp, playable):
    """Whether neither side can move."""
    return legal_moves(own, opp, playable) == NO_SQUARES and legal_moves(opp, own, playable) == NO_SQUARES


@kernel
def disc_difference(own, opp):
    """Own discs minus opponent's discs, without the empty squares."""
    return popcount(own) - popcount(opp)


@kernel
def final_score(own, opp, playable):
    """Disc difference of a finished game with the empty squares given to the side that has more discs.

    For Reversed the caller negates it: the side with fewer discs wins by the same margin.
    """
    difference = popcount(own) - popcount(opp)
    empties = popcount(playable) - popcount(own) - popcount(opp)
    if difference > 0:
        return difference + empties
    if difference < 0:
        return difference - empties
    return difference


@kernel
def neighbours(board):
    """Squares next to any square of *board*, in eight directions, *board* itself excluded unless it touches itself."""
    east = (board << ONE) & np.uint64(0xFEFE_FEFE_FEFE_FEFE)
    west = (board >> ONE) & np.uint64(0x7F7F_7F7F_7F7F_7F7F)
    band = board | east | west
    return east | west | (band << np.uint64(8)) | (band >> np.uint64(8))


@kernel
def frontier(own, opp, playable):
    """Own discs that touch an empty square of the board."""
    return own & neighbours(playable & ~(own | opp))


@kernel
def _last_ply(own, opp, playable):
    """Number of moves: a pass is one, a finished game has none."""
    moves = legal_moves(own, opp, playable)
    if moves != NO_SQUARES:
        return popcount(moves)
    return 1 if legal_moves(opp, own, playable) != NO_SQUARES else 0


@kernel
def perft(own, opp, playable, depth):
    """Number of move sequences of exactly *depth* plies. A pass is a ply; a game that ended earlier is not counted."""
    if depth <= 1:
        return _last_ply(own, opp, playable) if depth == 1 else 1
    moves = legal_moves(own, opp, playable)
    if moves == NO_SQUARES:
        if legal_moves(opp, own, playable) == NO_SQUARES:
            return 0
        return perft(opp, own, playable, depth - 1)
    leaves = 0
    while moves != NO_SQUARES:
        sq = trailing_zeros(moves)
        moves &= moves - bit_of(0)
        flipped = flips(sq, own, opp)
        next_own, next_opp = opp ^ flipped, own | flipped | bit_of(sq)
        if depth == 2:
            leaves += _last_ply(next_own, next_opp, playable)
        else:
            leaves += perft(next_own, next_opp, playable, depth - 1)
    return leaves
