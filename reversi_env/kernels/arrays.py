"""The rules over whole arrays of positions: one loop each.

`own`, `opp` and the outputs are one-dimensional arrays of equal length. The public functions, with checks, are in
`reversi_env.batch`.
"""

from reversi_env.kernels import bitboard, stability, symmetry
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, PASS_SQUARE, bit_of
from reversi_env.kernels.parallel import claim_rows, claimed_rows, loop
from reversi_env.kernels.simd import popcount, trailing_zeros


@loop(grain=4096)
def legal_moves(share, own, opp, playable, out):
    while claim_rows(share):
        for i in claimed_rows(share):
            out[i] = bitboard.legal_moves(own[i], opp[i], playable)


@loop(grain=4096)
def flips(share, squares, own, opp, out):
    """Write the flipped discs; an occupied square and a pass flip none."""
    while claim_rows(share):
        for i in claimed_rows(share):
            bit = bit_of(squares[i])
            playable = bit != NO_SQUARES and (bit & (own[i] | opp[i])) == NO_SQUARES
            out[i] = bitboard.flips(squares[i], own[i], opp[i]) if playable else NO_SQUARES


@loop(grain=4096)
def play(share, squares, own, opp, playable, next_own, next_opp, legal):
    """Play or pass. ``legal[i]`` is whether the rules allow it; an illegal move leaves the boards unchanged."""
    while claim_rows(share):
        for i in claimed_rows(share):
            moves = bitboard.legal_moves(own[i], opp[i], playable)
            if squares[i] == PASS_SQUARE:
                legal[i] = moves == NO_SQUARES and bitboard.legal_moves(opp[i], own[i], playable) != NO_SQUARES
            else:
                legal[i] = 0 <= squares[i] < PASS_SQUARE and (moves & bit_of(squares[i])) != NO_SQUARES
            if legal[i]:
                next_own[i], next_opp[i] = bitboard.play(squares[i], own[i], opp[i])
            else:
                next_own[i], next_opp[i] = own[i], opp[i]


@loop(grain=4096)
def is_over(share, own, opp, playable, out):
    while claim_rows(share):
        for i in claimed_rows(share):
            out[i] = bitboard.is_over(own[i], opp[i], playable)


@loop(grain=4096)
def final_score(share, own, opp, playable, out):
    while claim_rows(share):
        for i in claimed_rows(share):
            out[i] = bitboard.final_score(own[i], opp[i], playable)


@loop(grain=4096)
def frontier(share, own, opp, playable, out):
    while claim_rows(share):
        for i in claimed_rows(share):
            out[i] = bitboard.frontier(own[i], opp[i], playable)


@loop(grain=4096)
def stable_discs(share, own, opp, playable, out):
    while claim_rows(share):
        for i in claimed_rows(share):
            out[i] = stability.stable_discs(own[i], opp[i], playable)


@loop(grain=4096)
def canonical(share, own, opp, out_own, out_opp, out_symmetry):
    while claim_rows(share):
        for i in claimed_rows(share):
            out_own[i], out_opp[i], out_symmetry[i] = symmetry.canonical(own[i], opp[i])


@loop(grain=4096)
def position_hash(share, own, opp, out):
    while claim_rows(share):
        for i in claimed_rows(share):
            out[i] = symmetry.position_hash(own[i], opp[i])


@loop(grain=4096)
def count_moves(share, own, opp, playable, out):
    """Number of children: squares to play on, one for a pass, none for a finished game."""
    while claim_rows(share):
        for i in claimed_rows(share):
            moves = bitboard.legal_moves(own[i], opp[i], playable)
            if moves != NO_SQUARES:
                out[i] = popcount(moves)
            else:
                out[i] = 1 if bitboard.legal_moves(opp[i], own[i], playable) != NO_SQUARES else 0


@loop(grain=4096)
def expand(share, own, opp, playable, first_child, squares, child_own, child_opp):
    """Write all children of position *i* from index ``first_child[i]`` on, squares in rising order."""
    while claim_rows(share):
        for i in claimed_rows(share):
            child = first_child[i]
            if child == first_child[i + ONE]:
                continue
            moves = bitboard.legal_moves(own[i], opp[i], playable)
            if moves == NO_SQUARES:
                squares[child], child_own[child], child_opp[child] = PASS_SQUARE, opp[i], own[i]
            while moves != NO_SQUARES:
                squares[child] = trailing_zeros(moves)
                child_own[child], child_opp[child] = bitboard.play(squares[child], own[i], opp[i])
                moves &= moves - ONE
                child += 1
