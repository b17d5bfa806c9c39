"""The exact solver: the game's value in discs by alpha-beta to the end.

Values are for the side to move, ``sign`` times the final score, so that one solver serves normal and reversed play.
Every search is a null-window search: ``f(…, alpha)`` decides whether the value is above *alpha* and returns a bound on that side
(fail-soft). `mtdf` repeats it until the bounds meet (MTD(f), Plaat 1996).

Layers, from the end of the game backwards:

* 1 to 4 empty squares: `search.kernels.last_squares`;
* 5 and 6: all empty squares, those in quadrants with an odd number of empties first (`solve_by_parity`);
* more: transposition table, stability cut-off, moves sorted so that the opponent gets the fewest replies
  (`null_window`).

Every searched position counts as a node, also with a single empty square.
"""

import numpy as np
from numba.extending import overload

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, flips, legal_moves, neighbours
from reversi_env.kernels.simd import popcount, trailing_zeros
from reversi_env.kernels.stability import stable_discs
from search.kernels.abdada import defer_busy, mark_busy, unmark_busy
from search.kernels.addresses import call
from search.kernels.evaluate import INFINITY, UNIT, evaluate, evaluator, units
from search.kernels.last_squares import WORST, few_empties, four_empties, odd_squares, terminal_score
from search.kernels.ordering import add_move, pick_best
from search.kernels.probcut import probcut_window
from search.kernels.table import (
    EXACT_LEVEL,
    MAX_SHALLOW_EMPTIES,
    MIN_SHALLOW_EMPTIES,
    NO_ENTRY,
    NO_MOVE,
    bucket_of,
    depth_of,
    lower_of,
    move_of,
    prefetch,
    probe,
    second_move_of,
    shallow_prefetch,
    shallow_probe,
    shallow_store,
    store,
    upper_of,
)

#: Maximum empties of the hand-written code, and of move ordering by parity alone.
LAST_EMPTIES, PARITY_EMPTIES = 4, 6
#: Minimum empties of enhanced transposition cut-offs (ETC): all children are probed in the table before any is searched.
ETC_EMPTIES = 9
#: Maximum empties at which parity counts about half as much as a reply. With more empties it counts less, and the opponent's
#: potential mobility counts too.
PARITY_RANK_EMPTIES = 12
#: Minimum empties at which threads defer positions that another thread is searching (ABDADA).
SHARE_EMPTIES = 11
#: Minimum empties at which a thread checks whether another thread has resolved an ancestor.
ABANDON_EMPTIES = 12
#: Minimum empties at which the midgame's table is probed for a first move, and minimum depth of an entry that gives one. The moves
#: of ProbCut's shorter searches are worse than those that the ranks put first (docs/lab/search.md).
HINT_EMPTIES, MIN_HINT_DEPTH = 12, 6

#: Weight of one disc of static evaluation in a move's rank, where a reply counts 18.
VALUE_RANK = 10.0
#: Minimum empties at which the static evaluation counts in the ranks, if there is an evaluator.
RANK_EMPTIES = 12

#: `mtdf` without a guess (NO_GUESS) takes the value of a search to GUESS_DEPTH plies as the guess.
NO_GUESS, GUESS_DEPTH = -99, 8
#: Minimum empties at which every selectivity level except the exact one may prune by ProbCut.
PROBCUT_EMPTIES = 13
#: ProbCut is tried if the static evaluation is this many standard deviations outside the window.
ENDGAME_PROBCUT_SCREEN = 0.7

#: A record without weights: moves are ranked without an evaluator.
NO_EVALUATOR = np.dtype([("no_evaluator", np.int64)])


@evaluator(NO_EVALUATOR)
def no_value(net, own, opp):
    """Return 0: the evaluator of a solver without one. Such a solver never evaluates: its ``rank_empties`` is above all empties."""
    return 0.0


