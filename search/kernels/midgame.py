"""The midgame search: principal-variation search to a fixed depth over any evaluator.

Values are whole UNITs, 128 to a disc, for the side to move; a finished game counts its exact score, and evaluations are
kept strictly inside that range, so that a proven win is always worth more than a hoped-for one. A pass does not use up
depth.

`pvs` is the only search function down to the last ply, which `last_ply` looks at: a null window is the same call with
``beta = alpha + 1``. It calls itself and nothing that calls it back, which is what the on-disk cache of recursive kernels
needs.

Threads search one tree to one depth. As in the solver, each defers moves that another thread is searching (ABDADA) and abandons a
node when it or one of its ancestors has been resolved meanwhile.
"""

from __future__ import annotations

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARE, ONE, final_score, flips, legal_moves, play
from reversi_env.kernels.simd import popcount, trailing_zeros
from search.kernels.abdada import defer_busy, is_busy, mark_busy, shares, unmark_busy
from search.kernels.accumulator import (
    accumulator_of,
    accumulator_value,
    refresh_accumulator,
    update_accumulator,
    update_for_value,
)
from search.kernels.addresses import address_of
from search.kernels.ordering import add_move, pick_best
from search.kernels.table import (
    NO_MOVE,
    bucket_of,
    depth_of,
    lower_of,
    move_of,
    prefetch,
    probe,
    second_move_of,
    store,
    upper_of,
)
from search.kernels.thread_state import (
    ALPHA_BETA,
    LOOK_AHEAD,
    NULL_WINDOWS,
    REPLY_ORDER,
    VALUE_ORDER,
    count_moves,
    uses,
)

UNIT = 128
#: Beyond every value.
INFINITY = 30_000
#: From this depth on, results are stored in the transposition table.
TABLE_DEPTH = 2
#: From this depth on, moves are ordered by their static evaluation as well as by mobility.
EVALUATION_RANK_DEPTH = 3
#: From this depth on, all children are probed in the table before any is searched.
LOOK_AHEAD_DEPTH = 4
#: Units that one reply of the opponent counts in a move's rank.
REPLY_RANK = 48
#: Ranks of the table's moves, before all others, which are ranked after them: nine times in ten the first is the last as well.
FIRST_RANK, SECOND_RANK = -2_000_000, -1_000_000
#: Not the rank of any move.
NOT_RANKED = 1 << 40
#: ProbCut is tried where the static evaluation is so many standard deviations outside the window; elsewhere it seldom succeeds.
PROBCUT_SCREEN = 0.7
#: Maximum nesting of ProbCut: a shallow search may prune by ProbCut too.
MAX_PROBCUT_NESTING = 2
#: At this depth the static evaluation alone prunes nodes, since any search would cost as much as it saves. Its margin is so many
#: times that of a shallow search.
STATIC_DEPTH, STATIC_SAFETY = 2, 1.4
#: Late-move reduction: from depth LMR_DEPTH on, moves after the third that rank LMR_GAP units behind the best are searched
#: LMR_PLIES less deep first. The reduction is even because static values alternate with the side that moved last.
LMR_MOVE, LMR_DEPTH, LMR_GAP, LMR_PLIES = 3, 4, UNIT, 2
#: A larger reduction for moves that rank far behind: 51.7 ± 1.6 % of 1,674 games, both variants, 0.1 s per move, against two plies
#: less from two discs on.
LMR_FAR_DEPTH, LMR_FAR_GAP, LMR_FAR_PLIES = 6, 3 * UNIT, 4


@kernel
def units(value, squares):
    """An evaluation in discs as whole units, kept inside the range of exact scores."""
    most = squares * UNIT - 1
    return min(max(np.int64(np.floor(value * UNIT + 0.5)), -most), most)


@kernel
def empties_of(thread, own, opp):
    """Number of empty squares: the level of the position."""
    return thread.squares - popcount(own | opp)


@kernel
def terminal_value(thread, own, opp):
    """Return the exact value of a terminal position."""
    return UNIT * thread.sign * final_score(own, opp, thread.playable)


