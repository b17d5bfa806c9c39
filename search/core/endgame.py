"""The exact solver: the game's value in discs by alpha-beta to the end.

Values are for the side to move, ``sign`` times the final score, so that one solver serves normal and reversed play.
Every search is a null-window search: ``f(…, alpha)`` answers whether the value is above *alpha*; what it returns is a
true bound on that side (fail-soft). `close_in` asks such questions until the bounds meet (MTD(f), Plaat 1996), which
the table makes cheap.

Layers, from the end of the game backwards:

* 1 to 4 empty squares: `search.core.last_squares`;
* 5 and 6: all empty squares, those in quadrants with an odd number of empties first (`by_parity`);
* more: transposition table, stability cut-off, moves sorted so that the opponent gets the fewest replies
  (`null_window`).

A node is a position whose value is asked for, the one with a single empty square included.
"""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from reversi_env.core.bitboard import NO_SQUARE, ONE, flips, legal_moves, neighbours
from reversi_env.core.compiling import kernel
from reversi_env.core.intrinsics import popcount, trailing_zeros
from reversi_env.core.stability import stable_discs
from search.core.busy import put_off_busy, set_busy, set_free
from search.core.by_address import call
from search.core.evaluate import evaluate, evaluator
from search.core.last_squares import WORST, few_empties, four_empties, odd_squares, value_at_end
from search.core.midgame import INFINITY, UNIT, cut_window, units
from search.core.move_lists import add_move, bring_best
from search.core.near_table import EXACT, FEWEST, MOST, near_expect, near_probe, near_store
from search.core.table import (
    NO_MOVE,
    bucket_of,
    depth_of,
    expect,
    lower_of,
    move_of,
    probe,
    second_move_of,
    store,
    upper_of,
)

#: Up to so many empties there is hand-written code; up to so many, squares are tried in order of parity alone.
LAST_EMPTIES, PARITY_EMPTIES = 4, 6
#: From so many empties on, a child whose table entry refutes the position is looked for before any is searched.
LOOK_AHEAD_EMPTIES = 9
#: Up to so many empties parity counts about as much as a reply; further from the end, squares next to the own discs
#: count instead.
PARITY_RANK_EMPTIES = 12
#: From so many empties on, threads leave a position that another one is searching for later.
SHARE_EMPTIES = 11
#: From so many empties on, a thread looks whether another one has answered the question that its own work is for.
ABANDON_EMPTIES = 12
#: From so many empties on, a search by evaluation may have left a hint which move to try first.
HINT_EMPTIES = 12

#: What one disc of an evaluator's value counts in a move's rank, where a reply counts 18.
VALUE_RANK = 10.0
#: From so many empties on, an evaluator's value counts in the ranks, if there is one.
RANK_EMPTIES = 13

#: In place of a guess: the solver makes its own, by a search of so many plies.
NO_GUESS, GUESS_DEPTH = -99, 8
#: From so many empties on, a step of the ladder below the last, the exact one, may cut what a shallow search foretells …
SCOUT_EMPTIES = 13
#: … which is tried where the evaluation itself is so many standard deviations beyond the window.
END_SCREEN = 0.7

#: A record without weights: moves are ranked without an evaluator.
NO_EVALUATOR = np.dtype([("no_evaluator", np.int64)])


@evaluator(NO_EVALUATOR)
def no_value(net, own, opp):
    """Stands in for an evaluator; `rank_empties` keeps it from being asked."""
    return 0.0


#: Value from which on a stability cut-off is tried, by empties (Edax's thresholds).
STABILITY_FROM = np.array(
    [99, 99, 99, 99, 6, 8, 10, 12, 14, 16, *(20 + 2 * (e - 10) for e in range(10, 25)), *([49] * 40)], np.int64
)


@kernel
def by_parity(work, own, opp, alpha, passed):
    """Null window with five or six empty squares: odd quadrants first, no other order."""
    work.nodes += 1
    empties = work.playable & ~(own | opp)
    count = popcount(empties)
    odd = odd_squares(empties)
    touched = empties & neighbours(opp)
    best = WORST
    for group in range(2):
        squares = touched & (odd if group == 0 else ~odd)
        while squares != NO_SQUARE:
            sq = trailing_zeros(squares)
            bit = squares & (~squares + ONE)
            squares ^= bit
            turned = flips(sq, own, opp)
            if turned == NO_SQUARE:
                continue
            if count == 5:
                value = -four_empties(work, opp ^ turned, own | turned | bit, empties ^ bit, -alpha - 1)
            else:
                value = -by_parity(work, opp ^ turned, own | turned | bit, -alpha - 1, np.bool_(False))
            if value > best:
                best = value
                if best > alpha:
                    return best
    if best > WORST:
        return best
    if passed:
        return value_at_end(work, own, opp)
    return -by_parity(work, opp, own, -alpha - 1, np.bool_(True))


