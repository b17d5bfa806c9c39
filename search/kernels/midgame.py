"""The midgame search: principal-variation search to a fixed depth over any evaluator.

Values are integers, 128 units per disc, for the side to move. A terminal position has its exact score, and evaluations are strictly
inside the range of scores, so that a proven win has a higher value than any estimate. A pass does not reduce the depth.

`pvs` searches all plies but the last (`last_ply`); a null window is the same call with ``beta = alpha + 1``. A node probes the
transposition table, tries ProbCut (`search.kernels.probcut`) and enhanced transposition cut-offs (ETC), and then searches its moves
in the order and with the late-move reductions of `search.kernels.ordering`. The recursion is direct: numba cannot cache mutually
recursive kernels on disk. The *level* of a node is its number of empty squares. It indexes the lists and accumulators of the
thread's record, and falls by one with every move.

Threads search one tree to one depth. As in the solver, each defers moves that another thread is searching (ABDADA), and abandons a
node when the table has a result of another thread that decides the window of the node or of an ancestor.
"""

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, final_score, flips, legal_moves, play
from reversi_env.kernels.simd import trailing_zeros
from search.kernels.abdada import defer_busy, is_busy, mark_busy, shares, unmark_busy
from search.kernels.accumulator import (
    accumulator_of,
    accumulator_value,
    refresh_accumulator,
    update_accumulator,
    update_for_value,
)
from search.kernels.addresses import address_of
from search.kernels.evaluate import INFINITY, UNIT, units
from search.kernels.ordering import (
    EVALUATION_RANK_DEPTH,
    NOT_RANKED,
    TABLE_DEPTH,
    empties_of,
    late_move_reduction,
    list_moves,
    pick_best,
    rank_moves,
)
from search.kernels.probcut import STATIC_DEPTH, probcut_trial, static_bound
from search.kernels.table import NO_MOVE, bucket_of, depth_of, lower_of, move_of, probe, second_move_of, store, upper_of

#: Minimum depth of enhanced transposition cut-offs (ETC): all children are probed in the table before any is searched.
ETC_DEPTH = 4


@kernel
def terminal_value(thread, own, opp):
    return UNIT * thread.sign * final_score(own, opp, thread.playable)


@kernel
def etc_bound(thread, own, opp, level, listed, depth, beta):
    """Return a bound of at least *beta* that the table entry of a child proves (ETC), or -INFINITY."""
    for i in range(listed):
        flipped = thread.flipped[level, i]
        child_own, child_opp = opp ^ flipped, own | flipped | ONE << np.uint64(thread.square[level, i])
        data = probe(thread.table, bucket_of(child_own, child_opp, thread.bucket_mask), child_own, child_opp)
        if data and depth_of(data) >= depth - 1 and -upper_of(data) >= beta:
            return -upper_of(data)
    return -INFINITY


@kernel
def cutoff_bound(data, alpha, beta, depth):
    """Return the value, or a bound outside the window, of a table entry of at least *depth*; -INFINITY if it decides nothing."""
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
    return cutoff_bound(data, alpha, beta, depth) if data else -INFINITY


@kernel
def resolved_ancestor(thread, level):
    """Return the level of the ancestor nearest to the root whose window a table entry now decides (`path_bound`), or 0."""
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
def enter_node(thread):
    """Count a node. Return whether it may be searched."""
    thread.nodes += 1
    if thread.nodes > thread.node_limit:
        thread.stop = 1
    return thread.stop == 0


@kernel
def last_ply(thread, net, own, opp, moves, alpha, beta):
    """Return the value to a depth of one ply, without a move list: evaluating a move costs no more than ranking it.

    The killer move of the level is searched first, which saves 9 % of all nodes.
    """
    best, level = -INFINITY, empties_of(thread, own, opp)
    accumulator, child_accumulator = accumulator_of(thread, level), accumulator_of(thread, level - 1)
    first = moves & thread.killer[level]
    while moves != NO_SQUARES:
        next_one = first if first != NO_SQUARES else moves
        sq = trailing_zeros(next_one)
        bit = next_one & (~next_one + ONE)
        first, moves = NO_SQUARES, moves ^ bit
        flipped = flips(sq, own, opp)
        child_own, child_opp = opp ^ flipped, own | flipped | bit
        if not enter_node(thread):
            return alpha
        update_for_value(net, accumulator, sq, flipped)
        replies = legal_moves(child_own, child_opp, thread.playable)
        if replies == NO_SQUARES and legal_moves(child_opp, child_own, thread.playable) == NO_SQUARES:
            value = terminal_value(thread, child_own, child_opp)
        else:
            value = units(
                accumulator_value(net, child_accumulator, level - 1, child_own, child_opp, replies), thread.square_count
            )
        best = max(best, -value)
        if best >= beta:
            thread.killer[level] = bit
            break
    return best


@kernel
def leaf_value(thread, net, own, opp):
    """Return the value of a leaf: exact if terminal, else the static evaluation."""
    moves = legal_moves(own, opp, thread.playable)
    if moves == NO_SQUARES and legal_moves(opp, own, thread.playable) == NO_SQUARES:
        return terminal_value(thread, own, opp)
    level = empties_of(thread, own, opp)
    return units(accumulator_value(net, accumulator_of(thread, level), level, own, opp, moves), thread.square_count)