@kernel
def list_moves(thread, own, opp, moves, level, depth, first, second):
    """Write the moves into the lists of this level, the table's moves with a rank before all others; their number."""
    listed, looks_up = 0, thread.table != 0 and depth > TABLE_DEPTH
    while moves != NO_SQUARE:
        sq = trailing_zeros(moves)
        bit = moves & (~moves + ONE)
        moves ^= bit
        flipped = flips(sq, own, opp)
        if looks_up:
            prefetch(thread.table, opp ^ flipped, own | flipped | bit, thread.bucket_mask)
        rank = FIRST_RANK if sq == first else SECOND_RANK if sq == second else 0
        listed = add_move(thread, level, listed, flipped, sq, rank)
    return listed


@kernel
def rank_moves(thread, net, own, opp, level, start, listed, depth):
    """Rank the moves from *start* on (lowest first to be searched), when all before have been searched."""
    accumulator, child_accumulator = accumulator_of(thread, level), accumulator_of(thread, level - 1)
    for i in range(start, listed):
        flipped, sq, rank = thread.flipped[level, i], thread.square[level, i], 0
        child_own, child_opp = opp ^ flipped, own | flipped | ONE << np.uint64(sq)
        replies = legal_moves(child_own, child_opp, thread.playable)
        if uses(thread, REPLY_ORDER):
            rank += REPLY_RANK * popcount(replies)
        if depth >= EVALUATION_RANK_DEPTH and uses(thread, VALUE_ORDER):
            update_for_value(net, accumulator, sq, flipped)
            rank += units(
                accumulator_value(net, child_accumulator, level - 1, child_own, child_opp, replies), thread.squares
            )
        thread.rank[level, i] = rank


@kernel
def refuting_child(thread, own, opp, level, listed, depth, beta):
    """A bound of at least *beta* that some child's table entry proves, or -INFINITY."""
    for i in range(listed):
        flipped = thread.flipped[level, i]
        child_own, child_opp = opp ^ flipped, own | flipped | ONE << np.uint64(thread.square[level, i])
        data = probe(thread.table, bucket_of(child_own, child_opp, thread.bucket_mask), child_own, child_opp)
        if data and depth_of(data) >= depth - 1 and -upper_of(data) >= beta:
            return -upper_of(data)
    return -INFINITY


@kernel
def deciding_bound(data, alpha, beta, depth):
    """The value, or a bound of it outside the window, by an entry of a search to *depth* or more; -INFINITY: it does not tell."""
    if depth_of(data) >= depth:
        lower, upper = lower_of(data), upper_of(data)
        if lower >= beta or lower == upper:
            return lower
        if upper <= alpha:
            return upper
    return -INFINITY


@kernel
def path_bound(thread, level):
    """Return the bound that the table now has for the node at *level* on the current path, or -INFINITY if it decides nothing."""
    own, opp = thread.path_own[level], thread.path_opp[level]
    data = probe(thread.table, bucket_of(own, opp, thread.bucket_mask), own, opp)
    alpha, beta, depth = thread.path_alpha[level], thread.path_beta[level], thread.path_depth[level]
    return deciding_bound(data, alpha, beta, depth) if data else -INFINITY


@kernel
def resolved_ancestor(thread, level):
    """Return the level (empties) of the ancestor nearest to the root that another thread has resolved, or 0."""
    for above in range(thread.root, level, -1):
        if path_bound(thread, above) > -INFINITY:
            return above
    return 0


@kernel
def push_path(thread, own, opp, alpha, beta, depth, level):
    """Write a node and its window to the current path, for `resolved_ancestor`."""
    thread.path_own[level], thread.path_opp[level] = own, opp
    thread.path_alpha[level], thread.path_beta[level], thread.path_depth[level] = alpha, beta, depth


@kernel
def may_probcut(thread, depth, level):
    """Return whether ProbCut may be tried. A search to the end of the game is never pruned: its values are exact."""
    return (
        level > depth
        and thread.cut_margin > 0.0
        and thread.cut_nesting < MAX_PROBCUT_NESTING
        and thread.cut_depth[depth] != 0
    )


@kernel
def static_value(thread, net, own, opp, moves, level, rank):
    """The evaluation of a position with those legal *moves*: it is part of the *rank* of the move that led there, if that has one.

    Nine in ten need not be computed a second time: 1.03 times the nodes a second.
    """
    if rank == NOT_RANKED:
        return units(accumulator_value(net, accumulator_of(thread, level), level, own, opp, moves), thread.squares)
    return rank - REPLY_RANK * popcount(moves) if uses(thread, REPLY_ORDER) else rank


