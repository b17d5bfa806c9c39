"""Moves for many games at once: each game keeps its own generator, so that it does not depend on the others."""

from __future__ import annotations

from reversi_env.core.bitboard import NO_SQUARE, legal_moves, play
from reversi_env.core.compiling import kernel
from reversi_env.core.playout import next_random, random_square
from train.core.sampling import chosen_square


@kernel
def choose_best(thread_states, nets, which, own, opp, depth, states, squares):
    """Write the best move by evaluator ``nets[which[i]]`` for every position into *squares*, and move the generators on."""
    thread = thread_states[0]
    for i in range(own.size):
        moves = legal_moves(own[i], opp[i], thread.playable)
        squares[i], states[i] = chosen_square(thread, nets[which[i]], own[i], opp[i], moves, depth, 0.0, states[i])


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
