"""Perft: the number of move sequences of a given length, the standard check and benchmark of a move generator."""

from __future__ import annotations

from reversi_env.core.bitboard import NO_SQUARE, bit_of, flips, legal_moves
from reversi_env.core.compiling import kernel
from reversi_env.core.intrinsics import popcount, trailing_zeros


@kernel
def _last_ply(own, opp, playable):
    """Number of moves: a pass is one, a finished game has none."""
    moves = legal_moves(own, opp, playable)
    if moves != NO_SQUARE:
        return popcount(moves)
    return 1 if legal_moves(opp, own, playable) != NO_SQUARE else 0


@kernel
def perft(own, opp, playable, depth):
    """Number of move sequences of exactly *depth* plies. A pass is a ply; a game that ended earlier is not counted."""
    if depth <= 1:
        return _last_ply(own, opp, playable) if depth == 1 else 1
    moves = legal_moves(own, opp, playable)
    if moves == NO_SQUARE:
        if legal_moves(opp, own, playable) == NO_SQUARE:
            return 0
        return perft(opp, own, playable, depth - 1)
    leaves = 0
    while moves != NO_SQUARE:
        sq = trailing_zeros(moves)
        moves &= moves - bit_of(0)
        flipped = flips(sq, own, opp)
        next_own, next_opp = opp ^ flipped, own | flipped | bit_of(sq)
        if depth == 2:
            leaves += _last_ply(next_own, next_opp, playable)
        else:
            leaves += perft(next_own, next_opp, playable, depth - 1)
    return leaves