@kernel
def static_bound(thread, net, own, opp, moves, alpha, depth, rank):
    """Return the bound of the null window above *alpha* that the static evaluation predicts to fail, or -INFINITY.

    *moves* are the legal ones, and *rank* is that of the move that led there.
    """
    level = empties_of(thread, own, opp)
    if level <= depth:  # to the end of the game nothing is cut
        return -INFINITY
    static = static_value(thread, net, own, opp, moves, level, rank)
    safety = STATIC_SAFETY * thread.cut_margin * thread.cut_deviation[depth, level]
    if static >= alpha + 1 + safety:
        return alpha + 1
    return alpha if static <= alpha - safety else -INFINITY


@kernel
def probcut_side(thread, static, alpha, beta, depth, level):
    """Return on which side ProbCut may prune the node: 1 fail high, -1 fail low, 0 if the static evaluation is too close."""
    screen = PROBCUT_SCREEN * thread.cut_deviation[depth, level]
    if static >= beta + screen:
        return 1
    return -1 if static <= alpha - screen else 0


@kernel
def probcut_window(bound, side, safety, slope, shift):
    """Return the lower end of the null window of ProbCut's shallow search.

    *bound* is the deep search's bound on the *side* (1 fail high, -1 fail low) that may be pruned. The value predicted by
    *slope* and *shift* has to be *safety* units beyond it.
    """
    threshold = np.int64((bound + side * safety - shift) / slope)
    threshold = min(max(threshold, -INFINITY + 2), INFINITY - 2)
    return threshold - 1 if side > 0 else threshold


@kernel
def probcut_trial(thread, net, own, opp, moves, alpha, depth, level, rank):
    """Return the side (0: none) and the `probcut_window` of a ProbCut trial at a node with the null window above *alpha*.

    *moves* are the legal ones, and *rank* is that of the move that led there.
    """
    if not may_probcut(thread, depth, level):
        return 0, alpha
    static = static_value(thread, net, own, opp, moves, level, rank)
    side = probcut_side(thread, static, alpha, alpha + 1, depth, level)
    safety = thread.cut_margin * thread.cut_deviation[depth, level]
    bound = alpha + 1 if side > 0 else alpha
    return side, probcut_window(bound, side, safety, thread.cut_slope[depth], thread.cut_shift[depth])


@kernel
def late_move_reduction(thread, level, i, lowest, depth):
    """Return the late-move reduction of move *i* in plies; *lowest* is the rank of the best move."""
    if thread.cut_margin == 0.0 or depth < LMR_DEPTH or level <= depth or i < LMR_MOVE or not uses(thread, VALUE_ORDER):
        return 0
    behind = thread.rank[level, i] - lowest
    if behind < thread.cut_margin * LMR_GAP or thread.rank[level, i] >= NOT_RANKED:
        return 0
    return LMR_FAR_PLIES if depth >= LMR_FAR_DEPTH and behind >= thread.cut_margin * LMR_FAR_GAP else LMR_PLIES


@kernel
def enter_node(thread):
    """Count a node. Return whether it may be searched."""
    thread.nodes += 1
    if thread.nodes > thread.node_limit:
        thread.stop = 1
    return thread.stop == 0


@kernel
def last_ply(thread, net, own, opp, moves, alpha, beta):
    """Value to a depth of one ply: no list of moves and no ranks, since what follows is as cheap as a rank.

    First comes the move that refuted the last such position with as many empties, most often a sister: 0.91 of all nodes.
    """
    best, nodes = -INFINITY, thread.nodes
    level = empties_of(thread, own, opp)
    accumulator, child_accumulator = accumulator_of(thread, level), accumulator_of(thread, level - 1)
    first = moves & thread.killer[level] if uses(thread, REPLY_ORDER) else NO_SQUARE
    while moves != NO_SQUARE:
        next_one = first if first != NO_SQUARE else moves
        sq = trailing_zeros(next_one)
        bit = next_one & (~next_one + ONE)
        first, moves = NO_SQUARE, moves ^ bit
        flipped = flips(sq, own, opp)
        child_own, child_opp = opp ^ flipped, own | flipped | bit
        if not enter_node(thread):
            return alpha
        update_for_value(net, accumulator, sq, flipped)
        replies = legal_moves(child_own, child_opp, thread.playable)
        if replies == NO_SQUARE and legal_moves(child_opp, child_own, thread.playable) == NO_SQUARE:
            value = terminal_value(thread, child_own, child_opp)
        else:
            value = units(
                accumulator_value(net, child_accumulator, level - 1, child_own, child_opp, replies), thread.squares
            )
        best = max(best, -value)
        if best >= beta:
            thread.killer[level] = bit
            break
    count_moves(thread, thread.nodes - nodes)
    return best


