"""The midgame search: principal-variation search to a fixed depth over any evaluator.

Values are whole UNITs, 128 to a disc, for the side to move; a finished game counts its exact score, and evaluations are
kept strictly inside that range, so that a proven win is always worth more than a hoped-for one. A pass does not use up
depth.

`descend` is the only search function down to the last ply, which `last_ply` looks at: a null window is the same call with
``beta = alpha + 1``. It calls itself and nothing that calls it back, which is what the on-disk cache of recursive kernels
needs.

Threads search one tree to one depth. As in the solver, each leaves moves that another one is searching for later, when the answer
will be in the table, and leaves a position when its question, or one on the way there, has been answered meanwhile.
"""

from __future__ import annotations

import numpy as np

from reversi_env.core.bitboard import NO_SQUARE, ONE, final_score, flips, legal_moves, play
from reversi_env.core.compiling import kernel
from reversi_env.core.intrinsics import popcount, trailing_zeros
from search.core.busy import is_busy, put_off_busy, set_busy, set_free, shares
from search.core.by_address import address_of
from search.core.carried import after_move, begin, room_of, try_move, value_of
from search.core.move_lists import add_move, bring_best
from search.core.refinements import ALPHA_BETA, LOOK_AHEAD, NULL_WINDOWS, REPLY_ORDER, VALUE_ORDER, count_moves, uses
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

UNIT = 128
#: Beyond every value.
INFINITY = 30_000
#: From so much depth on: results are kept in the table …
TABLE_DEPTH = 2
#: … moves are ranked by their evaluation, not by mobility alone …
EVALUATION_RANK_DEPTH = 3
#: … and children are looked up in the table before any is searched.
LOOK_AHEAD_DEPTH = 4
#: Units that one reply of the opponent counts in a move's rank.
REPLY_RANK = 48
#: Ranks of the table's moves, before all others, which are ranked after them: nine times in ten the first is the last as well.
FIRST_RANK, SECOND_RANK = -2_000_000, -1_000_000
#: Not the rank of any move.
NOT_RANKED = 1 << 40
#: ProbCut is tried where the evaluation itself is so many standard deviations beyond the window (seldom does it succeed
#: elsewhere) …
CUT_SCREEN = 0.7
#: … and in the shallow searches of such trials too, so often within each other.
CUT_NESTING = 2
#: So near the leaves the evaluation alone leaves nodes out, since any search would cost as much as is saved; with so many times
#: the safety that a shallow search needs.
STATIC_DEPTH, STATIC_SAFETY = 2, 1.4
#: With ProbCut, from so much depth on, moves from the fourth on which rank so many units behind the best are first searched so many
#: plies less deep: by an even number, since evaluations swing with the side that moved last.
LATE_MOVE, LATE_DEPTH, LATE_GAP, LATE_PLIES = 3, 4, UNIT, 2
#: The same for moves that rank far behind: 51.7 ± 1.6 % of 1,674 games, both variants, 0.1 s a move, against two plies less from
#: two discs on.
FAR_DEPTH, FAR_GAP, FAR_PLIES = 6, 3 * UNIT, 4


@kernel
def units(value, squares):
    """An evaluation in discs as whole units, kept inside the range of exact scores."""
    most = squares * UNIT - 1
    return min(max(np.int64(np.floor(value * UNIT + 0.5)), -most), most)


@kernel
def empties_of(work, own, opp):
    """Number of empty squares: the level of the position."""
    return work.squares - popcount(own | opp)


@kernel
def finished(work, own, opp):
    """Value of a finished game."""
    return UNIT * work.sign * final_score(own, opp, work.playable)


@kernel
def list_moves(work, own, opp, moves, level, depth, first, second):
    """Write the moves into the lists of this level, the table's moves with a rank before all others; their number."""
    listed, looks_up = 0, work.table != 0 and depth > TABLE_DEPTH
    while moves != NO_SQUARE:
        sq = trailing_zeros(moves)
        bit = moves & (~moves + ONE)
        moves ^= bit
        turned = flips(sq, own, opp)
        if looks_up:
            expect(work.table, opp ^ turned, own | turned | bit, work.bucket_mask)
        rank = FIRST_RANK if sq == first else SECOND_RANK if sq == second else 0
        listed = add_move(work, level, listed, turned, sq, rank)
    return listed


