"""Discs that can never be flipped again.

`stable_discs` is a lower bound: every disc in the result is safe for the rest of the game, but there may be more. A disc is
safe if, along each of the four axes, the line through it is full, or it stands at the line's end, or the next disc along
the axis is a safe disc of its own colour. Edges are decided exactly by table.
"""

import io
from pathlib import Path

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, neighbours
from reversi_env.kernels.frame import AXIS_STEPS, BEYOND_BORDER
from reversi_env.kernels.simd import trailing_zeros
from reversi_env.storage.packaged import packaged_bytes

FIRST_COLUMN = np.uint64(0x0101_0101_0101_0101)
COLUMN_TO_ROW = np.uint64(0x0102_0408_1020_4080)
TOP_BITS = np.uint64(56)
LINE = np.uint64(0xFF)
FRAME_BORDER = np.uint64(0xFF81_8181_8181_81FF)
#: ``TERNARY[bits]``: the eight bits read as ternary digits 0 and 1.
TERNARY = np.array([sum(3**i for i in range(8) if bits >> i & 1) for bits in range(256)], np.int64)
#: ``EDGE_TABLE[margin, TERNARY[own] + 2 * TERNARY[opp]]``: discs on an edge that no filling of its empty squares can
#: flip, eight bits. `safe_on_line` (`tests/oracles/rules.py`) computes the same.
EDGE_TABLE = np.load(io.BytesIO(packaged_bytes(Path(__file__).with_name("edge_stability.npy"))))


@kernel
def _row(board, row):
    return (board >> np.uint64(8 * row)) & LINE


@kernel
def _column(board, column):
    """The column's eight squares as a line, the top square lowest."""
    return (((board >> np.uint64(column)) & FIRST_COLUMN) * COLUMN_TO_ROW) >> TOP_BITS


@kernel
def _as_column(line, column):
    """The line laid down the column, its lowest bit at the top."""
    first_seven = ((line & np.uint64(0x7F)) * np.uint64(0x0002_0408_1020_4081)) & FIRST_COLUMN
    return (first_seven | (line >> np.uint64(7)) << TOP_BITS) << np.uint64(column)


@kernel
def _safe_on_edge(own_line, opp_line, margin):
    return np.uint64(EDGE_TABLE[margin, TERNARY[own_line] + 2 * TERNARY[opp_line]])


@kernel
def stable_on_edges(own, opp, playable):
    """Discs of both colours that are safe by the edge table alone."""
    margin = trailing_zeros(playable) // 9
    safe = NO_SQUARES
    for edge in (margin, 7 - margin):
        safe |= _safe_on_edge(_row(own, edge), _row(opp, edge), margin) << np.uint64(8 * edge)
        safe |= _as_column(_safe_on_edge(_column(own, edge), _column(opp, edge), margin), edge)
    return safe


@kernel
def _full_along(filled, axis):
    """Squares whose whole line along the axis is filled."""
    step = AXIS_STEPS[axis]
    full_up = filled
    full_down = filled
    for k in range(3):
        distance = step << np.uint64(k)
        full_up &= BEYOND_BORDER[axis, k, 0] | (full_up >> distance)
        full_down &= BEYOND_BORDER[axis, k, 1] | (full_down << distance)
    return full_up & full_down


@kernel
def _interior(playable):
    """Squares of the board that are not on its edge: all eight neighbours are on the board too."""
    return playable & ~FRAME_BORDER & ~neighbours(~playable)


@kernel
def stable_discs(own, opp, playable):
    """Own discs that are proven safe for the rest of the game (a lower bound)."""
    filled = own | opp | ~playable
    full_row = _full_along(filled, 0)
    full_column = _full_along(filled, 1)
    full_anti = _full_along(filled, 2)
    full_main = _full_along(filled, 3)
    safe = own & (stable_on_edges(own, opp, playable) | (full_row & full_column & full_anti & full_main))
    inner = own & _interior(playable)
    while True:
        row = full_row | (safe << np.uint64(1)) | (safe >> np.uint64(1))
        column = full_column | (safe << np.uint64(8)) | (safe >> np.uint64(8))
        anti = full_anti | (safe << np.uint64(7)) | (safe >> np.uint64(7))
        main = full_main | (safe << np.uint64(9)) | (safe >> np.uint64(9))
        grown = safe | (inner & row & column & anti & main)
        if grown == safe:
            return safe
        safe = grown