@kernel
def leaf_value(thread, net, own, opp):
    """Return the value of a leaf: exact if terminal, else the static evaluation."""
    moves = legal_moves(own, opp, thread.playable)
    if moves == NO_SQUARE and legal_moves(opp, own, thread.playable) == NO_SQUARE:
        return terminal_value(thread, own, opp)
    level = empties_of(thread, own, opp)
    return units(accumulator_value(net, accumulator_of(thread, level), level, own, opp, moves), thread.squares)


@kernel
def clear_killers(thread):
    """Clear the killer moves, so that equal searches visit equal nodes."""
    thread.killer[:] = NO_SQUARE
    thread.entered_rank = NOT_RANKED


@kernel
def negamax(thread, net, own, opp, alpha, beta, depth):
    """Value to *depth* plies if it lies between *alpha* and *beta*; otherwise a bound beyond the one it fails against."""
    refresh_accumulator(net, accumulator_of(thread, empties_of(thread, own, opp)), own, opp)
    clear_killers(thread)
    return pvs(thread, net, own, opp, alpha, beta, depth)


@kernel
def publish_node(thread, net, own, opp, alpha, beta, depth, level, known, listed):
    """Publish the node to the other threads, and rank all moves at once, since any but the first may be deferred.

    Return False if an ancestor is resolved already (`abandon`). *known* moves of the table come first.
    """
    push_path(thread, own, opp, alpha, beta, depth, level)
    thread.abandon = resolved_ancestor(thread, level)
    if thread.abandon:
        return False
    for i in range(known):
        pick_best(thread, level, i, listed)
    rank_moves(thread, net, own, opp, level, known, listed, depth)
    return True


@kernel
def store_bounds(thread, bucket, own, opp, alpha, beta, best, best_sq, depth):
    """Store the bounds and the best move of a search in the transposition table."""
    lower = best if best > alpha else -INFINITY
    upper = best if best < beta else INFINITY
    store(thread.table, bucket, own, opp, lower, upper, best_sq if best > alpha else NO_MOVE, depth, thread.generation)


