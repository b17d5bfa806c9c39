"""The rules over whole arrays of positions: one loop each, compiled for one thread and for all.

`own`, `opp` and the outputs are one-dimensional arrays of equal length. The public face, with checks, is
`reversi_env.batch`.
"""

from __future__ import annotations

from numba import prange

from reversi_env.core import bitboard, stability, symmetry
from reversi_env.core.bitboard import NO_SQUARE, ONE, PASS_SQUARE, bit_of
from reversi_env.core.compiling import both_builds
from reversi_env.core.intrinsics import popcount, trailing_zeros

_legal_moves = bitboard.legal_moves
_flips = bitboard.flips
_play = bitboard.play
_is_over = bitboard.is_over
_final_score = bitboard.final_score
_frontier = bitboard.frontier
_stable_discs = stability.stable_discs
_canonical = symmetry.canonical
_position_hash = symmetry.position_hash


@both_builds
def legal_moves(own, opp, playable, out):
    for i in prange(own.size):
        out[i] = _legal_moves(own[i], opp[i], playable)


@both_builds
def flips(squares, own, opp, out):
    """Nothing turns on an occupied square or by a pass."""
    for i in prange(own.size):
        bit = bit_of(squares[i])
        playable = bit != NO_SQUARE and (bit & (own[i] | opp[i])) == NO_SQUARE
        out[i] = _flips(squares[i], own[i], opp[i]) if playable else NO_SQUARE


@both_builds
def play(squares, own, opp, playable, next_own, next_opp, legal):
    """Play or pass; ``legal[i]`` tells whether the rules allow it, and where they do not the boards are left as they are."""
    for i in prange(own.size):
        moves = _legal_moves(own[i], opp[i], playable)
        if squares[i] == PASS_SQUARE:
            legal[i] = moves == NO_SQUARE and _legal_moves(opp[i], own[i], playable) != NO_SQUARE
        else:
            legal[i] = 0 <= squares[i] < PASS_SQUARE and (moves & bit_of(squares[i])) != NO_SQUARE
        if legal[i]:
            next_own[i], next_opp[i] = _play(squares[i], own[i], opp[i])
        else:
            next_own[i], next_opp[i] = own[i], opp[i]


@both_builds
def is_over(own, opp, playable, out):
    for i in prange(own.size):
        out[i] = _is_over(own[i], opp[i], playable)


@both_builds
def final_score(own, opp, playable, out):
    for i in prange(own.size):
        out[i] = _final_score(own[i], opp[i], playable)


@both_builds
def frontier(own, opp, playable, out):
    for i in prange(own.size):
        out[i] = _frontier(own[i], opp[i], playable)


@both_builds
def stable_discs(own, opp, playable, out):
    for i in prange(own.size):
        out[i] = _stable_discs(own[i], opp[i], playable)


@both_builds
def canonical(own, opp, out_own, out_opp, out_symmetry):
    for i in prange(own.size):
        out_own[i], out_opp[i], out_symmetry[i] = _canonical(own[i], opp[i])


@both_builds
def position_hash(own, opp, out):
    for i in prange(own.size):
        out[i] = _position_hash(own[i], opp[i])


@both_builds
def count_moves(own, opp, playable, out):
    """Number of children: squares to play on, one for a pass, none for a finished game."""
    for i in prange(own.size):
        moves = _legal_moves(own[i], opp[i], playable)
        if moves != NO_SQUARE:
            out[i] = popcount(moves)
        else:
            out[i] = 1 if _legal_moves(opp[i], own[i], playable) != NO_SQUARE else 0


@both_builds
def expand(own, opp, playable, first_child, squares, child_own, child_opp):
    """Write all children of position *i* from index ``first_child[i]`` on, squares in rising order."""
    for i in prange(own.size):
        child = first_child[i]
        if child == first_child[i + 1]:
            continue
        moves = _legal_moves(own[i], opp[i], playable)
        if moves == NO_SQUARE:
            squares[child], child_own[child], child_opp[child] = PASS_SQUARE, opp[i], own[i]
        while moves != NO_SQUARE:
            squares[child] = trailing_zeros(moves)
            child_own[child], child_opp[child] = _play(squares[child], own[i], opp[i])
            moves &= moves - ONE
            child += 1