#: Minimum alpha at which a stability cut-off is tried, by empties (Edax's thresholds).
STABILITY_THRESHOLDS = np.array(
    [99, 99, 99, 99, 6, 8, 10, 12, 14, 16, *(20 + 2 * (e - 10) for e in range(10, 25)), *([49] * 40)], np.int64
)


@kernel
def solve_by_parity(thread, own, opp, alpha, passed):
    """Null window with five or six empty squares, those of odd quadrants first."""
    thread.nodes += 1
    empties = thread.playable & ~(own | opp)
    count = popcount(empties)
    odd = odd_squares(empties)
    touched = empties & neighbours(opp)
    best = WORST
    for group in range(2):
        squares = touched & (odd if group == 0 else ~odd)
        while squares != NO_SQUARES:
            sq = trailing_zeros(squares)
            bit = squares & (~squares + ONE)
            squares ^= bit
            flipped = flips(sq, own, opp)
            if flipped == NO_SQUARES:
                continue
            if count == 5:
                value = -four_empties(thread, opp ^ flipped, own | flipped | bit, empties ^ bit, -alpha - 1)
            else:
                value = -solve_by_parity(thread, opp ^ flipped, own | flipped | bit, -alpha - 1, np.bool_(False))
            if value > best:
                best = value
                if best > alpha:
                    return best
    if best > WORST:
        return best
    if passed:
        return terminal_score(thread, own, opp)
    return -solve_by_parity(thread, opp, own, -alpha - 1, np.bool_(True))


@kernel
def stability_upper_bound(thread, own, opp):
    """Return an upper bound of the value by the stable discs that count against the side to move."""
    stable = stable_discs(opp, own, thread.playable) if thread.sign > 0 else stable_discs(own, opp, thread.playable)
    return thread.square_count - 2 * popcount(stable)


@kernel
def list_moves(thread, net, own, opp, moves, count, first, second):
    """Write the moves with their ranks (lowest first) into the lists of this level and return their number."""
    empties = thread.playable & ~(own | opp)
    odd = odd_squares(empties)
    listed = 0
    while moves != NO_SQUARES:
        sq = trailing_zeros(moves)
        bit = moves & (~moves + ONE)
        moves ^= bit
        flipped = flips(sq, own, opp)
        child_own, child_opp = opp ^ flipped, own | flipped | bit
        if count > MAX_SHALLOW_EMPTIES + 1:
            prefetch(thread.endgame_table, child_own, child_opp, thread.endgame_mask)
        elif count > MIN_SHALLOW_EMPTIES and thread.shallow_table:
            shallow_prefetch(thread.shallow_table, child_own, child_opp, count - 1)
        if sq == first:
            rank = -1_000_000
        elif flipped == opp:
            rank = -2_000_000 * thread.sign  # a wipe-out wins at once, and loses at once in the reversed game
        elif sq == second:
            rank = -500_000
        else:
            replies = legal_moves(child_own, child_opp, thread.playable)
            rank = 18 * (popcount(replies) + thread.corner_reply * popcount(replies & thread.corners))
            if count <= PARITY_RANK_EMPTIES:
                rank -= 10 if bit & odd else 0
            else:
                rank -= 4 if bit & odd else 0
                rank += 6 * popcount(neighbours(child_opp) & empties & ~bit)
            if count >= thread.rank_empties:
                rank += np.int64(VALUE_RANK * evaluate(net, child_own, child_opp))
        listed = add_move(thread, count, listed, flipped, sq, rank)
    return listed


@kernel
def entry_depth(thread, count):
    """Return the depth stored with a table entry: the empties plus the selectivity level.

    A more reliable result thus replaces a less reliable one. Near the end nothing is pruned: results are exact at every level.
    """
    return count + (thread.selectivity if count >= PROBCUT_EMPTIES else EXACT_LEVEL)


