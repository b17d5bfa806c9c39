"""Games as rows of squares and of tokens, and the boards after every token.

Functions with arrays of tokens as arguments are compiled for the GPU as they are (`train.sequences.gpu`); the others are called
there.
"""

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, PASS_SQUARE, bit_of, flips, legal_moves, play
from reversi_env.kernels.games import next_random, random_square, stream_state
from reversi_env.kernels.parallel import claim_rows, claimed_rows, loop
from reversi_env.kernels.symmetry import mix

#: Squares of a row, passes included: a pass comes between two moves.
MAX_SQUARES = 119
#: Entry of a row of squares after the end of its game.
END = 255
#: One of so many beginnings of games is for validation.
VALIDATION_PARTS = np.uint64(16)
#: Words of a board: the side to move, the other side, the discs that the move flipped, and the legal moves.
OWN, OPP, FLIPPED, LEGAL, WORDS = 0, 1, 2, 3, 4


@kernel
def is_for_validation(squares, prefix):
    """Say whether the first *prefix* moves of a game, or all of a shorter one, belong to the validation set."""
    key, moves = NO_SQUARES, 0
    for place in range(len(squares)):
        sq = squares[place]
        if sq == END or moves == prefix:
            break
        if sq != PASS_SQUARE:
            key = mix(key + np.uint64(sq) + ONE)
            moves += 1
    return key % VALIDATION_PARTS == NO_SQUARES


@kernel
def random_game(squares, own, opp, playable, seed, number, limit, prefix, validation):
    """Write the squares and passes of a uniformly random game, then `END`: the first *limit* moves of it.

    Beginnings of *prefix* moves are drawn until one belongs to the split. The game depends on (seed, number) and the split.
    """
    state = stream_state(seed, number)
    while True:
        mover, other, count, moves_made = own, opp, 0, 0
        for place in range(len(squares)):
            squares[place] = END
        while moves_made < limit:
            moves = legal_moves(mover, other, playable)
            if moves != NO_SQUARES:
                word, state = next_random(state)
                sq = random_square(moves, word)
                squares[count] = sq
                moves_made += 1
                if moves_made == prefix and is_for_validation(squares, prefix) != validation:
                    break
            elif legal_moves(other, mover, playable) != NO_SQUARES:
                sq = np.int64(PASS_SQUARE)
                squares[count] = sq
            else:
                break
            mover, other = play(sq, mover, other)
            count += 1
        if is_for_validation(squares, prefix) == validation:
            return


@loop(grain=16)
def random_games(share, squares, own, opp, playable, seed, numbers, limit, prefix, validation):
    """Write the random games with these *numbers* to the rows of *squares*."""
    while claim_rows(share):
        for i in claimed_rows(share):
            random_game(squares[i], own, opp, playable, seed, numbers[i], limit, prefix, validation)


@kernel
def validation_games(squares, prefix):
    """Return which rows of *squares* belong to the validation set."""
    result = np.empty(len(squares), np.bool_)
    for i in range(len(squares)):
        result[i] = is_for_validation(squares[i], prefix)
    return result


@kernel
def stream_states(seed, numbers):
    """Return the generator state of each of the streams *numbers* of *seed*."""
    states = np.empty_like(numbers)
    for i in range(len(numbers)):
        states[i] = stream_state(seed, numbers[i])
    return states


@kernel
def write_tokens(squares, token_of_square, prefix_tokens, tokens):
    """Write the tokens of a game: *prefix_tokens* up to a 0, those of its squares that have one, and 0 after the end."""
    at = 0
    for place in range(len(prefix_tokens)):
        if prefix_tokens[place] == 0:
            break
        tokens[at] = prefix_tokens[place]
        at += 1
    for place in range(len(squares)):
        if squares[place] == END:
            break
        token = token_of_square[squares[place]]
        if token != 0:
            tokens[at] = token
            at += 1
    for rest in range(at, len(tokens)):
        tokens[rest] = 0


@loop(grain=64)
def tokens_of_games(share, squares, token_of_square, prefixes, first, tokens):
    """Write the tokens of the games from number *first* on; they begin with the rows of *prefixes* in turn."""
    while claim_rows(share):
        for i in claimed_rows(share):
            write_tokens(squares[i], token_of_square, prefixes[(first + i) % np.uint64(len(prefixes))], tokens[i])


@kernel
def play_token(board, sq, playable, passes):
    """Play *sq* on a *board* of words, which then is that of the side to move; *passes* are tokens or follow from the moves.

    Return 1 if the other side is to move, 0 if it has no move and the same side moves again, -1 at the end and for an illegal
    *sq*.
    """
    own, opp = board[OWN], board[OPP]
    moves = legal_moves(own, opp, playable)
    if not 0 <= sq <= PASS_SQUARE or (moves & bit_of(sq) == NO_SQUARES) != (sq == PASS_SQUARE and moves == NO_SQUARES):
        board[OWN] = board[OPP] = board[FLIPPED] = board[LEGAL] = NO_SQUARES
        return -1
    board[FLIPPED] = NO_SQUARES if sq == PASS_SQUARE else flips(sq, own, opp)
    own, opp = play(sq, own, opp)
    turn, legal = 1, legal_moves(own, opp, playable)
    if legal == NO_SQUARES:
        replies = legal_moves(opp, own, playable)
        if replies == NO_SQUARES:
            turn = -1
        elif not passes:
            turn, legal, own, opp = 0, replies, opp, own
    board[OWN], board[OPP], board[LEGAL] = own, opp, legal
    return turn


@kernel
def replay_tokens(tokens, square_of_token, own, opp, playable, passes, board, boards, to_move):
    """Write the board after each token, black's discs first, and the side to move: 1 black, -1 white, 0 after the end.

    *square_of_token* has -1 for tokens that are no moves, and other negative numbers for what is no token.
    """
    board[OWN], board[OPP], board[FLIPPED] = own, opp, NO_SQUARES
    board[LEGAL] = legal_moves(own, opp, playable)
    mover, over = 1, False
    for t in range(len(tokens)):
        sq = square_of_token[tokens[t]]
        if over or tokens[t] == 0:
            over = True
            board[OWN] = board[OPP] = board[FLIPPED] = board[LEGAL] = NO_SQUARES
        elif sq != -1:
            turn = play_token(board, sq, playable, passes)
            over = turn < 0
            if turn != 0:
                mover = -mover
        boards[t, 0], boards[t, 1] = (board[OWN], board[OPP]) if mover == 1 else (board[OPP], board[OWN])
        boards[t, FLIPPED], boards[t, LEGAL] = board[FLIPPED], board[LEGAL]
        to_move[t] = 0 if over else mover


@loop(grain=16)
def replay_rows(share, tokens, square_of_token, own, opp, playable, passes, boards, to_move):
    """Replay every row of *tokens*."""
    board = np.empty(WORDS, np.uint64)
    while claim_rows(share):
        for i in claimed_rows(share):
            replay_tokens(tokens[i], square_of_token, own, opp, playable, passes, board, boards[i], to_move[i])