@kernel
def clear_killers(thread):
    """Clear the killer moves, so that a repeated search visits the same nodes."""
    thread.killer[:] = NO_SQUARES
    thread.last_move_rank = NOT_RANKED


@kernel
def negamax(thread, net, own, opp, alpha, beta, depth):
    """Return the value to *depth* plies if it lies between *alpha* and *beta*, otherwise a bound outside the window."""
    refresh_accumulator(net, accumulator_of(thread, empties_of(thread, own, opp)), own, opp)
    clear_killers(thread)
    return pvs(thread, net, own, opp, alpha, beta, depth)


@kernel
def prepare_shared_node(thread, net, own, opp, alpha, beta, depth, level, table_moves, listed):
    """Prepare a node that threads may share: add it to the thread's path, and rank all moves, since any may be deferred.

    Return False if the node is to be abandoned (`resolved_ancestor`). The first *table_moves* moves are those of the table.
    """
    push_path(thread, own, opp, alpha, beta, depth, level)
    thread.abandon = resolved_ancestor(thread, level)
    if thread.abandon:
        return False
    for i in range(table_moves):
        pick_best(thread, level, i, listed)
    rank_moves(thread, net, own, opp, level, table_moves, listed, depth)
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
    # If the parent ranked the move to this position, the rank contains the position's static evaluation. ProbCut takes it from
    # there (`search.kernels.ordering.static_value`) and does not evaluate again.
    rank, thread.last_move_rank = thread.last_move_rank, NOT_RANKED
    if not enter_node(thread):
        return alpha
    if depth <= 0:
        return leaf_value(thread, net, own, opp)
    moves = legal_moves(own, opp, thread.playable)
    if moves == NO_SQUARES:
        if legal_moves(opp, own, thread.playable) == NO_SQUARES:
            return terminal_value(thread, own, opp)
        accumulator = accumulator_of(thread, empties_of(thread, own, opp))
        refresh_accumulator(net, accumulator, opp, own)
        value = -pvs(thread, net, opp, own, -beta, -alpha, depth)
        refresh_accumulator(net, accumulator, own, opp)
        return value
    if depth == 1:
        return last_ply(thread, net, own, opp, moves, alpha, beta)
    is_null_window = beta - alpha == 1
    if depth == STATIC_DEPTH and is_null_window and thread.probcut_margin > 0.0:
        bound = static_bound(thread, net, own, opp, moves, alpha, depth, rank)
        if bound > -INFINITY:
            return bound
    first, second, bucket = NO_MOVE, NO_MOVE, 0
    uses_table = thread.table != 0 and depth >= TABLE_DEPTH
    if uses_table:
        bucket = bucket_of(own, opp, thread.bucket_mask)
        data = probe(thread.table, bucket, own, opp)
        if data:
            bound = cutoff_bound(data, alpha, beta, depth)
            if bound > -INFINITY:
                return bound
            first, second = move_of(data), second_move_of(data)
    level = empties_of(thread, own, opp)
    if is_null_window:
        side, low = probcut_trial(thread, net, own, opp, moves, alpha, depth, level, rank)
        if side != 0:
            thread.probcut_nesting += 1
            thread.last_move_rank = rank
            value = pvs(thread, net, own, opp, low, low + 1, thread.probcut_depth[depth])
            thread.probcut_nesting -= 1
            if (value > low) == (side > 0):  # the shallow search fails on the predicted side
                return beta if side > 0 else alpha
    listed = list_moves(thread, own, opp, moves, level, depth, first, second)
    if uses_table and depth >= ETC_DEPTH:
        bound = etc_bound(thread, own, opp, level, listed, depth, beta)
        if bound >= beta:
            return bound
    table_moves = (first != NO_MOVE) + (second != NO_MOVE)
    first_unranked, slot = table_moves, np.int64(-1)
    shared = uses_table and shares(thread, depth)
    if shared:
        if not prepare_shared_node(thread, net, own, opp, alpha, beta, depth, level, table_moves, listed):
            return alpha
        first_unranked = listed  # all moves have ranks
    # Whether ranks contain the static evaluation of the child. The ranks of the table's moves never do.
    has_values = depth >= EVALUATION_RANK_DEPTH and not shared
    best, best_sq, best_alpha, lowest = -INFINITY, NO_MOVE, alpha, np.int64(NOT_RANKED)
    for i in range(listed):
        if i == first_unranked:
            rank_moves(thread, net, own, opp, level, table_moves, listed, depth)
        pick_best(thread, level, i, listed)
        if i == table_moves:
            lowest = thread.rank[level, i]
        if shared and i:
            defer_busy(thread, own, opp, level, i, listed, depth)
        flipped, sq = thread.flipped[level, i], thread.square[level, i]
        child_own, child_opp = opp ^ flipped, own | flipped | ONE << np.uint64(sq)
        if shared:
            slot = mark_busy(thread.busy, child_own, child_opp, depth)
        update_accumulator(net, accumulator_of(thread, level), sq, flipped)
        child_rank = thread.rank[level, i] if has_values and i >= table_moves else np.int64(NOT_RANKED)
        thread.last_move_rank = child_rank
        child_beta = beta if i == 0 else best_alpha + 1
        reduction = late_move_reduction(thread, level, i, lowest, depth) if is_null_window else 0
        value = -pvs(thread, net, child_own, child_opp, -child_beta, -best_alpha, depth - 1 - reduction)
        if reduction and value > best_alpha and not thread.abandon:  # fails high: search to full depth
            thread.last_move_rank = child_rank
            value = -pvs(thread, net, child_own, child_opp, -child_beta, -best_alpha, depth - 1)
        # If a null window fails high, search again with the open window.
        if best_alpha < value < beta and child_beta < beta and not thread.abandon:
            value = -pvs(thread, net, child_own, child_opp, -beta, -value, depth - 1)
        if shared:
            unmark_busy(thread.busy, slot)
            if thread.abandon == level and not thread.stop:  # this node itself is decided
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
            best_alpha = max(best_alpha, best)
            if best_alpha >= beta:
                break
    if uses_table:
        store_bounds(thread, bucket, own, opp, alpha, beta, best, best_sq, depth)
    return best


