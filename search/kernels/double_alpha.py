"""Double-Alpha Maximax, the search of report 002: one lower bound per colour, and one function for both sides.

Values are in discs for the side to move. A finished game has the value of all squares for its winner, and 0 if drawn: the report's
utility of ±1, in discs. Evaluations are strictly inside this range. A pass does not reduce the depth.

The table has the values of earlier boards, from White's view, for move ordering only. After M entries it takes no more writes.
Entries of earlier searches count as empty slots, so that it need not be cleared.

``studies/textbook.py`` is the slow reference implementation: same values, moves and node counts.
"""

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, disc_difference, is_over, legal_moves, play
from reversi_env.kernels.simd import popcount, trailing_zeros
from reversi_env.kernels.symmetry import position_hash
from search.kernels.evaluate import evaluate
from search.kernels.thread_state import MAX_MOVES

#: A slot of the table. The array's length is a power of two, at least twice the entries that it may hold.
ENTRY = np.dtype([("black", np.uint64), ("white", np.uint64), ("value", np.float64), ("search", np.int64)], align=True)
#: The record of a search. Lists of moves have a level for each number of empty squares, which no two positions on a path share.
DOUBLE_ALPHA_STATE = np.dtype(
    [
        ("playable", np.uint64),
        ("square_count", np.int64),
        ("sign", np.int64),
        ("nodes", np.int64),
        ("node_limit", np.int64),
        ("stop", np.int64),  # set by other threads, or at the node limit: values are then invalid
        ("estimates", np.int64),  # leaves that were not finished games
        ("search", np.int64),  # number of this search, which its table entries have
        ("stored", np.int64),  # table entries of this search
        ("capacity", np.int64),  # maximum entries: the report's M
        ("tie_order", np.int64, (64,)),  # by square: of equally promising moves the lowest comes first
        ("best", np.int64, (65,)),  # by level: square of the best move
        ("order", np.int64, (65, MAX_MOVES)),  # places of the moves in the lists below, the most promising first
        ("square", np.int64, (65, MAX_MOVES)),
        ("own", np.uint64, (65, MAX_MOVES)),  # boards after the move, of the side to move there
        ("opp", np.uint64, (65, MAX_MOVES)),
        ("in_table", np.int64, (65, MAX_MOVES)),
        ("promise", np.float64, (65, MAX_MOVES)),  # value of the move, from the table or the evaluation
    ],
    align=True,
)


@kernel
def probe(thread, entries, black, white):
    """Return the index of the board's entry, or of the empty slot for it."""
    mask = entries.size - 1
    slot = np.int64(position_hash(black, white) & np.uint64(mask))
    while entries[slot].search == thread.search and (entries[slot].black != black or entries[slot].white != white):
        slot = (slot + 1) & mask
    return slot


@kernel
def store(thread, entries, own, opp, colour, value):
    """Store the value of a position for its side to move, unless the table is full."""
    if thread.stored >= thread.capacity:
        return
    black, white = (own, opp) if colour < 0 else (opp, own)
    slot = probe(thread, entries, black, white)
    entry = entries[slot]
    thread.stored += entry.search != thread.search
    entry.black, entry.white, entry.value, entry.search = black, white, value * colour, thread.search


@kernel
def utility(thread, own, opp):
    """Return the value of a finished game: all squares for the winner."""
    return np.float64(thread.square_count * thread.sign * np.sign(disc_difference(own, opp)))


@kernel
def estimate(thread, net, own, opp):
    """Return the static evaluation, clipped inside the range of proven values."""
    limit = thread.square_count - 0.5
    return min(max(evaluate(net, own, opp), -limit), limit)


@kernel
def static_value(thread, net, own, opp):
    return utility(thread, own, opp) if is_over(own, opp, thread.playable) else estimate(thread, net, own, opp)


@kernel
def precedes(thread, level, i, j):
    """Return whether move *i* is searched before *j*: table values before evaluations, then the higher value."""
    if thread.in_table[level, i] != thread.in_table[level, j]:
        return thread.in_table[level, i] > thread.in_table[level, j]
    if thread.promise[level, i] != thread.promise[level, j]:
        return thread.promise[level, i] > thread.promise[level, j]
    return thread.tie_order[thread.square[level, i]] < thread.tie_order[thread.square[level, j]]


