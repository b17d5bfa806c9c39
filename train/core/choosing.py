"""Moves for many games at once: each game keeps its own generator, so that it does not depend on the others."""

from __future__ import annotations

import numpy as np

from reversi_env.core.bitboard import NO_SQUARE, ONE, final_score, is_over, legal_moves, play
from reversi_env.core.compiling import kernel
from reversi_env.core.intrinsics import trailing_zeros
from reversi_env.core.playout import next_random, random_square
from search.core.evaluate import evaluate
from search.core.midgame import INFINITY, UNIT, negamax
from train.core.sampling import below


@kernel
def best_square(work, net, own, opp, depth, state):
    """The best move by a search of *depth* plies, the move itself included, equal ones by lot; the generator's next state.

    Beyond depth 1 a move is only asked whether it comes up to the best so far: a worse one gets a bound.
    """
    moves = legal_moves(own, opp, work.playable)
    best, best_sq, ties = -np.inf, trailing_zeros(moves), 0
    while moves != NO_SQUARE:
        sq = trailing_zeros(moves)
        moves &= moves - ONE
        next_own, next_opp = play(sq, own, opp)
        if depth > 1:
            floor = -INFINITY if ties == 0 else np.int64(best) - 1
            value = np.float64(
                -negamax(work, net, next_own, next_opp, np.int64(-INFINITY), -floor, np.int64(depth - 1))
            )
        elif is_over(next_own, next_opp, work.playable):
            value = -np.float64(UNIT * work.sign * final_score(next_own, next_opp, work.playable))
        else:
            value = -UNIT * np.float64(evaluate(net, next_own, next_opp))
        if value > best:
            best, best_sq, ties = value, sq, 1
        elif value == best:
            ties += 1
            word, state = next_random(state)
            if below(word, ties) == 0:
                best_sq = sq
    return best_sq, state


@kernel
def choose_best(works, nets, which, own, opp, depth, states, squares):
    """Write the move of evaluator ``nets[which[i]]`` for every position into *squares*, and move the generators on."""
    work = works[0]
    for i in range(own.size):
        squares[i], states[i] = best_square(work, nets[which[i]], own[i], opp[i], depth, states[i])


@kernel
def choose_at_random(own, opp, playable, states, squares):
    """Write a uniformly random legal move for every position into *squares*, and move the generators on."""
    for i in range(own.size):
        word, state = next_random(states[i])
        squares[i] = random_square(legal_moves(own[i], opp[i], playable), word)
        states[i] = state


@kernel
def advance(own, opp, squares, playable, passed, over):
    """Play ``squares[i]``, then pass if the next side must (``passed[i]``): boards of the side that has a move, or ``over[i]``."""
    for i in range(own.size):
        next_own, next_opp = play(squares[i], own[i], opp[i])
        passed[i], over[i] = False, False
        if legal_moves(next_own, next_opp, playable) == NO_SQUARE:
            if legal_moves(next_opp, next_own, playable) == NO_SQUARE:
                over[i] = True
            else:
                passed[i] = True
                next_own, next_opp = next_opp, next_own
        own[i], opp[i] = next_own, next_opp
