"""Reference labels of token sequences on a plain matrix. `label_row` and `tests.oracles.rules` also compile with numba."""

import numpy as np

from tests.oracles import rules


def token_matrix(size):
    """Return the token of every square: 1, 2, … row by row, 0 in the centre."""
    has_token, middle = np.ones((size, size), np.int64), slice(size // 2 - 1, size // 2 + 1)
    has_token[middle, middle] = 0
    return has_token.cumsum().reshape(size, size) * has_token


def label_row(tokens, token_at, first, passed, board, legal, flipped, to_move):
    """Write the labels after each token; return the index of an illegal token or -1. *passed*: the pass token, or 0."""
    position, colour, over = rules.start_board(token_at.shape[0]), 1, False
    moves = rules.legal_squares(position)
    for t in range(len(tokens)):
        if over:
            if tokens[t] != 0:
                return t
            continue
        if t >= first:
            if len(moves) == 0:
                if tokens[t] != passed:
                    return t
                position = -position
            else:
                row, column = -1, -1
                for r, c in moves:
                    if token_at[r, c] == tokens[t]:
                        row, column = r, c
                if row < 0:
                    return t
                for r, c in rules.turned_by(position, row, column):
                    flipped[t, r, c] = True
                position = rules.after_move(position, row, column)
            colour, moves = -colour, rules.legal_squares(position)
            if len(moves) == 0:
                replies = rules.legal_squares(-position)
                if len(replies) == 0:
                    over = True
                elif passed == 0:
                    position, colour, moves = -position, -colour, replies
        board[t] = position * colour
        to_move[t] = 0 if over else colour
        for r, c in moves:
            legal[t, r, c] = True
    return -1 if over else len(tokens)


def label_rows(tokens, size, vocabulary, label_row=label_row):
    """Return the labels of all games by name; every game must be legal and complete."""
    shape = (*tokens.shape, size, size)
    board, to_move = np.zeros(shape, np.int8), np.zeros(tokens.shape, np.int8)
    legal, flipped = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    passed, first = (size**2 - 3) * vocabulary.passes, vocabulary.bos + vocabulary.variants
    for i, row in enumerate(tokens):
        assert label_row(row, token_matrix(size), first, passed, board[i], legal[i], flipped[i], to_move[i]) == -1, row
    labels = {"board": board, "relative": board * to_move[..., None, None], "legal": legal, "flipped": flipped}
    labels = {name: label.reshape(*tokens.shape, -1) for name, label in labels.items()}
    parity = ((board == 0).sum((2, 3)) % 2 * (board != 0).any((2, 3))).astype(np.int8)
    return labels | {"mobility": legal.sum((2, 3)).astype(np.int8), "parity": parity, "to_move": to_move}