@kernel
def rank_moves(work, net, own, opp, level, start, listed, depth):
    """Rank the moves from *start* on (lowest first to be searched), when all before have been searched."""
    room, child_room = room_of(work, level), room_of(work, level - 1)
    for i in range(start, listed):
        turned, sq, rank = work.turned[level, i], work.square[level, i], 0
        child_own, child_opp = opp ^ turned, own | turned | ONE << np.uint64(sq)
        replies = legal_moves(child_own, child_opp, work.playable)
        if uses(work, REPLY_ORDER):
            rank += REPLY_RANK * popcount(replies)
        if depth >= EVALUATION_RANK_DEPTH and uses(work, VALUE_ORDER):
            try_move(net, room, sq, turned)
            rank += units(value_of(net, child_room, level - 1, child_own, child_opp, replies), work.squares)
        work.rank[level, i] = rank


@kernel
def refuting_child(work, own, opp, level, listed, depth, beta):
    """A bound of at least *beta* that some child's table entry proves, or -INFINITY."""
    for i in range(listed):
        turned = work.turned[level, i]
        child_own, child_opp = opp ^ turned, own | turned | ONE << np.uint64(work.square[level, i])
        data = probe(work.table, bucket_of(child_own, child_opp, work.bucket_mask), child_own, child_opp)
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
def answer(work, level):
    """What the table has to say, meanwhile, to what is asked of the position on the way here with so many empties; or -INFINITY."""
    own, opp = work.path_own[level], work.path_opp[level]
    data = probe(work.table, bucket_of(own, opp, work.bucket_mask), own, opp)
    alpha, beta, depth = work.path_alpha[level], work.path_beta[level], work.path_depth[level]
    return deciding_bound(data, alpha, beta, depth) if data else -INFINITY


@kernel
def answered_above(work, level):
    """Empties of the position nearest to the root, among those that led here, whose question another thread has answered; or 0."""
    for above in range(work.root, level, -1):
        if answer(work, above) > -INFINITY:
            return above
    return 0


@kernel
def ask(work, own, opp, alpha, beta, depth, level):
    """Note what is asked of a position, for `answered_above`."""
    work.path_own[level], work.path_opp[level] = own, opp
    work.path_alpha[level], work.path_beta[level], work.path_depth[level] = alpha, beta, depth


@kernel
def may_cut(work, depth, level):
    """Whether ProbCut may be tried there. To the end of the game nothing is cut: what is found there is true."""
    return level > depth and work.cut_margin > 0.0 and work.cut_nesting < CUT_NESTING and work.cut_depth[depth] != 0


@kernel
def static_value(work, net, own, opp, moves, level, rank):
    """The evaluation of a position with those legal *moves*: it is part of the *rank* of the move that led there, if that has one.

    Nine in ten need not be computed a second time: 1.03 times the nodes a second.
    """
    if rank == NOT_RANKED:
        return units(value_of(net, room_of(work, level), level, own, opp, moves), work.squares)
    return rank - REPLY_RANK * popcount(moves) if uses(work, REPLY_ORDER) else rank


@kernel
def static_bound(work, net, own, opp, moves, alpha, depth, rank):
    """The end of the null window above *alpha* beyond which the evaluation alone foretells the value; -INFINITY: neither.

    *moves* are the legal ones, and *rank* is that of the move that led there.
    """
    level = empties_of(work, own, opp)
    if level <= depth:  # to the end of the game nothing is cut
        return -INFINITY
    static = static_value(work, net, own, opp, moves, level, rank)
    safety = STATIC_SAFETY * work.cut_margin * work.cut_deviation[depth, level]
    if static >= alpha + 1 + safety:
        return alpha + 1
    return alpha if static <= alpha - safety else -INFINITY


@kernel
def cut_side(work, static, alpha, beta, depth, level):
    """To which side of the null window ProbCut may leave a node out: 1 above, -1 below, 0 if it has to be searched."""
    screen = CUT_SCREEN * work.cut_deviation[depth, level]
    if static >= beta + screen:
        return 1
    return -1 if static <= alpha - screen else 0


@kernel
def cut_window(bound, side, safety, slope, shift):
    """Lower end of the null window of a shallow search which, from beyond it, the deep one would hardly come back.

    *bound* is the deep search's, on the *side* (1 above, -1 below) to which a node may be left out; *safety*, in units like it,
    is how far beyond it the value that is foretold by *slope* and *shift* has to be.
    """
    bar = np.int64((bound + side * safety - shift) / slope)
    bar = min(max(bar, -INFINITY + 2), INFINITY - 2)
    return bar - 1 if side > 0 else bar


