"""The exact solver with one to four empty squares: written out by hand, without move generation.

With one empty square the flips are only counted. With more, a square alone in its quadrant is tried first, and a square without an
opponent's disc next to it is skipped.
"""

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, final_score, flips
from reversi_env.kernels.simd import popcount, trailing_zeros

#: Below every score: the initial best value of a node, and "no bound".
WORST = -127

QUADRANT_OF = np.array([(sq // 32) * 2 + sq % 8 // 4 for sq in range(64)], np.int64)
NEIGHBOURS = np.array(
    [
        sum(1 << (8 * r + c) for r in range(8) for c in range(8) if max(abs(r - sq // 8), abs(c - sq % 8)) == 1)
        for sq in range(64)
    ],
    np.uint64,
)
#: Multipliers that move the squares of the first column, or of a diagonal, into the highest byte.
FIRST_COLUMN, COLUMN_TO_BYTE = np.uint64(0x0101_0101_0101_0101), np.uint64(0x0102_0408_1020_4080)
#: The diagonals through a square.
FALLING, RISING = (
    np.array(
        [
            sum(1 << (8 * r + c) for r in range(8) for c in range(8) if r - sq // 8 == way * (c - sq % 8))
            for sq in range(64)
        ],
        np.uint64,
    )
    for way in (1, -1)
)


def _flipped_in_line(place: int, own: int) -> int:
    # discs between *place* of a line of eight and the nearest own disc, a bit of *own*, on each side
    sides = range(place + 1, 8), range(place - 1, -1, -1)
    return sum(next((n for n, other in enumerate(side) if own >> other & 1), 0) for side in sides)


FLIPPED_IN_LINE = np.array([[_flipped_in_line(place, own) for own in range(256)] for place in range(8)], np.uint8)


@kernel
def _flipped(sq, own, opp):
    return flips(sq, own, opp) if NEIGHBOURS[sq] & opp else NO_SQUARES


@kernel
def count_flips(sq, own):
    """Return the number of discs that *own* flips at *sq*, the only empty square, by a table of lines of eight squares."""
    column, row = sq & 7, sq >> 3
    count = np.int64(FLIPPED_IN_LINE[column, (own >> np.uint64(sq & 56)) & np.uint64(255)])
    count += FLIPPED_IN_LINE[row, (((own >> np.uint64(column)) & FIRST_COLUMN) * COLUMN_TO_BYTE) >> np.uint64(56)]
    count += FLIPPED_IN_LINE[column, ((own & FALLING[sq]) * FIRST_COLUMN) >> np.uint64(56)]
    return count + FLIPPED_IN_LINE[column, ((own & RISING[sq]) * FIRST_COLUMN) >> np.uint64(56)]


@kernel
def last_one(thread, own, opp, sq):
    """Return the exact value with one empty square: a weaker bound saves a count but costs more nodes."""
    thread.nodes += 1
    difference = 2 * popcount(own) - thread.square_count + 1
    flipped = count_flips(sq, own)
    if flipped:
        return thread.sign * (difference + 2 * flipped + 1)
    flipped = count_flips(sq, opp)
    if flipped:
        return thread.sign * (difference - 2 * flipped - 1)
    return thread.sign * (difference + 1 if difference > 0 else difference - 1)


@kernel
def terminal_score(thread, own, opp):
    return thread.sign * final_score(own, opp, thread.playable)


@kernel
def last_two(thread, own, opp, a, b, alpha):
    """Null window with two empty squares."""
    thread.nodes += 1
    best = WORST
    flipped = _flipped(a, own, opp)
    if flipped:
        best = -last_one(thread, opp ^ flipped, own | flipped | ONE << np.uint64(a), b)
        if best > alpha:
            return best
    flipped = _flipped(b, own, opp)
    if flipped:
        return max(best, -last_one(thread, opp ^ flipped, own | flipped | ONE << np.uint64(b), a))
    if best > WORST:
        return best
    best = -WORST
    flipped = _flipped(a, opp, own)
    if flipped:
        best = last_one(thread, own ^ flipped, opp | flipped | ONE << np.uint64(a), b)
        if best <= alpha:
            return best
    flipped = _flipped(b, opp, own)
    if flipped:
        return min(best, last_one(thread, own ^ flipped, opp | flipped | ONE << np.uint64(b), a))
    return best if best < -WORST else terminal_score(thread, own, opp)


@kernel
def last_three(thread, own, opp, a, b, c, alpha, passed):
    """Null window with three empty squares, in this order."""
    thread.nodes += 1
    best = WORST
    flipped = _flipped(a, own, opp)
    if flipped:
        best = -last_two(thread, opp ^ flipped, own | flipped | ONE << np.uint64(a), b, c, -alpha - 1)
        if best > alpha:
            return best
    flipped = _flipped(b, own, opp)
    if flipped:
        best = max(best, -last_two(thread, opp ^ flipped, own | flipped | ONE << np.uint64(b), a, c, -alpha - 1))
        if best > alpha:
            return best
    flipped = _flipped(c, own, opp)
    if flipped:
        return max(best, -last_two(thread, opp ^ flipped, own | flipped | ONE << np.uint64(c), a, b, -alpha - 1))
    if best > WORST:
        return best
    if passed:
        return terminal_score(thread, own, opp)
    return -last_three(thread, opp, own, a, b, c, -alpha - 1, np.bool_(True))


@kernel
def three_empties(thread, own, opp, a, b, c, alpha):
    """Order three squares, one that is alone in its quadrant first, and search."""
    if QUADRANT_OF[a] == QUADRANT_OF[b]:
        if QUADRANT_OF[b] != QUADRANT_OF[c]:
            return last_three(thread, own, opp, c, a, b, alpha, np.bool_(False))
    elif QUADRANT_OF[a] == QUADRANT_OF[c]:
        return last_three(thread, own, opp, b, a, c, alpha, np.bool_(False))
    return last_three(thread, own, opp, a, b, c, alpha, np.bool_(False))


@kernel
def last_four(thread, own, opp, a, b, c, d, alpha, passed):
    """Null window with four empty squares, in this order."""
    thread.nodes += 1
    best = WORST
    flipped = _flipped(a, own, opp)
    if flipped:
        best = -three_empties(thread, opp ^ flipped, own | flipped | ONE << np.uint64(a), b, c, d, -alpha - 1)
        if best > alpha:
            return best
    flipped = _flipped(b, own, opp)
    if flipped:
        best = max(
            best, -three_empties(thread, opp ^ flipped, own | flipped | ONE << np.uint64(b), a, c, d, -alpha - 1)
        )
        if best > alpha:
            return best
    flipped = _flipped(c, own, opp)
    if flipped:
        best = max(
            best, -three_empties(thread, opp ^ flipped, own | flipped | ONE << np.uint64(c), a, b, d, -alpha - 1)
        )
        if best > alpha:
            return best
    flipped = _flipped(d, own, opp)
    if flipped:
        return max(
            best, -three_empties(thread, opp ^ flipped, own | flipped | ONE << np.uint64(d), a, b, c, -alpha - 1)
        )
    if best > WORST:
        return best
    if passed:
        return terminal_score(thread, own, opp)
    return -last_four(thread, opp, own, a, b, c, d, -alpha - 1, np.bool_(True))


@kernel
def odd_squares(empties):
    """Return the squares of the quadrants with an odd number of empty squares."""
    parity = empties ^ (empties >> np.uint64(1))
    parity ^= parity >> np.uint64(2)
    parity ^= parity >> np.uint64(8)
    parity ^= parity >> np.uint64(16)
    return (parity & np.uint64(0x0000_0011_0000_0011)) * np.uint64(0x0F0F_0F0F)


@kernel
def four_empties(thread, own, opp, empties, alpha):
    """Order four empty squares by parity, and search."""
    odd = empties & odd_squares(empties)
    first, rest = odd, empties & ~odd
    if first == NO_SQUARES:
        first, rest = rest, first
    a = trailing_zeros(first)
    first &= first - ONE
    if first == NO_SQUARES:
        first, rest = rest, first
    b = trailing_zeros(first)
    first &= first - ONE
    if first == NO_SQUARES:
        first, rest = rest, first
    c = trailing_zeros(first)
    first &= first - ONE
    d = trailing_zeros(first if first != NO_SQUARES else rest)
    return last_four(thread, own, opp, a, b, c, d, alpha, np.bool_(False))


@kernel
def few_empties(thread, own, opp, alpha, count):
    """Null window with at most four empty squares."""
    empties = thread.playable & ~(own | opp)
    if count == 4:
        return four_empties(thread, own, opp, empties, alpha)
    if count == 0:
        thread.nodes += 1
        return terminal_score(thread, own, opp)
    a = trailing_zeros(empties)
    if count == 1:
        return last_one(thread, own, opp, a)
    empties &= empties - ONE
    b = trailing_zeros(empties)
    if count == 2:
        return last_two(thread, own, opp, a, b, alpha)
    return three_empties(thread, own, opp, a, b, trailing_zeros(empties & (empties - ONE)), alpha)
