"""The endgame solver as one GPU kernel: one thread per position, without recursion.

The threads of a warp share one instruction stream. Each turn of the kernel's loop therefore has the same two expensive steps for
every thread: flip the discs of one move, and find the replies. A thread that is *sorting* counts the replies, a thread that is
*searching* descends to them, and a pass does both without a disc; only cheap bookkeeping differs. A thread whose position is solved
takes the next one from an atomic counter.

The search is principal-variation search (fail-soft) with windows (alpha, beta) in discs for the side to move. From `SORT_EMPTIES`
empties on, moves are sorted once per node by the number of replies; nearer to the end, squares in quadrants with an odd number of
empties come first. Bounds of positions with `TABLE_EMPTIES` empties or more are in a table that all threads share. The stack is in
shared memory, 21 bytes per level: the flipped discs, from which the boards are restored.
"""

import numpy as np

from reversi_env.gpu.driver import cuda
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, count, final_score, first_square, flips, legal_moves
from reversi_env.kernels.symmetry import position_hash
from search.engine.solver import MAX_GPU_EMPTIES
from search.kernels.last_squares import odd_squares

#: Threads of a block; their stacks must fit into 48 KiB of shared memory.
BLOCK = 128
#: Levels of the stack. A move is stored as the number, four bits, of its square among the position's empties.
LEVELS = MAX_GPU_EMPTIES + 1
#: Minimum empties at which moves are sorted by the number of replies.
SORT_EMPTIES = 7
#: Maximum empties at which parity counts in a move's rank.
PARITY_EMPTIES = 9
#: Minimum empties of positions in the shared table.
TABLE_EMPTIES = 8
#: Below every score.
WORST = -127
#: Mark in place of a score: the CPU is to solve the position.
UNSOLVED = -128

#: Flags stored with the square of a level's move: it was searched with a null window, and it followed a pass.
PROBED, PASSED, SQUARE_BITS = 64, 128, 63

_i32, _u8, _i8, _u64 = np.int32, np.uint8, np.int8, np.uint64


@cuda.jit(device=True)
def _inserted(keys, order, listed, key, number):
    """Return two lists of sixteen four-bit numbers, sorted by key, with one more move inserted."""
    at = _u64(0)
    end = _u64(4 * listed)
    while at < end and ((keys >> at) & _u64(15)) <= key:
        at += _u64(4)
    low = (ONE << at) - ONE
    keys = (keys & low) | (key << at) | ((keys & ~low) << _u64(4))
    order = (order & low) | (number << at) | ((order & ~low) << _u64(4))
    return keys, order


@cuda.jit(device=True)
def _sort_key(bit, replies, corners, odd, level):
    """Return a move's rank, 0 to 15: few replies first, those in corners count twice; near the end, odd quadrants first."""
    key = count(replies) + count(replies & corners)
    if level <= PARITY_EMPTIES:
        key += key + (1 if (bit & odd) == NO_SQUARES else 0)
    return _u64(min(key, 15))


@cuda.jit(device=True)
def _last_square(own, opp, replies, playable, squares):
    sq = first_square(playable & ~(own | opp))
    mover, other = (own, opp) if replies != NO_SQUARES else (opp, own)
    flipped = _i32(count(flips(sq, mover, other)))
    ahead = _i32(2) * _i32(count(mover)) - squares + _i32(1)  # for the side that may move there, before its move
    if flipped > 0:
        ahead += _i32(2) * flipped + _i32(1)
    else:
        ahead += _i32(1) if ahead > 0 else _i32(-1)  # neither side can: the winner gets the square
    return ahead if replies != NO_SQUARES else -ahead


@cuda.jit(device=True)
def _slot(own, opp, table):
    return (position_hash(own, opp) >> _u64(8)) & _u64(table.shape[0] - 1)


@cuda.jit(device=True)
def _signature(own, opp):
    """Return a hash that distinguishes the positions of a slot; two agree in both with probability 2**-64."""
    return (own * _u64(0x9E37_79B9_7F4A_7C15)) ^ (opp * _u64(0xC2B2_AE3D_27D4_EB4F))


@cuda.jit(device=True)
def _known_bounds(own, opp, table):
    """Return the bounds of the position's value in the table, or (WORST, -WORST).

    The first word is the signature XOR the second, so that an entry torn by two concurrent writes matches no position.
    """
    slot = _slot(own, opp, table)
    bounds = table[slot, 1]
    if table[slot, 0] ^ bounds != _signature(own, opp):
        return _i32(WORST), _i32(-WORST)
    return _i32(bounds & _u64(255)) - _i32(128), _i32((bounds >> _u64(8)) & _u64(255)) - _i32(128)