@kernel
def cut_trial(work, net, own, opp, moves, alpha, depth, level, rank):
    """ProbCut's trial at a node with the null window above *alpha*: to which side (0: none is tried), and `cut_window`.

    *moves* are the legal ones, and *rank* is that of the move that led there.
    """
    if not may_cut(work, depth, level):
        return 0, alpha
    static = static_value(work, net, own, opp, moves, level, rank)
    side = cut_side(work, static, alpha, alpha + 1, depth, level)
    safety = work.cut_margin * work.cut_deviation[depth, level]
    bound = alpha + 1 if side > 0 else alpha
    return side, cut_window(bound, side, safety, work.cut_slope[depth], work.cut_shift[depth])


@kernel
def plies_less(work, level, i, lowest, depth):
    """By how much less deep than the others move *i* of a node with a null window is tried; *lowest* is the best move's rank."""
    if work.cut_margin == 0.0 or depth < LATE_DEPTH or level <= depth or i < LATE_MOVE or not uses(work, VALUE_ORDER):
        return 0
    behind = work.rank[level, i] - lowest
    if behind < work.cut_margin * LATE_GAP or work.rank[level, i] >= NOT_RANKED:
        return 0
    return FAR_PLIES if depth >= FAR_DEPTH and behind >= work.cut_margin * FAR_GAP else LATE_PLIES


@kernel
def entered(work):
    """Count a node; whether it may be searched."""
    work.nodes += 1
    if work.nodes > work.node_limit:
        work.stop = 1
    return work.stop == 0


@kernel
def last_ply(work, net, own, opp, moves, alpha, beta):
    """Value to a depth of one ply: no list of moves and no ranks, since what follows is as cheap as a rank.

    First comes the move that refuted the last such position with as many empties, most often a sister: 0.91 of all nodes.
    """
    best, nodes = -INFINITY, work.nodes
    level = empties_of(work, own, opp)
    room, child_room = room_of(work, level), room_of(work, level - 1)
    first = moves & work.killer[level] if uses(work, REPLY_ORDER) else NO_SQUARE
    while moves != NO_SQUARE:
        next_one = first if first != NO_SQUARE else moves
        sq = trailing_zeros(next_one)
        bit = next_one & (~next_one + ONE)
        first, moves = NO_SQUARE, moves ^ bit
        turned = flips(sq, own, opp)
        child_own, child_opp = opp ^ turned, own | turned | bit
        if not entered(work):
            return alpha
        try_move(net, room, sq, turned)
        replies = legal_moves(child_own, child_opp, work.playable)
        if replies == NO_SQUARE and legal_moves(child_opp, child_own, work.playable) == NO_SQUARE:
            value = finished(work, child_own, child_opp)
        else:
            value = units(value_of(net, child_room, level - 1, child_own, child_opp, replies), work.squares)
        best = max(best, -value)
        if best >= beta:
            work.killer[level] = bit
            break
    count_moves(work, work.nodes - nodes)
    return best


@kernel
def leaf(work, net, own, opp):
    """Value of a position that is not searched."""
    moves = legal_moves(own, opp, work.playable)
    if moves == NO_SQUARE and legal_moves(opp, own, work.playable) == NO_SQUARE:
        return finished(work, own, opp)
    level = empties_of(work, own, opp)
    return units(value_of(net, room_of(work, level), level, own, opp, moves), work.squares)


@kernel
def forget_moves(work):
    """Forget what was found in another search: the same one visits the same nodes every time."""
    work.killer[:] = NO_SQUARE
    work.entered_rank = NOT_RANKED


@kernel
def negamax(work, net, own, opp, alpha, beta, depth):
    """Value to *depth* plies if it lies between *alpha* and *beta*; otherwise a bound beyond the one it fails against."""
    begin(net, room_of(work, empties_of(work, own, opp)), own, opp)
    forget_moves(work)
    return descend(work, net, own, opp, alpha, beta, depth)


@kernel
def share_question(work, net, own, opp, alpha, beta, depth, level, known, listed):
    """Let the other threads know what is asked here, and rank all moves at once, since any but the first may be put off.

    False: what is asked on the way here is answered already (`abandon`). *known* moves of the table come first.
    """
    ask(work, own, opp, alpha, beta, depth, level)
    work.abandon = answered_above(work, level)
    if work.abandon:
        return False
    for i in range(known):
        bring_best(work, level, i, listed)
    rank_moves(work, net, own, opp, level, known, listed, depth)
    return True


