"""Functions of boards for compiled code of users: evaluators, features, loops.

A board is a uint64 with bit ``sq`` set for a disc on square ``sq`` of the 8x8 frame; *own* is the side to move. These functions are
called from functions that numba compiles (``numba.njit``, ``search.evaluator(compiled=True)``), and from Python with ``np.uint64``.
"""

from reversi_env.kernels.bitboard import flips, frontier, is_over, legal_moves, neighbours, play
from reversi_env.kernels.simd import popcount, trailing_zeros
from reversi_env.kernels.stability import stable_discs

__all__ = [
    "flips",
    "frontier",
    "is_over",
    "legal_moves",
    "neighbours",
    "play",
    "popcount",
    "stable_discs",
    "trailing_zeros",
]
