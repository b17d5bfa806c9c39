"""Reference implementations of the published heuristics, as in the reports: matrices, square by square, no bit tricks.

A board is an n x n matrix of +1 (side to move), -1 (other side) and 0 (empty), as in `tests.oracles.rules`. Each function
returns the formula's value for the side to move in the variant of its report, with the weights of the report.
"""

from functools import lru_cache

import numpy as np

from tests.oracles import rules as slow


def table(first_quadrant, size):
    """Return the 8x8 table of a report; smaller boards lack its middle rows and columns."""
    quadrant = np.array(first_quadrant, float)
    half = np.concatenate([quadrant, quadrant[:, ::-1]], axis=1)
    whole = np.concatenate([half, half[::-1]])
    kept = [*range(size // 2), *range(8 - size // 2, 8)]
    return whole[np.ix_(kept, kept)]


@lru_cache(maxsize=100_000)
def _moves(squares, size):
    return slow.legal_squares(np.array(squares, np.int8).reshape(size, size))


def moves(board):
    """Return the legal moves of the side to move."""
    return _moves(tuple(int(square) for square in board.ravel()), board.shape[0])


def corners(board):
    last = board.shape[0] - 1
    return [(row, column) for row in (0, last) for column in (0, last)]


def inwards(board, corner):
    """Return the steps (row, column) from a corner along its column, its row and its diagonal."""
    down, right = (1 if at == 0 else -1 for at in corner)
    return [(down, 0), (0, right), (down, right)]


def discs(board):
    return int((board == 1).sum() - (board == -1).sum())


def mobility(board):
    return len(moves(board)) - len(moves(-board))


ADJUSTED = [[-100, 25, -1, -5], [25, 45, -1, -1], [-1, -1, -1, -2], [-5, -1, -2, -1]]
ORIGINAL = [[-500, 50, -1, -5], [50, 45, -1, -1], [-1, -1, -1, -2], [-5, -1, -2, -1]]


def position_stability(board, matrix=ADJUSTED, gamma=0.7):
    position = (table(matrix, board.shape[0]) * board).sum()
    stability = len(slow.stable_squares(-board)) - len(slow.stable_squares(board))
    return gamma * position + (1 - gamma) * 13.5625 * stability


DISK_SQUARES = [[20, -3, 11, 8], [-3, -7, -4, 1], [11, -4, 2, 2], [8, 1, 2, -3]]


def leading(mine, theirs):
    if mine > theirs:
        return 100 * mine / (mine + theirs)
    if mine < theirs:
        return -100 * theirs / (mine + theirs)
    return 0


def six_factor(board):
    disk_squares = (table(DISK_SQUARES, board.shape[0]) * board).sum()
    piece_value = leading((board == 1).sum(), (board == -1).sum())
    frontier_value = -leading(len(slow.frontier_squares(board)), len(slow.frontier_squares(-board)))
    corner_value = 25 * sum(int(board[corner]) for corner in corners(board))
    near = 0
    for corner in corners(board):
        if board[corner] == 0:
            near += sum(int(board[corner[0] + down, corner[1] + right]) for down, right in inwards(board, corner))
    mobility_value = leading(len(moves(board)), len(moves(-board)))
    weighted = 10 * disk_squares + 10 * piece_value + 74.396 * frontier_value + 801.724 * corner_value
    return weighted + 382.026 * -12.5 * near + 78.922 * mobility_value


TEN = [
    *[0.58294678, 0.32422638, 0.30072021, 0.04949951, 0.74310493],
    *[0.26721382, 0.05133057, 0.72602844, -0.12939453, -0.73083496],
]
SIXTEEN = [
    *[0.60791016, 4.04785156, 16.01070404, 5.0, 19.0, 20.0, 17.9804306, 13.0, 12.8125, -18.28742981],
    *[1.0, 0.1, 0.2, 0.6, 0.2, 0.2],
]


def symmetric_table(ten, size):
    a1, b1, c1, d1, b2, c2, d2, c3, d3, d4 = ten
    return table([[a1, b1, c1, d1], [b1, b2, c2, d2], [c1, c2, c3, d3], [d1, d2, d3, d4]], size)


def ten_weight(board, ten=TEN):
    weights = symmetric_table(ten, board.shape[0])
    return -(weights * board).sum() / np.abs(weights).sum()


def edge_stability(board):
    """Return the number of own discs in unbroken runs along the edges from own corners."""
    stable = set()
    for corner in corners(board):
        for down, right in inwards(board, corner)[:2]:
            row, column = corner
            while 0 <= row < board.shape[0] and 0 <= column < board.shape[0] and board[row, column] == 1:
                stable.add((row, column))
                row, column = row + down, column + right
    return len(stable)


def sixteen_weight(board):
    size = board.shape[0]
    weights = symmetric_table(SIXTEEN[:10], size)
    average = np.abs(weights).sum() / board.size
    position = ten_weight(board, SIXTEEN[:10])
    mine, theirs = (sum(weights[move] for move in moves(side)) for side in (board, -board))
    mobility = (mine - theirs) / (12 * average)
    edges = (edge_stability(-board) - edge_stability(board)) / (4 * size - 4)
    rounds = (board != 0).sum()
    stage = SIXTEEN[10:13] if rounds / board.size <= 24 / 64 else SIXTEEN[13:]
    return position * stage[0] + mobility * stage[1] + edges * stage[2]


def four_attribute(board, ply=4):
    own_moves, opponent_moves = moves(board), moves(-board)
    mobility = -1000
    if own_moves:
        mobility = (len(own_moves) - len(opponent_moves)) / (len(own_moves) + len(opponent_moves))
    flips = {square for move in opponent_moves for square in slow.turned_by(-board, *move)}
    stability = -len(flips) + 3 * edge_stability(board)
    count = 0
    for corner in corners(board):
        if board[corner] == 1:
            count += 1
        elif board[corner] == 0:
            for down, right in inwards(board, corner):
                beside, behind = (board[corner[0] + far * down, corner[1] + far * right] for far in (1, 2))
                if beside == 1 and behind == -1:
                    count -= 1
    return ply * discs(board) + 2 * mobility + 8 * count / ply + 8 * stability


CELL_UTILITY = [[25, -5, 14, 10], [-5, -7, -4, 1], [14, -4, 3, 2], [10, 1, 2, -6]]


def cell_utility(board):
    utility = (table(CELL_UTILITY, board.shape[0]) * board).sum()
    parity = discs(board) / (board != 0).sum()
    all_moves = len(moves(board)) + len(moves(-board))
    return utility + parity + (mobility(board) / all_moves if all_moves else 0)


#: The reference implementation and its variant, by name of the evaluator.
REFERENCES = {
    "position-stability": (position_stability, "reversed"),
    "six-factor": (six_factor, "normal"),
    "ten-weight": (ten_weight, "reversed"),
    "sixteen-weight": (sixteen_weight, "reversed"),
    "four-attribute": (four_attribute, "normal"),
    "cell-utility": (cell_utility, "normal"),
    "discs": (discs, "normal"),
    "mobility": (mobility, "normal"),
}
