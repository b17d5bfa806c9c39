"""Random games as rows of squares, and rows of squares as tokens.

A row has the squares of a game's moves, without passes, and `END` after them. The functions for one game are also compiled for the
GPU (`train.sequences.gpu`).
"""

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, PASS_SQUARE, legal_moves, play
from reversi_env.kernels.games import next_random, random_square, stream_state
from reversi_env.kernels.parallel import claim_rows, claimed_rows, loop
from reversi_env.kernels.symmetry import mix

#: Moves of the longest game, and the entry of a row after the end of its game.
MAX_MOVES, END = 60, 255
#: One of so many beginnings of games is for validation.
VALIDATION_PARTS = np.uint64(16)


@kernel
def is_for_validation(squares, prefix):
    """Say whether the first *prefix* moves of a game, or all of a shorter one, belong to the validation set."""
    key = NO_SQUARES
    for place in range(min(prefix, len(squares))):
        if squares[place] == END:
            break
        key = mix(key + np.uint64(squares[place]) + ONE)
    return key % VALIDATION_PARTS == NO_SQUARES


@kernel
def random_game(squares, own, opp, playable, seed, number, limit, prefix, validation):
    """Write the first *limit* squares of a uniformly random game, then `END`.

    Beginnings of *prefix* moves are drawn until one belongs to the split. The game depends on (seed, number) and the split.
    """
    state = stream_state(seed, number)
    while True:
        mover, other, count = own, opp, 0
        for place in range(len(squares)):
            squares[place] = END
        while count < limit:
            moves = legal_moves(mover, other, playable)
            if moves == NO_SQUARES:
                mover, other = other, mover
                moves = legal_moves(mover, other, playable)
                if moves == NO_SQUARES:
                    break
            word, state = next_random(state)
            sq = random_square(moves, word)
            squares[count] = sq
            mover, other = play(sq, mover, other)
            count += 1
            if count == prefix and is_for_validation(squares, prefix) != validation:
                break
        if is_for_validation(squares, prefix) == validation:
            return


@loop(grain=16)
def random_games(share, squares, own, opp, playable, seed, numbers, limit, prefix, validation):
    """Write the random games with these *numbers* to the rows of *squares*."""
    while claim_rows(share):
        for i in claimed_rows(share):
            random_game(squares[i], own, opp, playable, seed, numbers[i], limit, prefix, validation)


@kernel
def write_tokens(squares, token_of_square, prefix_tokens, own, opp, playable, tokens):
    """Write the tokens of a game: *prefix_tokens* up to a 0, those of its moves and of its passes if they have one, then 0."""
    at, pass_token = 0, token_of_square[PASS_SQUARE]
    for place in range(len(tokens)):
        tokens[place] = 0
    while prefix_tokens[at] != 0:
        tokens[at] = prefix_tokens[at]
        at += 1
    for place in range(len(squares)):
        sq = squares[place]
        if sq == END:
            break
        if pass_token != 0:
            if legal_moves(own, opp, playable) == NO_SQUARES:
                tokens[at] = pass_token
                at += 1
                own, opp = opp, own
            own, opp = play(np.int64(sq), own, opp)
        tokens[at] = token_of_square[sq]
        at += 1


@loop(grain=64)
def tokens_of_games(share, squares, token_of_square, prefixes, own, opp, playable, first, tokens):
    """Write the tokens of the games from number *first* on; they begin with the rows of *prefixes* in turn."""
    while claim_rows(share):
        for i in claimed_rows(share):
            prefix = prefixes[(first + i) % np.uint64(len(prefixes))]
            write_tokens(squares[i], token_of_square, prefix, own, opp, playable, tokens[i])