@kernel
def probe_tables(thread, own, opp, count):
    """Return the data word of the position's table entry, or 0."""
    if count <= MAX_SHALLOW_EMPTIES:
        return (
            shallow_probe(thread.shallow_table, own, opp, count)
            if count >= MIN_SHALLOW_EMPTIES and thread.shallow_table
            else NO_ENTRY
        )
    return probe(thread.endgame_table, bucket_of(own, opp, thread.endgame_mask), own, opp)


@kernel
def store_bounds(thread, own, opp, lower, upper, move, count):
    """Store bounds and best move of a position in the shallow table or the endgame table."""
    if count <= MAX_SHALLOW_EMPTIES:
        if thread.shallow_table:
            shallow_store(thread.shallow_table, own, opp, lower, upper, move, count)
        return
    bucket, depth = bucket_of(own, opp, thread.endgame_mask), entry_depth(thread, count)
    store(thread.endgame_table, bucket, own, opp, lower, upper, move, depth, thread.endgame_generation)


@kernel
def etc_bound(thread, own, opp, count, listed, alpha):
    """Return a bound above *alpha* that the table entry of a child proves (ETC), or WORST."""
    for i in range(listed):
        flipped = thread.flipped[count, i]
        child_own, child_opp = opp ^ flipped, own | flipped | ONE << np.uint64(thread.square[count, i])
        data = probe_tables(thread, child_own, child_opp, count - 1)
        if data and depth_of(data) >= entry_depth(thread, count - 1) and -upper_of(data) > alpha:
            return -upper_of(data)
    return WORST


@kernel
def cutoff_bound(thread, data, alpha, count):
    """Return the bound of a table entry that decides whether the value is above *alpha*, or WORST."""
    if depth_of(data) >= entry_depth(thread, count):
        if lower_of(data) > alpha:
            return lower_of(data)
        if upper_of(data) <= alpha:
            return upper_of(data)
    return WORST


@kernel
def table_cutoff_bound(thread, own, opp, alpha):
    """Return a table bound that decides whether the value is above *alpha*, or WORST."""
    count = thread.square_count - popcount(own | opp)
    data = probe_tables(thread, own, opp, count)
    return cutoff_bound(thread, data, alpha, count) if data else WORST


@kernel
def resolved_ancestor(thread, count):
    """Return the level (empties) of the ancestor nearest to the root whose null window a table entry now decides, or 0."""
    for level in range(thread.root, count, -1):
        own, opp = thread.path_own[level], thread.path_opp[level]
        if table_cutoff_bound(thread, own, opp, thread.path_alpha[level]) > WORST:
            return level
    return 0


def midgame_search(thread, net, own, opp, alpha, beta, depth):
    """Call the midgame's `negamax` if there is an evaluator, else return 0. For use in kernels."""
    raise TypeError("midgame_search is compiled into kernels")


@overload(midgame_search)
def _midgame_search(thread, net, own, opp, alpha, beta, depth):
    if "no_evaluator" in net.fields:
        return lambda thread, net, own, opp, alpha, beta, depth: 0
    return lambda thread, net, own, opp, alpha, beta, depth: call(
        thread.negamax, thread, net, own, opp, alpha, beta, depth
    )


@kernel
def probcut_bound(thread, net, own, opp, alpha, count):
    """Return a bound predicted by a shallow search with the required confidence (ProbCut), or WORST if there is none."""
    if count < PROBCUT_EMPTIES or thread.end_margin <= 0.0 or thread.end_depth[count] == 0 or count == thread.root:
        return WORST  # the root needs a move, not only a bound
    low, high = UNIT * alpha, UNIT * (alpha + 1)
    deviation = thread.end_deviation[count]
    static = units(evaluate(net, own, opp), thread.square_count)
    if static >= high + ENDGAME_PROBCUT_SCREEN * deviation:
        side = 1
    elif static <= low - ENDGAME_PROBCUT_SCREEN * deviation:
        side = -1
    else:
        return WORST
    bound = high if side > 0 else low
    threshold = probcut_window(
        bound, side, thread.end_margin * deviation, thread.end_slope[count], thread.end_shift[count]
    )
    value = midgame_search(thread, net, own, opp, threshold, threshold + 1, thread.end_depth[count])
    if (value > threshold) != (side > 0):
        return WORST
    return alpha + 1 + (alpha + 1 & 1) if side > 0 else alpha - (alpha & 1)  # the next even score