@kernel
def pvs(thread, net, own, opp, alpha, beta, depth):
    """Principal-variation search of a position whose accumulator is up to date; see `negamax`."""
    rank, thread.entered_rank = thread.entered_rank, NOT_RANKED
    if not enter_node(thread):
        return alpha
    if depth <= 0:
        return leaf_value(thread, net, own, opp)
    moves = legal_moves(own, opp, thread.playable)
    if moves == NO_SQUARE:
        if legal_moves(opp, own, thread.playable) == NO_SQUARE:
            return terminal_value(thread, own, opp)
        accumulator = accumulator_of(thread, empties_of(thread, own, opp))
        refresh_accumulator(net, accumulator, opp, own)
        value = -pvs(thread, net, opp, own, -beta, -alpha, depth)
        refresh_accumulator(net, accumulator, own, opp)
        return value
    if depth == 1:
        return last_ply(thread, net, own, opp, moves, alpha, beta)
    is_null_window = beta - alpha == 1
    if depth == STATIC_DEPTH and is_null_window and thread.cut_margin > 0.0:
        bound = static_bound(thread, net, own, opp, moves, alpha, depth, rank)
        if bound > -INFINITY:
            return bound
    first, second, bucket = NO_MOVE, NO_MOVE, 0
    uses_table = thread.table != 0 and depth >= TABLE_DEPTH
    if uses_table:
        bucket = bucket_of(own, opp, thread.bucket_mask)
        data = probe(thread.table, bucket, own, opp)
        if data:
            bound = deciding_bound(data, alpha, beta, depth)
            if bound > -INFINITY:
                return bound
            first, second = move_of(data), second_move_of(data)
    level = empties_of(thread, own, opp)
    if is_null_window:
        side, low = probcut_trial(thread, net, own, opp, moves, alpha, depth, level, rank)
        if side != 0:
            thread.cut_nesting += 1
            thread.entered_rank = rank
            value = pvs(thread, net, own, opp, low, low + 1, thread.cut_depth[depth])
            thread.cut_nesting -= 1
            if (value > low) == (side > 0):
                return beta if side > 0 else alpha
    listed = list_moves(thread, own, opp, moves, level, depth, first, second)
    if uses_table and depth >= LOOK_AHEAD_DEPTH and uses(thread, LOOK_AHEAD):
        bound = refuting_child(thread, own, opp, level, listed, depth, beta)
        if bound >= beta:
            return bound
    known = (first != NO_MOVE) + (second != NO_MOVE)
    unranked, slot = known, np.int64(-1)
    shared = uses_table and shares(thread, depth)
    if shared:
        if not publish_node(thread, net, own, opp, alpha, beta, depth, level, known, listed):
            return alpha
        unranked = listed
    # behind the table's moves every rank has the child's value in it
    has_values = depth >= EVALUATION_RANK_DEPTH and not shared and uses(thread, VALUE_ORDER)
    best, best_sq, best_alpha, lowest = -INFINITY, NO_MOVE, alpha, np.int64(NOT_RANKED)
    for i in range(listed):
        if i == unranked:
            rank_moves(thread, net, own, opp, level, known, listed, depth)
        pick_best(thread, level, i, listed)
        if i == known:
            lowest = thread.rank[level, i]
        if shared and i:
            defer_busy(thread, own, opp, level, i, listed, depth)
        flipped, sq = thread.flipped[level, i], thread.square[level, i]
        child_own, child_opp = opp ^ flipped, own | flipped | ONE << np.uint64(sq)
        if shared:
            slot = mark_busy(thread.busy, child_own, child_opp, depth)
        update_accumulator(net, accumulator_of(thread, level), sq, flipped)
        child_rank = thread.rank[level, i] if has_values and i >= known else np.int64(NOT_RANKED)
        thread.entered_rank = child_rank
        child_beta = beta if i == 0 or not uses(thread, NULL_WINDOWS) else best_alpha + 1
        reduction = late_move_reduction(thread, level, i, lowest, depth) if is_null_window else 0
        value = -pvs(thread, net, child_own, child_opp, -child_beta, -best_alpha, depth - 1 - reduction)
        if reduction and value > best_alpha and not thread.abandon:
            thread.entered_rank = child_rank
            value = -pvs(thread, net, child_own, child_opp, -child_beta, -best_alpha, depth - 1)
        if best_alpha < value < beta and child_beta < beta and not thread.abandon:
            value = -pvs(thread, net, child_own, child_opp, -beta, -value, depth - 1)
        if shared:
            unmark_busy(thread.busy, slot)
            if thread.abandon == level and not thread.stop:  # another thread has resolved this node
                thread.abandon = 0
                bound = path_bound(thread, level)
                if bound > -INFINITY:
                    return bound
                return pvs(thread, net, own, opp, alpha, beta, depth)  # the entry has been overwritten: search again
            if thread.abandon:
                return alpha
        if thread.stop:
            return alpha
        if value > best:
            best, best_sq = value, sq
            if uses(thread, ALPHA_BETA):  # without, the bar stays where it is, below every value
                best_alpha = max(best_alpha, best)
            if best_alpha >= beta:
                break
    count_moves(thread, i + 1)
    if uses_table:
        store_bounds(thread, bucket, own, opp, alpha, beta, best, best_sq, depth)
    return best