@kernel
def best_possible(work, own, opp):
    """Upper bound of the value: discs that are safe for the wrong side stay there."""
    wrong = stable_discs(opp, own, work.playable) if work.sign > 0 else stable_discs(own, opp, work.playable)
    return work.squares - 2 * popcount(wrong)


@kernel
def list_moves(work, net, own, opp, moves, count, first, second):
    """Write the moves with their ranks (lowest first to be searched) into the lists of this level; their number."""
    empties = work.playable & ~(own | opp)
    odd = odd_squares(empties)
    listed = 0
    while moves != NO_SQUARE:
        sq = trailing_zeros(moves)
        bit = moves & (~moves + ONE)
        moves ^= bit
        turned = flips(sq, own, opp)
        child_own, child_opp = opp ^ turned, own | turned | bit
        if count > MOST + 1:
            expect(work.endings, child_own, child_opp, work.endings_mask)
        elif count > FEWEST and work.near:
            near_expect(work.near, child_own, child_opp, count - 1)
        if sq == first:
            rank = -1_000_000
        elif turned == opp:
            rank = -2_000_000 * work.sign
        elif sq == second:
            rank = -500_000
        else:
            replies = legal_moves(child_own, child_opp, work.playable)
            rank = 18 * (popcount(replies) + work.corner_reply * popcount(replies & work.corners))
            if count <= PARITY_RANK_EMPTIES:
                rank -= 10 if bit & odd else 0
            else:
                rank -= 4 if bit & odd else 0
                rank += 6 * popcount(neighbours(child_opp) & empties & ~bit)
            if count >= work.rank_empties:
                rank += np.int64(VALUE_RANK * evaluate(net, child_own, child_opp))
        listed = add_move(work, count, listed, turned, sq, rank)
    return listed


@kernel
def sureness(work, count):
    """In place of a depth in the table: the more empties, and the further up the ladder, the more it took to find a value.

    Near the end nothing is ever cut: what is found there is exact on every step.
    """
    return count + (work.step if count >= SCOUT_EMPTIES else EXACT)


@kernel
def known(work, own, opp, count):
    """Data word of what the tables know about a position, or 0."""
    if count <= MOST:
        return near_probe(work.near, own, opp, count) if count >= FEWEST and work.near else NO_SQUARE
    return probe(work.endings, bucket_of(own, opp, work.endings_mask), own, opp)


@kernel
def keep(work, own, opp, lower, upper, move, count):
    """Write bounds of a position's value, and its best move, into the table that is for it."""
    if count <= MOST:
        if work.near:
            near_store(work.near, own, opp, lower, upper, move, count)
        return
    bucket = bucket_of(own, opp, work.endings_mask)
    store(work.endings, bucket, own, opp, lower, upper, move, sureness(work, count), work.endings_generation)


@kernel
def refuting_child(work, own, opp, count, listed, alpha):
    """A bound above *alpha* that some child's table entry proves, or WORST."""
    for i in range(listed):
        turned = work.turned[count, i]
        child_own, child_opp = opp ^ turned, own | turned | ONE << np.uint64(work.square[count, i])
        data = known(work, child_own, child_opp, count - 1)
        if data and depth_of(data) >= sureness(work, count - 1) and -upper_of(data) > alpha:
            return -upper_of(data)
    return WORST


@kernel
def answer(work, own, opp, alpha):
    """What the table has to say to the question whether the value is above *alpha*: a bound that decides it, or WORST."""
    count = work.squares - popcount(own | opp)
    data = known(work, own, opp, count)
    if data and depth_of(data) >= sureness(work, count):
        if lower_of(data) > alpha:
            return lower_of(data)
        if upper_of(data) <= alpha:
            return upper_of(data)
    return WORST


