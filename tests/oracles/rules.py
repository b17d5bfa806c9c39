"""The reference implementation: Reversi on a plain matrix, square by square and direction by direction, no bit tricks.

It is slow and simple. A board is an n x n int8 matrix of +1 (side to move), -1 (other side) and 0 (empty). The functions
are plain Python; tests that need millions of positions compile them with numba.
"""

from functools import cache

import numpy as np


def turned_by(board, row, column):
    """Return a list of (row, column) of the discs that a move of the side to move flips."""
    size = board.shape[0]
    flipped = [(0, 0) for _ in range(0)]
    if board[row, column] != 0:
        return flipped
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            if down == 0 and right == 0:
                continue
            run = [(0, 0) for _ in range(0)]
            r, c = row + down, column + right
            while 0 <= r < size and 0 <= c < size and board[r, c] == -1:
                run.append((r, c))
                r, c = r + down, c + right
            if 0 <= r < size and 0 <= c < size and board[r, c] == 1:
                flipped.extend(run)
    return flipped


def legal_squares(board):
    """Return a list of (row, column) of the legal moves, row by row."""
    size = board.shape[0]
    return [(r, c) for r in range(size) for c in range(size) if len(turned_by(board, r, c)) > 0]


def after_move(board, row, column):
    """Return the board after that move, from the side of the other player."""
    result = board.copy()
    for r, c in turned_by(board, row, column):
        result[r, c] = 1
    result[row, column] = 1
    return -result


def is_over(board):
    return len(legal_squares(board)) == 0 and len(legal_squares(-board)) == 0


def final_score(board):
    """Return the disc difference for the side to move; empty squares count for the side with more discs."""
    mine, theirs = (board == 1).sum(), (board == -1).sum()
    empties = board.size - mine - theirs
    if mine > theirs:
        return mine - theirs + empties
    if mine < theirs:
        return mine - theirs - empties
    return 0


def frontier_squares(board):
    """Return own discs that have an empty neighbour."""
    size = board.shape[0]
    frontier = [(0, 0) for _ in range(0)]
    for r in range(size):
        for c in range(size):
            if board[r, c] == 1 and (board[max(r - 1, 0) : r + 2, max(c - 1, 0) : c + 2] == 0).any():
                frontier.append((r, c))
    return frontier


def to_boards(board):
    """Return the matrix as the kernels' two 64-bit boards, in the middle of the 8x8 frame."""
    size = board.shape[0]
    margin = (8 - size) // 2
    own, opp = np.uint64(0), np.uint64(0)
    for r in range(size):
        for c in range(size):
            bit = np.uint64(1) << np.uint64(8 * (r + margin) + c + margin)
            if board[r, c] == 1:
                own |= bit
            elif board[r, c] == -1:
                opp |= bit
    return own, opp


def from_boards(own, opp, size):
    margin = (8 - size) // 2
    board = np.zeros((size, size), np.int8)
    for r in range(size):
        for c in range(size):
            sq = np.uint64(8 * (r + margin) + c + margin)
            board[r, c] = np.int8((own >> sq) & np.uint64(1)) - np.int8((opp >> sq) & np.uint64(1))
    return board


def start_board(size):
    board = np.zeros((size, size), np.int8)
    half = size // 2
    board[half - 1, half - 1] = board[half, half] = -1
    board[half - 1, half] = board[half, half - 1] = 1
    return board


@cache
def safe_on_line(line):
    """Return the indices of the discs of a line (tuple of +1, -1, 0) that no discs on its empty squares can flip."""
    safe = {i for i, disc in enumerate(line) if disc}
    for i, disc in enumerate(line):
        if disc:
            continue
        for colour in (1, -1):
            filled = list(line)
            filled[i] = colour
            for step in (1, -1):
                j, run = i + step, []
                while 0 <= j < len(line) and line[j] == -colour:
                    run.append(j)
                    j += step
                if 0 <= j < len(line) and line[j] == colour:
                    for k in run:
                        filled[k] = colour
            safe &= {j for j in range(len(line)) if filled[j] == line[j]}
            if safe:
                safe &= safe_on_line(tuple(filled))
    return safe


def stable_squares(board):
    """Return own discs that are stable by full lines, line ends and stable neighbours; `safe_on_line` decides the edges."""
    size = board.shape[0]
    last = size - 1
    safe = set()
    for fixed in (0, last):
        safe |= {(fixed, c) for c in safe_on_line(tuple(int(x) for x in board[fixed, :]))}
        safe |= {(r, fixed) for r in safe_on_line(tuple(int(x) for x in board[:, fixed]))}
    safe = {square for square in safe if board[square] == 1}

    def line_is_full(r, c, down, right):
        for sign in (1, -1):
            i, j = r, c
            while 0 <= i <= last and 0 <= j <= last:
                if board[i, j] == 0:
                    return False
                i, j = i + sign * down, j + sign * right
        return True

    def is_safe(r, c):
        on_edge = r in (0, last) or c in (0, last)
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            guarded = not on_edge and ((r + down, c + right) in safe or (r - down, c - right) in safe)
            if not guarded and not line_is_full(r, c, down, right):
                return False
        return True

    while True:
        grown = safe | {(int(r), int(c)) for r, c in zip(*np.nonzero(board == 1), strict=True) if is_safe(r, c)}
        if grown == safe:
            return safe
        safe = grown