@kernel
def search_root(thread_states, nets, own, opp, squares, values, alpha, beta, depth, lines):
    """Search the root's moves *squares* in the given order to *depth*; how many were finished before the search was stopped.

    ``values[i]``, at first -INFINITY, is move *i*'s value for the side to move at the root: exact for the best *lines* moves, for
    the others an upper bound. With a value outside the window the caller searches again.
    """
    thread, net = thread_states[0], nets[0]
    thread.negamax = address_of(negamax, thread, net)
    level = empties_of(thread, own, opp)
    thread.root, thread.abandon = level - 1, 0
    accumulator = accumulator_of(thread, level)
    refresh_accumulator(net, accumulator, own, opp)
    clear_killers(thread)
    shared, later, turn, finished = shares(thread, depth), NO_SQUARE, 0, 0
    while turn < squares.size or later != NO_SQUARE:
        i = turn
        if turn >= squares.size:
            i = trailing_zeros(later)
            later &= later - ONE
        turn += 1
        flipped = flips(squares[i], own, opp)
        child_own, child_opp = opp ^ flipped, own | flipped | ONE << np.uint64(squares[i])
        best_alpha = _multi_pv_bound(values, lines, alpha)
        if best_alpha >= beta:
            return finished
        if shared and lines <= i < turn <= squares.size and is_busy(thread.busy, child_own, child_opp, depth):
            later |= ONE << np.uint64(i)
            continue
        slot = mark_busy(thread.busy, child_own, child_opp, depth) if shared else np.int64(-1)
        update_accumulator(net, accumulator, squares[i], flipped)
        if i < lines:
            value = -pvs(thread, net, child_own, child_opp, -beta, -alpha, depth - 1)
        else:
            value = -pvs(thread, net, child_own, child_opp, -best_alpha - 1, -best_alpha, depth - 1)
            if best_alpha < value < beta:
                value = -pvs(thread, net, child_own, child_opp, -beta, -best_alpha, depth - 1)
        unmark_busy(thread.busy, slot)
        if thread.stop:
            return finished
        if turn > squares.size:  # deferred: a bound that equals the best value must not rank before moves that have it
            value = min(value, best_alpha - 1) if value <= best_alpha else value
        values[i] = value
        finished += 1
    return finished


def register_negamax(thread_states, nets):
    """Write the address of `negamax` for the evaluator of *nets* into the records of threads that search to the end."""
    none = np.zeros(0, np.int64)
    search_root(thread_states[:1], nets, NO_SQUARE, NO_SQUARE, none, none, 0, 0, 0, 1)
    thread_states["negamax"] = thread_states["negamax"][0]


@kernel
def _multi_pv_bound(values, lines, alpha):
    """Return the value that a further move must beat: the *lines*-th best so far, but at least *alpha*."""
    bound = alpha
    for i in range(values.size):  # few moves, and numba takes seconds to compile a sort
        as_good = 0
        for j in range(values.size):
            as_good += values[j] >= values[i]
        if as_good >= lines:
            bound = max(bound, values[i])
    return bound


@kernel
def table_pv(thread_states, own, opp, first, line):
    """Write the legal move *first* and the table's best moves after it into *line*, 64 for a pass; how many it knows."""
    thread, sq = thread_states[0], first
    for ply in range(line.size):
        line[ply] = sq
        own, opp = play(sq, own, opp)
        moves = legal_moves(own, opp, thread.playable)
        sq = _table_move(thread, own, opp) if moves else NO_MOVE
        knows = sq != NO_MOVE and moves >> np.uint64(sq) & ONE
        if not knows and (moves or not legal_moves(opp, own, thread.playable)):
            return ply + 1
    return line.size


@kernel
def _table_move(thread, own, opp):
    """The table's best move, 64 if it knows none."""
    if thread.table == 0:
        return NO_MOVE
    data = probe(thread.table, bucket_of(own, opp, thread.bucket_mask), own, opp)
    return move_of(data) if data else NO_MOVE


# --- many positions --------------------------------------------------------------------------------


#: From so much depth on a shallower search first tells about where the value lies, and which moves are good.
GUESS_DEPTH = 4
#: How much shallower that one is: an even number of plies, since values of odd and even depths differ.
GUESS_PLIES = 2
#: Half the width of the first window around the guess.
WINDOW = 4 * UNIT


@kernel
def search_many(thread_states, nets, own, opp, depth, values):
    """Write the value to *depth* plies of every position into *values*; return early, the rest unwritten, at a stop."""
    thread, net = thread_states[0], nets[0]
    # a literal argument would give negamax a type of its own, which crashes the next process, from the cache
    lowest, highest, shallow = np.int64(-INFINITY), np.int64(INFINITY), np.int64(depth - GUESS_PLIES)
    for i in range(own.size):
        low, high = lowest, highest
        if depth >= GUESS_DEPTH:
            guess = negamax(thread, net, own[i], opp[i], lowest, highest, shallow)
            low, high = np.int64(guess - WINDOW), np.int64(guess + WINDOW)
        value = negamax(thread, net, own[i], opp[i], low, high, depth)
        if value <= low or value >= high:  # outside the window: only a bound
            value = negamax(thread, net, own[i], opp[i], lowest, highest, depth)
        if thread.stop:
            return
        values[i] = value