@kernel
def answered_above(work, count):
    """Empties of the position nearest to the root, among those that led here, whose question another thread has answered; or 0."""
    for level in range(work.root, count, -1):
        if answer(work, work.path_own[level], work.path_opp[level], work.path_alpha[level]) > WORST:
            return level
    return 0


def scout(work, net, own, opp, alpha, beta, depth):
    """`negamax`, if there is an evaluator to search with. For use in kernels."""
    raise TypeError("scout is compiled into kernels")


@overload(scout)
def _scout(work, net, own, opp, alpha, beta, depth):
    if "no_evaluator" in net.fields:
        return lambda work, net, own, opp, alpha, beta, depth: 0
    return lambda work, net, own, opp, alpha, beta, depth: call(work.negamax, work, net, own, opp, alpha, beta, depth)


@kernel
def foretold(work, net, own, opp, alpha, count):
    """A bound that a search of few plies by the evaluator foretells with the sureness asked for, or WORST."""
    if count < SCOUT_EMPTIES or work.end_margin <= 0.0 or work.end_depth[count] == 0 or count == work.root:
        return WORST  # the root needs a move, not only a bound
    low, high = UNIT * alpha, UNIT * (alpha + 1)
    deviation = work.end_deviation[count]
    static = units(evaluate(net, own, opp), work.squares)
    side = 1 if static >= high + END_SCREEN * deviation else (-1 if static <= low - END_SCREEN * deviation else 0)
    if side == 0:
        return WORST
    bound = high if side > 0 else low
    bar = cut_window(bound, side, work.end_margin * deviation, work.end_slope[count], work.end_shift[count])
    value = scout(work, net, own, opp, bar, bar + 1, work.end_depth[count])
    if (value > bar) != (side > 0):
        return WORST
    return alpha + 1 + (alpha + 1 & 1) if side > 0 else alpha - (alpha & 1)  # scores are even


@kernel
def null_window(work, net, own, opp, alpha, count):
    """Is the value above *alpha*? A lower bound of it if so, an upper bound if not."""
    if count <= LAST_EMPTIES:
        return few_empties(work, own, opp, alpha, count)
    if count <= PARITY_EMPTIES:
        return by_parity(work, own, opp, alpha, np.bool_(False))
    work.nodes += 1
    if work.nodes > work.node_limit:
        work.stop = 1
    if work.stop:
        return alpha
    if alpha >= STABILITY_FROM[count]:
        bound = best_possible(work, own, opp)
        if bound <= alpha:
            return bound
    moves = legal_moves(own, opp, work.playable)
    if moves == NO_SQUARE:
        if legal_moves(opp, own, work.playable) == NO_SQUARE:
            return value_at_end(work, own, opp)
        return -null_window(work, net, opp, own, -alpha - 1, count)
    data = known(work, own, opp, count)
    first, second = NO_MOVE, NO_MOVE
    if data:
        if depth_of(data) >= sureness(work, count):
            if lower_of(data) > alpha:
                return lower_of(data)
            if upper_of(data) <= alpha:
                return upper_of(data)
        first, second = move_of(data), second_move_of(data)
    if first == NO_MOVE and work.table and count >= HINT_EMPTIES:
        hint = probe(work.table, bucket_of(own, opp, work.bucket_mask), own, opp)
        first, second = (move_of(hint), second_move_of(hint)) if hint else (NO_MOVE, NO_MOVE)
    bound = foretold(work, net, own, opp, alpha, count)
    if bound > WORST:
        return bound
    listed = list_moves(work, net, own, opp, moves, count, first, second)
    if count >= LOOK_AHEAD_EMPTIES and count != work.root:  # the root needs a move, not only a bound
        bound = refuting_child(work, own, opp, count, listed, alpha)
        if bound > alpha:
            return bound
    shares = work.busy != 0 and count >= SHARE_EMPTIES
    if shares:
        work.path_own[count], work.path_opp[count], work.path_alpha[count] = own, opp, alpha
        if count >= ABANDON_EMPTIES:
            work.abandon = answered_above(work, count)
            if work.abandon:
                return alpha
    best, best_sq = WORST, NO_MOVE
    slot = np.int64(-1)
    for i in range(listed):
        bring_best(work, count, i, listed)
        if shares and i:
            put_off_busy(work, own, opp, count, i, listed, count)
        turned, sq = work.turned[count, i], work.square[count, i]
        child_own, child_opp = opp ^ turned, own | turned | ONE << np.uint64(sq)
        if shares:
            slot = set_busy(work.busy, child_own, child_opp, count)
        value = -null_window(work, net, child_own, child_opp, -alpha - 1, count - 1)
        set_free(work.busy, slot)
        if work.stop or work.abandon:  # the value is void
            if work.stop or work.abandon != count:
                return alpha
            work.abandon = 0  # another thread has answered this very question
            bound = answer(work, own, opp, alpha)
            return bound if bound > WORST else null_window(work, net, own, opp, alpha, count)  # overwritten: once more
        if value > best:
            best, best_sq = value, sq
            if best > alpha:
                break
    lower, upper = (best, work.squares) if best > alpha else (-work.squares, best)
    keep(work, own, opp, lower, upper, best_sq if best > alpha else NO_MOVE, count)
    return best