@kernel
def search_root(thread_states, nets, own, opp, squares, values, alpha, beta, depth, lines):
    """Search the root moves *squares* in this order to *depth*; return how many were completed before a stop.

    ``values[i]``, initially -INFINITY, becomes the value of move *i* for the side to move at the root: exact for the best *lines*
    moves, an upper bound for the others. If a value is outside the window, the caller must search again.

    The first ``squares.size`` turns take the moves in order. A move that another thread is searching is deferred, unless it is
    one of the first *lines* moves. Further turns take the deferred moves.
    """
    thread, net = thread_states[0], nets[0]
    thread.negamax = address_of(negamax, thread, net)
    level = empties_of(thread, own, opp)
    thread.root, thread.abandon = level - 1, 0
    accumulator = accumulator_of(thread, level)
    refresh_accumulator(net, accumulator, own, opp)
    clear_killers(thread)
    shared, deferred, turn, finished = shares(thread, depth), NO_SQUARES, 0, 0
    while turn < squares.size or deferred != NO_SQUARES:
        i = turn
        if turn >= squares.size:
            i = trailing_zeros(deferred)
            deferred &= deferred - ONE
        turn += 1
        flipped = flips(squares[i], own, opp)
        child_own, child_opp = opp ^ flipped, own | flipped | ONE << np.uint64(squares[i])
        best_alpha = _multi_pv_bound(values, lines, alpha)
        if best_alpha >= beta:
            return finished
        if shared and lines <= i < turn <= squares.size and is_busy(thread.busy, child_own, child_opp, depth):
            deferred |= ONE << np.uint64(i)
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
        # A deferred move that is not better has only an upper bound, and it may come before the best move in *squares*. If the
        # bound equalled the best value, the caller's stable sort would put the deferred move first.
        if turn > squares.size and value <= best_alpha:
            value = min(value, best_alpha - 1)
        values[i] = value
        finished += 1
    return finished


def register_negamax(thread_states, nets):
    """Write the address of `negamax` for the evaluator of *nets* into the records of threads that search to the end.

    `search_root` writes it, called here without moves.
    """
    none = np.zeros(0, np.int64)
    search_root(thread_states[:1], nets, NO_SQUARES, NO_SQUARES, none, none, 0, 0, 0, 1)
    thread_states["negamax"] = thread_states["negamax"][0]


@kernel
def _multi_pv_bound(values, lines, alpha):
    # the value that a further move must beat: the *lines*-th best so far, but at least *alpha*
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
    """Write the legal move *first* and the table's best moves after it into *line*, 64 for a pass; return their number."""
    thread, sq = thread_states[0], first
    for ply in range(line.size):
        line[ply] = sq
        own, opp = play(sq, own, opp)
        moves = legal_moves(own, opp, thread.playable)
        sq = _table_move(thread, own, opp) if moves else NO_MOVE
        is_legal = sq != NO_MOVE and moves >> np.uint64(sq) & ONE
        if not is_legal and (moves or not legal_moves(opp, own, thread.playable)):
            return ply + 1
    return line.size


@kernel
def _table_move(thread, own, opp):
    if thread.table == 0:
        return NO_MOVE
    data = probe(thread.table, bucket_of(own, opp, thread.bucket_mask), own, opp)
    return move_of(data) if data else NO_MOVE


#: From this depth on, a search GUESS_PLIES less deep gives the first window and move ordering. The number is even because of
#: the odd-even effect.
GUESS_DEPTH, GUESS_PLIES = 4, 2
#: Half the width of the first window.
WINDOW = 4 * UNIT


@kernel
def search_many(thread_states, nets, own, opp, depth, values):
    """Write the value to *depth* plies of every position into *values*; return early, the rest unwritten, at a stop."""
    thread, net = thread_states[0], nets[0]
    # No literal arguments: numba gives literals separate types and would compile a second negamax for it. Loaded from the
    # disk cache, that second negamax crashes.
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