@kernel
def null_window(thread, net, own, opp, alpha, count):
    """Return a lower bound above *alpha* if the value is above it, otherwise an upper bound of at most *alpha*."""
    if count <= LAST_EMPTIES:
        return few_empties(thread, own, opp, alpha, count)
    if count <= PARITY_EMPTIES:
        return solve_by_parity(thread, own, opp, alpha, np.bool_(False))
    thread.nodes += 1
    if thread.nodes > thread.node_limit:
        thread.stop = 1
    if thread.stop:
        return alpha
    if alpha >= STABILITY_THRESHOLDS[count]:
        bound = stability_upper_bound(thread, own, opp)
        if bound <= alpha:
            return bound
    moves = legal_moves(own, opp, thread.playable)
    if moves == NO_SQUARES:
        if legal_moves(opp, own, thread.playable) == NO_SQUARES:
            return terminal_score(thread, own, opp)
        return -null_window(thread, net, opp, own, -alpha - 1, count)
    data = probe_tables(thread, own, opp, count)
    first, second = NO_MOVE, NO_MOVE
    if data:
        bound = cutoff_bound(thread, data, alpha, count)
        if bound > WORST:
            return bound
        first, second = move_of(data), second_move_of(data)
    if first == NO_MOVE and thread.table and count >= HINT_EMPTIES:
        hint = probe(thread.table, bucket_of(own, opp, thread.bucket_mask), own, opp)
        if hint and depth_of(hint) >= MIN_HINT_DEPTH:
            first, second = move_of(hint), second_move_of(hint)
    bound = probcut_bound(thread, net, own, opp, alpha, count)
    if bound > WORST:
        return bound
    listed = list_moves(thread, net, own, opp, moves, count, first, second)
    if count >= ETC_EMPTIES and count != thread.root:  # the root needs a move, not only a bound
        bound = etc_bound(thread, own, opp, count, listed, alpha)
        if bound > alpha:
            return bound
    shares = thread.busy != 0 and count >= SHARE_EMPTIES
    if shares:
        thread.path_own[count], thread.path_opp[count], thread.path_alpha[count] = own, opp, alpha
        if count >= ABANDON_EMPTIES:
            thread.abandon = resolved_ancestor(thread, count)
            if thread.abandon:
                return alpha
    best, best_sq = WORST, NO_MOVE
    slot = np.int64(-1)
    for i in range(listed):
        pick_best(thread, count, i, listed)
        if shares and i:
            defer_busy(thread, own, opp, count, i, listed, count)
        flipped, sq = thread.flipped[count, i], thread.square[count, i]
        child_own, child_opp = opp ^ flipped, own | flipped | ONE << np.uint64(sq)
        if shares:
            slot = mark_busy(thread.busy, child_own, child_opp, count)
        value = -null_window(thread, net, child_own, child_opp, -alpha - 1, count - 1)
        unmark_busy(thread.busy, slot)
        if thread.stop or thread.abandon:  # the value is invalid
            if thread.stop or thread.abandon != count:
                return alpha
            thread.abandon = 0  # this node itself is decided
            bound = table_cutoff_bound(thread, own, opp, alpha)
            # without a bound, the entry has been overwritten: search again
            return bound if bound > WORST else null_window(thread, net, own, opp, alpha, count)
        if value > best:
            best, best_sq = value, sq
            if best > alpha:
                break
    lower, upper = (best, thread.square_count) if best > alpha else (-thread.square_count, best)
    store_bounds(thread, own, opp, lower, upper, best_sq if best > alpha else NO_MOVE, count)
    return best