@kernel
def sorted_moves(thread, net, entries, own, opp, colour, moves, level):
    """Write the moves and their order into the lists of this level, and return their number."""
    listed = 0
    while moves != NO_SQUARES:
        sq = trailing_zeros(moves)
        moves &= moves - ONE
        child_own, child_opp = play(sq, own, opp)
        black, white = (child_opp, child_own) if colour < 0 else (child_own, child_opp)
        entry = entries[probe(thread, entries, black, white)]
        in_table = entry.search == thread.search
        thread.square[level, listed], thread.own[level, listed], thread.opp[level, listed] = sq, child_own, child_opp
        thread.in_table[level, listed] = in_table
        thread.promise[level, listed] = (
            entry.value * colour if in_table else -static_value(thread, net, child_own, child_opp)
        )
        place = listed
        while place > 0 and precedes(thread, level, listed, thread.order[level, place - 1]):
            thread.order[level, place] = thread.order[level, place - 1]
            place -= 1
        thread.order[level, place] = listed
        listed += 1
    return listed


@kernel
def best_leaf(thread, net, own, opp, moves, level):
    """Return the value of the best move at depth 1; every child is a node."""
    best = -np.inf
    while moves != NO_SQUARES:
        sq = trailing_zeros(moves)
        moves &= moves - ONE
        child_own, child_opp = play(sq, own, opp)
        thread.nodes += 1
        thread.estimates += not is_over(child_own, child_opp, thread.playable)
        value = -static_value(thread, net, child_own, child_opp)
        if value > best or (value == best and thread.tie_order[sq] < thread.tie_order[thread.best[level]]):
            best, thread.best[level] = value, sq
    return best


@kernel
def maximax(thread, net, entries, own, opp, colour, depth, black_alpha, white_alpha):
    """Return the value for the side to move, *colour* (-1 black, +1 white), to *depth* plies; 0 after a stop.

    The alphas are the lower bounds of both colours, each from its own view. The value is exact between them.
    """
    thread.nodes += 1
    if thread.nodes > thread.node_limit:
        thread.stop = 1
    if thread.stop:
        return 0.0
    moves = legal_moves(own, opp, thread.playable)
    if moves == NO_SQUARES and legal_moves(opp, own, thread.playable) == NO_SQUARES:
        return utility(thread, own, opp)
    if depth == 0:
        thread.estimates += 1
        return estimate(thread, net, own, opp)
    level = thread.square_count - popcount(own | opp)
    if moves == NO_SQUARES:
        value = -maximax(thread, net, entries, opp, own, np.int64(-colour), depth, black_alpha, white_alpha)
        if not thread.stop:
            store(thread, entries, own, opp, colour, value)
        return value
    if depth == 1:
        return best_leaf(thread, net, own, opp, moves, level)
    best = -np.inf
    for place in range(sorted_moves(thread, net, entries, own, opp, colour, moves, level)):
        i = thread.order[level, place]
        child_own, child_opp = thread.own[level, i], thread.opp[level, i]
        value = -maximax(
            thread, net, entries, child_own, child_opp, np.int64(-colour), np.int64(depth - 1), black_alpha, white_alpha
        )
        if thread.stop:
            return 0.0
        store(thread, entries, child_own, child_opp, -colour, -value)
        if value > best:
            best, thread.best[level] = value, thread.square[level, i]
            if colour < 0:
                black_alpha = max(black_alpha, best)
            else:
                white_alpha = max(white_alpha, best)
        if -best <= (white_alpha if colour < 0 else black_alpha):
            break
    return best


@kernel
def search_position(thread_states, nets, entries, own, opp, colour, depth):
    """Return the value to *depth* plies with both alphas at the value of a loss; the record has the best move at its level."""
    lost = -np.float64(thread_states[0].square_count)
    return maximax(thread_states[0], nets[0], entries, own, opp, np.int64(colour), np.int64(depth), lost, lost)
