"""Random games as rows of squares; the functions for one game are also compiled for the GPU (`train.sequences.gpu`)."""

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, PASS_SQUARE, legal_moves, play
from reversi_env.kernels.games import next_random, random_square, stream_state
from reversi_env.kernels.parallel import claim_rows, claimed_rows, loop
from reversi_env.kernels.symmetry import mix

#: Moves and passes of the longest game, and the entry of a row after the end of its game.
MAX_PLIES, END = 119, 255
#: One of so many beginnings of games is for validation.
VALIDATION_PARTS = np.uint64(16)


@kernel
def is_for_validation(squares, prefix):
    """Say whether the first *prefix* moves of a game, or all of a shorter one, belong to the validation set."""
    key, moves = NO_SQUARES, 0
    for ply in range(len(squares)):
        if squares[ply] == END or moves == prefix:
            break
        if squares[ply] != PASS_SQUARE:
            key = mix(key + np.uint64(squares[ply]) + ONE)
            moves += 1
    return key % VALIDATION_PARTS == NO_SQUARES


@kernel
def random_game(squares, number, own, opp, playable, seed, prefix, validation, passes):
    """Write the squares of a uniformly random game, with its passes if *passes*, and then `END`.

    Games are drawn until the first *prefix* moves belong to the split. The result depends on (seed, number) and the split.
    """
    state = stream_state(seed, number)
    while True:
        mover, other, plies, moves = own, opp, 0, 0
        for ply in range(len(squares)):
            squares[ply] = END
        while True:
            legal = legal_moves(mover, other, playable)
            if legal == NO_SQUARES:
                mover, other = other, mover
                legal = legal_moves(mover, other, playable)
                if legal == NO_SQUARES:
                    break
                if passes:
                    squares[plies] = PASS_SQUARE
                    plies += 1
            word, state = next_random(state)
            sq = random_square(legal, word)
            squares[plies] = sq
            mover, other = play(sq, mover, other)
            plies, moves = plies + 1, moves + 1
            if moves == prefix and is_for_validation(squares, prefix) != validation:
                break
        if is_for_validation(squares, prefix) == validation:
            return


@loop(grain=16)
def random_games(share, squares, numbers, own, opp, playable, seed, prefix, validation, passes):
    """Write the random games with these *numbers* to the rows of *squares*."""
    while claim_rows(share):
        for i in claimed_rows(share):
            random_game(squares[i], numbers[i], own, opp, playable, seed, prefix, validation, passes)