@kernel
def keep(work, bucket, own, opp, alpha, beta, best, best_sq, depth):
    """Write what a search within the window has found into the table of estimates."""
    lower = best if best > alpha else -INFINITY
    upper = best if best < beta else INFINITY
    store(work.table, bucket, own, opp, lower, upper, best_sq if best > alpha else NO_MOVE, depth, work.generation)


@kernel
def descend(work, net, own, opp, alpha, beta, depth):
    """`negamax` of a position where the evaluator's state stands."""
    rank, work.entered_rank = work.entered_rank, NOT_RANKED
    if not entered(work):
        return alpha
    if depth <= 0:
        return leaf(work, net, own, opp)
    moves = legal_moves(own, opp, work.playable)
    if moves == NO_SQUARE:
        if legal_moves(opp, own, work.playable) == NO_SQUARE:
            return finished(work, own, opp)
        room = room_of(work, empties_of(work, own, opp))
        begin(net, room, opp, own)
        value = -descend(work, net, opp, own, -beta, -alpha, depth)
        begin(net, room, own, opp)
        return value
    if depth == 1:
        return last_ply(work, net, own, opp, moves, alpha, beta)
    null_window = beta - alpha == 1
    if depth == STATIC_DEPTH and null_window and work.cut_margin > 0.0:
        bound = static_bound(work, net, own, opp, moves, alpha, depth, rank)
        if bound > -INFINITY:
            return bound
    first, second, bucket = NO_MOVE, NO_MOVE, 0
    uses_table = work.table != 0 and depth >= TABLE_DEPTH
    if uses_table:
        bucket = bucket_of(own, opp, work.bucket_mask)
        data = probe(work.table, bucket, own, opp)
        if data:
            bound = deciding_bound(data, alpha, beta, depth)
            if bound > -INFINITY:
                return bound
            first, second = move_of(data), second_move_of(data)
    level = empties_of(work, own, opp)
    if null_window:
        side, low = cut_trial(work, net, own, opp, moves, alpha, depth, level, rank)
        if side != 0:
            work.cut_nesting += 1
            work.entered_rank = rank
            value = descend(work, net, own, opp, low, low + 1, work.cut_depth[depth])
            work.cut_nesting -= 1
            if (value > low) == (side > 0):
                return beta if side > 0 else alpha
    listed = list_moves(work, own, opp, moves, level, depth, first, second)
    if uses_table and depth >= LOOK_AHEAD_DEPTH and uses(work, LOOK_AHEAD):
        bound = refuting_child(work, own, opp, level, listed, depth, beta)
        if bound >= beta:
            return bound
    known = (first != NO_MOVE) + (second != NO_MOVE)
    unranked, slot = known, np.int64(-1)
    shared = uses_table and shares(work, depth)
    if shared:
        if not share_question(work, net, own, opp, alpha, beta, depth, level, known, listed):
            return alpha
        unranked = listed
    # behind the table's moves every rank has the child's value in it
    has_values = depth >= EVALUATION_RANK_DEPTH and not shared and uses(work, VALUE_ORDER)
    best, best_sq, bar, lowest = -INFINITY, NO_MOVE, alpha, np.int64(NOT_RANKED)
    for i in range(listed):
        if i == unranked:
            rank_moves(work, net, own, opp, level, known, listed, depth)
        bring_best(work, level, i, listed)
        if i == known:
            lowest = work.rank[level, i]
        if shared and i:
            put_off_busy(work, own, opp, level, i, listed, depth)
        turned, sq = work.turned[level, i], work.square[level, i]
        child_own, child_opp = opp ^ turned, own | turned | ONE << np.uint64(sq)
        if shared:
            slot = set_busy(work.busy, child_own, child_opp, depth)
        after_move(net, room_of(work, level), sq, turned)
        child_rank = work.rank[level, i] if has_values and i >= known else np.int64(NOT_RANKED)
        work.entered_rank = child_rank
        top = beta if i == 0 or not uses(work, NULL_WINDOWS) else bar + 1
        less = plies_less(work, level, i, lowest, depth) if null_window else 0
        value = -descend(work, net, child_own, child_opp, -top, -bar, depth - 1 - less)
        if less and value > bar and not work.abandon:
            work.entered_rank = child_rank
            value = -descend(work, net, child_own, child_opp, -top, -bar, depth - 1)
        if bar < value < beta and top < beta and not work.abandon:
            value = -descend(work, net, child_own, child_opp, -beta, -value, depth - 1)
        if shared:
            set_free(work.busy, slot)
            if work.abandon == level and not work.stop:  # another thread has answered this very question
                work.abandon = 0
                bound = answer(work, level)
                if bound > -INFINITY:
                    return bound
                return descend(work, net, own, opp, alpha, beta, depth)  # its answer is overwritten: once more
            if work.abandon:
                return alpha
        if work.stop:
            return alpha
        if value > best:
            best, best_sq = value, sq
            if uses(work, ALPHA_BETA):  # without, the bar stays where it is, below every value
                bar = max(bar, best)
            if bar >= beta:
                break
    count_moves(work, i + 1)
    if uses_table:
        keep(work, bucket, own, opp, alpha, beta, best, best_sq, depth)
    return best


