"""The table of safe discs on an edge, and how it was made.

A disc on an edge can only be turned along that edge. It is *safe* if no sequence of discs of either colour put on the
edge's empty squares, in any order, can turn it. That is decided once for every filling of an edge by `safe_discs` and
kept in ``edge_stability.npy`` (``python -m reversi_env.core.edge_table`` writes it anew).

The table is indexed ``[margin, code]``: the margin is the width of the frame's rim (0, 1, 2 for 8x8, 6x6, 4x4), the
code reads the frame's eight squares as ternary digits (0 empty, 1 own, 2 opponent; square *i* counts ``3**i``). The
entry has bit *i* set where the disc on square *i* is safe, whatever its colour.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

TABLE_FILE = Path(__file__).with_name("edge_stability.npy")
#: ``TERNARY[bits]``: the eight bits read as ternary digits 0 and 1.
TERNARY = np.array([sum(3**i for i in range(8) if bits >> i & 1) for bits in range(256)], np.int64)


def _turned(square: int, mover: int, other: int) -> int:
    """Discs of *other* on the edge that turn when *mover* puts a disc on *square*."""
    flipped = 0
    for step in (1, -1):
        run, at = 0, square + step
        while 0 <= at < 8 and other >> at & 1:
            run |= 1 << at
            at += step
        if 0 <= at < 8 and mover >> at & 1:
            flipped |= run
    return flipped


@cache
def safe_discs(own: int, opp: int, squares: int) -> int:
    """Discs of both colours that no filling of the empty ones among *squares* can turn. All three are eight-bit lines."""
    safe = own | opp
    for square in range(8):
        bit = 1 << square
        if not (squares & ~(own | opp) & bit):
            continue
        flipped = _turned(square, own, opp)
        safe &= ~flipped & safe_discs(own | bit | flipped, opp ^ flipped, squares)
        flipped = _turned(square, opp, own)
        safe &= ~flipped & safe_discs(own ^ flipped, opp | bit | flipped, squares)
    return safe


def build_table() -> np.ndarray:
    """The whole table, from the definition."""
    table = np.zeros((3, 3**8), np.uint8)
    for margin, squares in enumerate((0xFF, 0x7E, 0x3C)):
        for own in range(256):
            for opp in range(256):
                if not own & opp and not (own | opp) & ~squares:
                    table[margin, TERNARY[own] + 2 * TERNARY[opp]] = safe_discs(own, opp, squares)
    return table


EDGE_TABLE = np.load(TABLE_FILE) if TABLE_FILE.exists() else build_table()

if __name__ == "__main__":
    np.save(TABLE_FILE, build_table())
