"""The engine's search with every refinement behind a switch: to count what each is worth, not to play with.

With all switches on, `switched_negamax` visits the same nodes and returns the same values as `midgame.negamax`, which the
tests hold it to; with all of them off it is minimax. The engine itself has no switches, and pays for none.
"""

from __future__ import annotations

import numpy as np

from reversi_env.core.bitboard import NO_SQUARE, ONE, flips, legal_moves
from reversi_env.core.compiling import kernel
from reversi_env.core.intrinsics import popcount, trailing_zeros
from search.core.evaluate import evaluate
from search.core.midgame import (
    EVALUATION_RANK_DEPTH,
    INFINITY,
    LOOK_AHEAD_DEPTH,
    REPLY_RANK,
    TABLE_DEPTH,
    UNIT,
    cut_side,
    cut_window,
    entered,
    finished,
    leaf,
    refuting_child,
    units,
)
from search.core.move_lists import add_move, bring_best
from search.core.table import NO_MOVE, bucket_of, depth_of, lower_of, move_of, probe, second_move_of, store, upper_of

#: Bits of the switches.
PRUNES, BY_REPLIES, BY_VALUE, NULL_WINDOWS, TABLE, LOOKS_AHEAD = (1 << bit for bit in range(6))
#: Window of the first try around the last iteration's value, in units.
ASPIRATION = 3 * UNIT


@kernel
def list_switched(work, net, own, opp, moves, level, depth, first, second, switches):
    """Write the moves with their ranks (lowest first to be searched) into the lists of this level; their number."""
    listed = 0
    while moves != NO_SQUARE:
        sq = trailing_zeros(moves)
        bit = moves & (~moves + ONE)
        moves ^= bit
        turned = flips(sq, own, opp)
        rank = 0
        if sq == first:
            rank = -1_000_000
        elif sq == second:
            rank = -500_000
        elif depth > 1:
            child_own, child_opp = opp ^ turned, own | turned | bit
            if switches & BY_REPLIES:
                rank += REPLY_RANK * popcount(legal_moves(child_own, child_opp, work.playable))
            if switches & BY_VALUE and depth >= EVALUATION_RANK_DEPTH:
                rank += units(evaluate(net, child_own, child_opp), work.squares)
        listed = add_move(work, level, listed, turned, sq, rank)
    return listed


@kernel
def switched_negamax(work, net, counts, own, opp, alpha, beta, depth, switches):
    """Value to *depth* plies as `midgame.negamax` has it, by the refinements that *switches* turn on.

    ``work.nodes`` counts all nodes, ``counts[0]`` those whose moves were searched, ``counts[1]`` the moves searched there.
    """
    if not entered(work):
        return alpha
    if depth <= 0:
        return leaf(work, net, own, opp)
    moves = legal_moves(own, opp, work.playable)
    if moves == NO_SQUARE:
        if legal_moves(opp, own, work.playable) == NO_SQUARE:
            return finished(work, own, opp)
        return -switched_negamax(work, net, counts, opp, own, -beta, -alpha, depth, switches)
    first, second, bucket = NO_MOVE, NO_MOVE, 0
    uses_table = switches & TABLE != 0 and depth >= TABLE_DEPTH
    if uses_table:
        bucket = bucket_of(own, opp, work.bucket_mask)
        data = probe(work.table, bucket, own, opp)
        if data:
            if depth_of(data) >= depth:
                lower, upper = lower_of(data), upper_of(data)
                if lower >= beta or lower == upper:
                    return lower
                if upper <= alpha:
                    return upper
            first, second = move_of(data), second_move_of(data)
    level = work.squares - popcount(own | opp)
    if beta - alpha == 1 and level > depth:
        side = cut_side(work, net, own, opp, alpha, beta, depth, level)
        if side != 0:
            low = cut_window(work, alpha, beta, side, depth, level)
            work.cut_nesting += 1
            value = switched_negamax(work, net, counts, own, opp, low, low + 1, work.cut_depth[depth], switches)
            work.cut_nesting -= 1
            if (value > low) == (side > 0):
                return beta if side > 0 else alpha
    listed = list_switched(work, net, own, opp, moves, level, depth, first, second, switches)
    if uses_table and switches & LOOKS_AHEAD != 0 and depth >= LOOK_AHEAD_DEPTH:
        bound = refuting_child(work, own, opp, level, listed, depth, beta)
        if bound >= beta:
            return bound
    counts[0] += 1
    best, best_sq, bar = np.int64(-INFINITY), NO_MOVE, alpha
    for i in range(listed):
        bring_best(work, level, i, listed)
        counts[1] += 1
        turned, sq = work.turned[level, i], work.square[level, i]
        child_own, child_opp = opp ^ turned, own | turned | ONE << np.uint64(sq)
        if switches & PRUNES == 0:
            low, high = np.int64(-INFINITY), np.int64(INFINITY)
            value = -switched_negamax(work, net, counts, child_own, child_opp, low, high, depth - 1, switches)
        elif i == 0 or switches & NULL_WINDOWS == 0:
            value = -switched_negamax(work, net, counts, child_own, child_opp, -beta, -bar, depth - 1, switches)
        else:
            value = -switched_negamax(work, net, counts, child_own, child_opp, -bar - 1, -bar, depth - 1, switches)
            if bar < value < beta and depth > 1:  # a leaf has one value, whatever the window
                value = -switched_negamax(work, net, counts, child_own, child_opp, -beta, -value, depth - 1, switches)
        if work.stop:
            return alpha
        if value > best:
            best, best_sq = value, sq
            bar = max(bar, best)
            if bar >= beta and switches & PRUNES != 0:
                break
    if uses_table:
        lower = best if best > alpha else -INFINITY
        upper = best if best < beta else INFINITY
        store(work.table, bucket, own, opp, lower, upper, best_sq if best > alpha else NO_MOVE, depth, work.generation)
    return best


@kernel
def search_counted(works, nets, own, opp, depth, switches, deepens, aspires, counts):
    """Value of one position to *depth* plies, at once or deepening from 1, then within a window around the last value or not."""
    work, net = works[0], nets[0]
    lowest, highest = np.int64(-INFINITY), np.int64(INFINITY)  # literals would be types of their own
    value = lowest
    for step in range(1 if deepens else depth, depth + 1):
        low, high = lowest, highest
        if aspires and step > 1:
            low, high = np.int64(value - ASPIRATION), np.int64(value + ASPIRATION)
        value = switched_negamax(work, net, counts, own, opp, low, high, np.int64(step), switches)
        if value <= low or value >= high:  # outside the window: only a bound
            value = switched_negamax(work, net, counts, own, opp, lowest, highest, np.int64(step), switches)
    return value
