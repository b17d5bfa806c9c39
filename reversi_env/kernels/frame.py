"""The 8x8 frame as numbers: squares, axes, rays and line masks that the kernels read.

A square `sq` is 0-63, a1 = 0 at the top left, row by row. Smaller boards sit centred in the frame, with a rim around
them that no disc can enter; nothing here depends on the size.
"""

import numpy as np

from reversi_env.rules import FRAME

ALL_SQUARES = 0xFFFF_FFFF_FFFF_FFFF
#: Columns b to g: discs that can stand inside a run without a horizontal or diagonal shift wrapping round the frame.
INNER_COLUMNS = 0x7E7E_7E7E_7E7E_7E7E

#: Bit distance to the next square along the four axes: row, column, anti-diagonal, main diagonal.
AXIS_STEPS = np.array([1, 8, 7, 9], np.uint64)
#: Discs that can stand inside a run along each axis.
AXIS_MASKS = np.array([INNER_COLUMNS, ALL_SQUARES, INNER_COLUMNS, INNER_COLUMNS], np.uint64)
#: (row, column) steps of the same axes; the opposite direction is the negated pair.
AXIS_DIRECTIONS = ((0, 1), (1, 0), (1, -1), (1, 1))


def squares_from(sq: int, direction: tuple[int, int], stride: int = 1) -> list[int]:
    """Squares met when walking from *sq* (itself excluded) to the frame's border."""
    row, column = divmod(sq, FRAME)
    met: list[int] = []
    while True:
        row, column = row + stride * direction[0], column + stride * direction[1]
        if not (0 <= row < FRAME and 0 <= column < FRAME):
            return met
        met.append(FRAME * row + column)


def board_of(squares: list[int]) -> int:
    """The board with exactly these squares set."""
    return sum(1 << sq for sq in squares)


def squares_of(board: int) -> list[int]:
    """The squares that are set, lowest first."""
    squares = []
    while board:
        lowest = board & -board
        squares.append(lowest.bit_length() - 1)
        board ^= lowest
    return squares


def _rays() -> np.ndarray:
    """``rays[sq]``: the four rays towards higher squares, then the four towards lower squares, in the order of the axes."""
    upwards = list(AXIS_DIRECTIONS)
    downwards = [(-rows, -columns) for rows, columns in AXIS_DIRECTIONS]
    return np.array(
        [[board_of(squares_from(sq, direction)) for direction in upwards + downwards] for sq in range(64)], np.uint64
    )


def _beyond_border(axis: int, stride: int, sign: int) -> int:
    """Squares whose neighbour *stride* steps away along the axis (in the direction of *sign*) lies outside the frame."""
    rows, columns = AXIS_DIRECTIONS[axis]
    direction = (sign * rows, sign * columns)
    return board_of([sq for sq in range(64) if not squares_from(sq, direction, stride)])


RAYS = _rays()
#: ``BEYOND_BORDER[axis, k, d]``: squares with no neighbour ``2**k`` steps up (d = 0) or down (d = 1) the axis.
BEYOND_BORDER = np.array(
    [[[_beyond_border(axis, 1 << k, sign) for sign in (1, -1)] for k in range(3)] for axis in range(4)], np.uint64
)