@kernel
def guess_value(thread, net, own, opp):
    """Return an estimate of the value from a shallow search; 0 without an evaluator."""
    low, high, depth = np.int64(-INFINITY), np.int64(INFINITY), np.int64(GUESS_DEPTH)
    return np.int64(np.floor(midgame_search(thread, net, own, opp, low, high, depth) / UNIT))


@kernel
def mtdf(thread, net, own, opp, guess):
    """Narrow ``thread.lower`` and ``thread.upper`` around the value by null-window searches from *guess* on until they meet.

    All scores are even, so the windows begin at odd numbers. After a stop the bounds may not meet.
    """
    count = thread.square_count - popcount(own | opp)
    thread.root, thread.abandon = count, 0
    if guess == NO_GUESS:
        guess = guess_value(thread, net, own, opp)
    test = guess + (guess & 1)
    while thread.lower < thread.upper:
        test = min(max(test, thread.lower + 2), thread.upper)
        value = null_window(thread, net, own, opp, test - 1, count)
        if thread.stop:
            return
        if value >= test:
            thread.lower = value
            test = value + 2
        else:
            thread.upper = value
            test = value


@kernel
def table_move(thread_states, own, opp):
    """Return the table's best move, 64 if there is none."""
    thread = thread_states[0]
    data = probe_tables(thread, own, opp, thread.square_count - popcount(own | opp))
    return move_of(data) if data else NO_MOVE


@kernel
def _has_value(thread, net, own, opp, sq, score, count):
    flipped = flips(sq, own, opp)
    child_own, child_opp = opp ^ flipped, own | flipped | ONE << np.uint64(sq)
    return -null_window(thread, net, child_own, child_opp, 1 - score, count - 1) >= score and not thread.stop


@kernel
def find_move_with_value(thread_states, nets, own, opp, score):
    """Return a legal move whose value is *score*, that of the position; 64 if a stop comes first."""
    thread, net = thread_states[0], nets[0]
    thread.abandon = 0  # a stop may have left it set
    first = table_move(thread_states, own, opp)
    moves = legal_moves(own, opp, thread.playable)
    count = thread.square_count - popcount(own | opp)
    if first != NO_MOVE and _has_value(thread, net, own, opp, first, score, count):
        return first
    while moves != NO_SQUARES:
        sq = trailing_zeros(moves)
        moves &= moves - ONE
        if sq != first and _has_value(thread, net, own, opp, sq, score, count):
            return sq
    return NO_MOVE


@kernel
def _solve(thread_states, nets, own, opp, guess_or_score, scores, finds_move):
    # All tasks share one entry point, so that numba compiles the solver only once.
    if finds_move:
        return find_move_with_value(thread_states, nets, own[0], opp[0], guess_or_score)
    thread = thread_states[0]
    for i in range(own.size):
        if scores.size:
            thread.lower, thread.upper = -thread.square_count, thread.square_count
        mtdf(thread, nets[0], own[i], opp[i], guess_or_score)
        if scores.size:
            scores[i] = thread.lower
    return NO_MOVE


_NO_SCORES = np.zeros(0, np.int8)


def solve_many(thread_states, nets, own, opp, scores):
    """Write the exact scores of many positions into *scores*, int8."""
    _solve(thread_states, nets, own, opp, 0, scores, False)


def solve_one(thread_states, nets, own, opp, guess):
    """Run `mtdf` with the first of *thread_states*: its ``lower`` and ``upper`` are first the window, then the result."""
    _solve(thread_states, nets, np.array([own]), np.array([opp]), guess, _NO_SCORES, False)


def best_move_with_value(thread_states, nets, own, opp, score):
    return _solve(thread_states, nets, np.array([own]), np.array([opp]), score, _NO_SCORES, True)