@cuda.jit(device=True)
def _store_bounds(own, opp, table, lower, upper):
    bounds = _u64(lower + _i32(128)) | (_u64(upper + _i32(128)) << _u64(8))
    slot = _slot(own, opp, table)
    table[slot, 0] = _signature(own, opp) ^ bounds
    table[slot, 1] = bounds


@cuda.jit
def solve_positions(own_boards, opp_boards, playable, sign, corners, turn_limit, table, scores, ticket):
    """Exact scores of all positions, in discs for the side to move, ``sign`` times the final score.

    *corners*: squares whose availability counts for two replies (none in the reversed game). A position that takes more than
    *turn_limit* turns of the loop stays UNSOLVED: the whole GPU would wait for a few long ones. ``ticket[0]`` must be 0.
    """
    stack_flipped = cuda.shared.array((LEVELS, BLOCK), np.uint64)
    stack_moves = cuda.shared.array((LEVELS, BLOCK), np.uint64)
    stack_square = cuda.shared.array((LEVELS, BLOCK), np.uint8)
    stack_left = cuda.shared.array((LEVELS, BLOCK), np.uint8)
    stack_alpha = cuda.shared.array((LEVELS, BLOCK), np.int8)
    stack_beta = cuda.shared.array((LEVELS, BLOCK), np.int8)
    stack_best = cuda.shared.array((LEVELS, BLOCK), np.int8)
    square_of = cuda.shared.array((MAX_GPU_EMPTIES, BLOCK), np.uint8)
    t = cuda.threadIdx.x
    squares = _i32(count(playable))
    most = squares + _i32(1)
    turns_taken = np.int64(0)
    deadline = np.int64(0)  # of the position, in turns taken

    position = np.int64(-1)  # of this thread; -1: it needs a new one
    root_empties = NO_SQUARES
    own = opp = NO_SQUARES  # the node: boards of the side to move and of the other
    level = root = _i32(0)  # empties of the node, and of the position
    alpha = beta = best = _i32(0)
    moves = NO_SQUARES  # moves left: squares, or where they are sorted a list of four-bit numbers …
    left = _i32(0)  # … of this length
    unsorted = keys = NO_SQUARES  # moves that have no key yet; keys of those in the list
    passing = passed = False  # the side to move must pass; the other side has just passed
    retry = _i32(-1)  # square to be searched again with an open window

    while True:
        if position < 0:
            position = cuda.atomic.add(ticket, 0, 1)
            if position >= own_boards.size:
                break
            own, opp = own_boards[position], opp_boards[position]
            root_empties = playable & ~(own | opp)
            level = root = _i32(count(root_empties))
            rest = root_empties
            for number in range(root):
                square_of[number, t] = _u8(first_square(rest))
                rest &= rest - ONE
            deadline = turns_taken + turn_limit
            alpha, beta = -most, most
            legal = _u64(legal_moves(own, opp, playable))
            best, moves, left, unsorted, keys = _i32(WORST), legal, _i32(0), NO_SQUARES, NO_SQUARES
            passing, passed, retry = legal == NO_SQUARES, False, _i32(-1)
            if level >= SORT_EMPTIES:
                unsorted, moves = legal, NO_SQUARES
        turns_taken += 1
        if turns_taken > deadline:
            scores[position] = _i8(UNSOLVED)
            position = np.int64(-1)
            continue

        # --- choose the move of this turn
        sorting = unsorted != NO_SQUARES
        odd = _u64(odd_squares(playable & ~(own | opp)))
        probing = False
        sq = _i32(0)
        if sorting:
            sq = _i32(first_square(unsorted))
            unsorted &= unsorted - ONE
        elif retry >= 0:
            sq = retry
            retry = _i32(-1)
        elif not passing:
            if level >= SORT_EMPTIES:
                sq = _i32(square_of[_i32(moves & _u64(15)), t])
                moves >>= _u64(4)
                left -= _i32(1)
            else:
                preferred = moves & odd
                sq = _i32(first_square(preferred if preferred != NO_SQUARES else moves))
                moves &= ~(ONE << _u64(sq))
            probing = best > WORST and beta - alpha > 1

        # --- the expensive part, the same for all threads
        bit = NO_SQUARES if passing else ONE << _u64(sq)
        flipped = NO_SQUARES if passing else _u64(flips(sq, own, opp))
        child_own, child_opp = opp ^ flipped, own ^ flipped ^ bit
        replies = _u64(legal_moves(child_own, child_opp, playable))

        # --- use the result
        returning = False  # the node's value is known: `best`
        go_down = False
        child_alpha = child_beta = _i32(0)
        value, has_value = _i32(0), False  # of the move just made, for the side that made it
        if sorting:
            number = _u64(count(root_empties & (bit - ONE)))
            keys, moves = _inserted(keys, moves, left, _sort_key(bit, replies, corners, odd, level), number)
            left += _i32(1)
        elif passing and replies == NO_SQUARES:
            best, returning = _i32(sign * final_score(own, opp, playable)), True
        elif passing:
            own, opp = child_own, child_opp
            alpha, beta = -beta, -alpha
            passing, passed = False, True
            moves, left, keys = replies, _i32(0), NO_SQUARES
            if level >= SORT_EMPTIES:
                unsorted, moves = replies, NO_SQUARES
        elif level == 1:
            value, has_value, probing = _i32(sign) * (_i32(2) * _i32(count(child_opp)) - squares), True, False
        elif level == 2:
            value = -_i32(sign) * _last_square(child_own, child_opp, replies, playable, squares)
            has_value, probing = True, False  # exact with any window
        else:  # go down, unless the table has a bound that decides
            go_down = True
            child_alpha, child_beta = -(alpha + _i32(1) if probing else beta), -alpha
            if level > TABLE_EMPTIES and replies != NO_SQUARES:
                lower, upper = _known_bounds(child_own, child_opp, table)
                if lower >= child_beta or lower == upper:
                    value, has_value = -lower, True
                elif upper <= child_alpha:
                    value, has_value = -upper, True
        if go_down and not has_value:
            stack_flipped[level, t] = flipped
            stack_moves[level, t] = moves
            stack_left[level, t] = _u8(left)
            stack_square[level, t] = _u8(sq | (PROBED if probing else 0) | (PASSED if passed else 0))
            stack_alpha[level, t], stack_beta[level, t], stack_best[level, t] = _i8(alpha), _i8(beta), _i8(best)
            own, opp = child_own, child_opp
            alpha, beta = child_alpha, child_beta
            level -= _i32(1)
            best, left, keys = _i32(WORST), _i32(0), NO_SQUARES
            passing, passed = replies == NO_SQUARES, False
            moves, unsorted = replies, NO_SQUARES
            if level >= SORT_EMPTIES:
                unsorted, moves = replies, NO_SQUARES

        # --- back up values as far as they decide
        while has_value or returning:
            if has_value and probing and alpha < value < beta:
                has_value = False
                alpha, retry = value - _i32(1), sq
            elif has_value:
                has_value = False
                best = max(best, value)
                alpha = max(alpha, value)
                exhausted = left == 0 if level >= SORT_EMPTIES else moves == NO_SQUARES
                returning = alpha >= beta or exhausted
            if returning:
                returning = False
                value = best
                if passed:
                    value = -value
                    own, opp = opp, own
                if level == root:
                    scores[position] = _i8(value)
                    position = np.int64(-1)
                else:
                    level += _i32(1)
                    flagged = _i32(stack_square[level, t])
                    sq = flagged & SQUARE_BITS
                    flipped, bit = stack_flipped[level, t], ONE << _u64(sq)
                    own, opp = opp ^ flipped ^ bit, own ^ flipped
                    moves, left = stack_moves[level, t], _i32(stack_left[level, t])
                    alpha, beta = _i32(stack_alpha[level, t]), _i32(stack_beta[level, t])
                    best, passed = _i32(stack_best[level, t]), (flagged & PASSED) != 0
                    passing, unsorted = False, NO_SQUARES
                    probing = (flagged & PROBED) != 0
                    if level > TABLE_EMPTIES:
                        floor, ceiling = -(alpha + _i32(1) if probing else beta), -alpha  # the window of the search
                        lower = value if value > floor else _i32(WORST)
                        upper = value if value < ceiling else _i32(-WORST)
                        _store_bounds(opp ^ flipped, own ^ flipped ^ bit, table, lower, upper)
                    value = -value
                    has_value = True
