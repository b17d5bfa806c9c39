"""Legal moves by round in random games, under the rules and under report 002's mistake; and nodes of a plain search."""

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, final_score, legal_moves, play
from reversi_env.kernels.games import next_random, random_square, stream_state
from reversi_env.kernels.parallel import claim_rows, claimed_rows, loop
from reversi_env.kernels.simd import popcount, trailing_zeros
from search.kernels.evaluate import INFINITY, UNIT, evaluate, units

#: Rounds, that is numbers of discs, of the largest board.
ROUNDS = 65
_ROW_STEPS = np.array([-1, -1, -1, 0, 0, 1, 1, 1])
_COLUMN_STEPS = np.array([-1, 0, 1, -1, 1, -1, 0, 1])


@kernel
def first_line_flips(sq, own, opp):
    """Return the discs flipped in the first direction that flips any, row by row from the top left: report 002's mistake."""
    for direction in range(8):
        row, column = sq // 8 + _ROW_STEPS[direction], sq % 8 + _COLUMN_STEPS[direction]
        flipped = NO_SQUARES
        while 0 <= row < 8 and 0 <= column < 8:
            bit = ONE << np.uint64(8 * row + column)
            if opp & bit != NO_SQUARES:
                flipped |= bit
            elif own & bit != NO_SQUARES and flipped != NO_SQUARES:
                return flipped
            else:
                break
            row += _ROW_STEPS[direction]
            column += _COLUMN_STEPS[direction]
    return NO_SQUARES


@kernel
def _count_game(mover, other, playable, state, one_line, moves, visits):
    """Play one random game, counting moves and visits by number of discs; return the number of discs placed."""
    length = 0
    while True:
        discs = popcount(mover | other)
        legal = legal_moves(mover, other, playable)
        if legal == NO_SQUARES and legal_moves(other, mover, playable) == NO_SQUARES:
            return length
        visits[discs] += 1
        if legal == NO_SQUARES:
            mover, other = other, mover
            continue
        moves[discs] += popcount(legal)
        length += 1
        word, state = next_random(state)
        sq = random_square(legal, word)
        if one_line:
            flipped = first_line_flips(sq, mover, other)
            mover, other = other ^ flipped, mover | flipped | ONE << np.uint64(sq)
        else:
            mover, other = play(sq, mover, other)


@loop(grain=1)
def count_breadths(share, own, opp, playable, games, seed, one_line, moves, visits, lengths):
    """Play as many groups of *games* random games as *moves* has rows; game *i* of all depends on (seed, i) only.

    ``moves[g, r]`` is the number of legal moves in all positions with *r* discs of group *g*'s games, ``visits[g, r]``
    the number of those positions: one for each time that a side is asked for a move, so that a pass is a visit with no
    moves, and the end of the game is none. ``lengths[g]`` counts the discs placed. With *one_line* the rules are those
    of `first_line_flips`.
    """
    while claim_rows(share):
        for group in claimed_rows(share):
            for game in range(games):
                state = stream_state(seed, group * np.uint64(games) + np.uint64(game))
                lengths[group] += _count_game(own, opp, playable, state, one_line, moves[group], visits[group])


@kernel
def _search(net, own, opp, playable, sign, alpha, beta, depth, prunes, counts):
    """Return the value to *depth* plies in UNITs, and count; a pass is a node and costs no depth."""
    counts[0] += 1
    moves = legal_moves(own, opp, playable)
    if moves == NO_SQUARES and legal_moves(opp, own, playable) == NO_SQUARES:
        return UNIT * sign * final_score(own, opp, playable)
    if depth == 0:
        return units(evaluate(net, own, opp), popcount(playable))
    if moves == NO_SQUARES:
        return -_search(net, opp, own, playable, sign, -beta, -alpha, depth, prunes, counts)
    best = np.int64(-INFINITY)
    counts[1] += 1
    while moves != NO_SQUARES and not (prunes and best >= beta):
        child_own, child_opp = play(trailing_zeros(moves), own, opp)
        moves &= moves - ONE
        counts[2] += 1
        low = max(alpha, best) if prunes else alpha
        value = -_search(net, child_own, child_opp, playable, sign, -beta, -low, np.int64(depth - 1), prunes, counts)
        best = max(best, value)
    return best


@loop(grain=1)
def count_trees(share, nets, own, opp, playable, sign, depth, prunes, counts):
    """Search every position in board order, and write nodes, inner nodes, moves searched there and the value."""
    low, high = np.int64(-INFINITY), np.int64(INFINITY)
    while claim_rows(share):
        for row in claimed_rows(share):
            mine = counts[row]
            mine[3] = _search(nets[0], own[row], opp[row], playable, sign, low, high, depth, prunes, mine)