@kernel
def search_root(works, nets, own, opp, squares, values, alpha, beta, depth, lines):
    """Search the root's moves *squares* in the given order to *depth*; how many were finished before the search was stopped.

    ``values[i]``, at first -INFINITY, is move *i*'s value for the side to move at the root: exact for the best *lines* moves, for
    the others an upper bound. With a value outside the window the caller searches again.
    """
    work, net = works[0], nets[0]
    work.negamax = address_of(negamax, work, net)
    level = empties_of(work, own, opp)
    work.root, work.abandon = level - 1, 0
    room = room_of(work, level)
    begin(net, room, own, opp)
    forget_moves(work)
    shared, later, turn, finished = shares(work, depth), NO_SQUARE, 0, 0
    while turn < squares.size or later != NO_SQUARE:
        i = turn
        if turn >= squares.size:
            i = trailing_zeros(later)
            later &= later - ONE
        turn += 1
        turned = flips(squares[i], own, opp)
        child_own, child_opp = opp ^ turned, own | turned | ONE << np.uint64(squares[i])
        bar = _bar(values, lines, alpha)
        if bar >= beta:
            return finished
        if shared and lines <= i < turn <= squares.size and is_busy(work.busy, child_own, child_opp, depth):
            later |= ONE << np.uint64(i)
            continue
        slot = set_busy(work.busy, child_own, child_opp, depth) if shared else np.int64(-1)
        after_move(net, room, squares[i], turned)
        if i < lines:
            value = -descend(work, net, child_own, child_opp, -beta, -alpha, depth - 1)
        else:
            value = -descend(work, net, child_own, child_opp, -bar - 1, -bar, depth - 1)
            if bar < value < beta:
                value = -descend(work, net, child_own, child_opp, -beta, -bar, depth - 1)
        set_free(work.busy, slot)
        if work.stop:
            return finished
        if turn > squares.size:  # put off: a bound that equals the best value must not stand before moves that have it
            value = min(value, bar - 1) if value <= bar else value
        values[i] = value
        finished += 1
    return finished


def note_negamax(works, nets):
    """Write the address of `negamax` for the evaluator of *nets* into the records of threads that search to the end."""
    none = np.zeros(0, np.int64)
    search_root(works[:1], nets, NO_SQUARE, NO_SQUARE, none, none, 0, 0, 0, 1)
    works["negamax"] = works["negamax"][0]


@kernel
def _bar(values, lines, alpha):
    """The value a further move must beat: the *lines*-th best so far, but at least *alpha*."""
    bar = alpha
    for i in range(values.size):  # few moves, and numba takes seconds to compile a sort
        as_good = 0
        for j in range(values.size):
            as_good += values[j] >= values[i]
        if as_good >= lines:
            bar = max(bar, values[i])
    return bar


@kernel
def table_line(works, own, opp, first, line):
    """Write the legal move *first* and the table's best moves after it into *line*, 64 for a pass; how many it knows."""
    work, sq = works[0], first
    for ply in range(line.size):
        line[ply] = sq
        own, opp = play(sq, own, opp)
        moves = legal_moves(own, opp, work.playable)
        sq = _table_move(work, own, opp) if moves else NO_MOVE
        knows = sq != NO_MOVE and moves >> np.uint64(sq) & ONE
        if not knows and (moves or not legal_moves(opp, own, work.playable)):
            return ply + 1
    return line.size


@kernel
def _table_move(work, own, opp):
    """The table's best move, 64 if it knows none."""
    if work.table == 0:
        return NO_MOVE
    data = probe(work.table, bucket_of(own, opp, work.bucket_mask), own, opp)
    return move_of(data) if data else NO_MOVE