@kernel
def guessed(work, net, own, opp):
    """About where the value lies, by a search of few plies; 0 without an evaluator."""
    low, high, depth = np.int64(-INFINITY), np.int64(INFINITY), np.int64(GUESS_DEPTH)
    return np.int64(np.floor(scout(work, net, own, opp, low, high, depth) / UNIT))


@kernel
def close_in(work, net, own, opp, guess):
    """Narrow ``work.lower`` and ``work.upper`` around the value by null-window searches from *guess* on until they meet.

    All scores are even (discs and given-away empties fill an even board), so that a window above an odd number splits
    them cleanly. If the solver is stopped, the bounds are as far as it came.
    """
    count = work.squares - popcount(own | opp)
    work.root, work.abandon = count, 0
    if guess == NO_GUESS:
        guess = guessed(work, net, own, opp)
    test = guess + (guess & 1)
    while work.lower < work.upper:
        test = min(max(test, work.lower + 2), work.upper)
        value = null_window(work, net, own, opp, test - 1, count)
        if work.stop:
            return
        if value >= test:
            work.lower = value
            test = value + 2
        else:
            work.upper = value
            test = value


@kernel
def solve_many(works, nets, own, opp, scores):
    """Solve many positions one after the other."""
    work, net = works[0], nets[0]
    for i in range(own.size):
        work.lower, work.upper = -work.squares, work.squares
        close_in(work, net, own[i], opp[i], 0)
        scores[i] = work.lower


@kernel
def table_move(works, own, opp):
    """The table's best move, 64 if it knows none."""
    work = works[0]
    data = known(work, own, opp, work.squares - popcount(own | opp))
    return move_of(data) if data else NO_MOVE


@kernel
def _is_worth(work, net, own, opp, sq, score, count):
    turned = flips(sq, own, opp)
    child_own, child_opp = opp ^ turned, own | turned | ONE << np.uint64(sq)
    return -null_window(work, net, child_own, child_opp, 1 - score, count - 1) >= score and not work.stop


@kernel
def find_worth(works, nets, own, opp, score):
    """A legal move whose value is *score*, the position's own; 64 if the solver is stopped before one is found."""
    work, net = works[0], nets[0]
    work.abandon = 0  # it may have been stopped while it was on its way back
    first = table_move(works, own, opp)
    moves = legal_moves(own, opp, work.playable)
    count = work.squares - popcount(own | opp)
    if first != NO_MOVE and _is_worth(work, net, own, opp, first, score, count):
        return first
    while moves != NO_SQUARE:
        sq = trailing_zeros(moves)
        moves &= moves - ONE
        if sq != first and _is_worth(work, net, own, opp, sq, score, count):
            return sq
    return NO_MOVE


@kernel
def _close_in_or_find(works, nets, own, opp, number, finds):
    """`find_worth` if *finds*, and `close_in` if not: one entry for both, so that the solver within is compiled once."""
    if finds:
        return find_worth(works, nets, own, opp, number)
    close_in(works[0], nets[0], own, opp, number)
    return NO_MOVE


def solve_one(works, nets, own, opp, guess):
    """`close_in` with the first of *works*, whose bounds are the window asked for and, afterwards, the answer."""
    _close_in_or_find(works, nets, own, opp, guess, False)


def move_worth(works, nets, own, opp, score):
    """A legal move whose value is *score*, the position's own; 64 if the solver is stopped before one is found."""
    return _close_in_or_find(works, nets, own, opp, score, True)
