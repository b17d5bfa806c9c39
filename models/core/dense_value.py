"""The forward pass of a `DenseNet` inside the search: one vector of `HIDDEN` sums, no torch and no array.

The inputs are single bits, so that the first layer is a sum of rows of its matrix: one for every disc and every legal move.
The sums are one LLVM vector, which the CPU's registers hold; a vector is a value like a number, and nothing is allocated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from models.core.vectors import REAL, WORD, emit_clipped, emit_total, emit_vector
from reversi_env.core.bitboard import legal_moves
from search.core.evaluate import evaluator

#: Units of the hidden layer.
HIDDEN = 32
#: Own discs, opponent's discs, own moves, opponent's moves: a number each on all squares of the frame.
PLANES = 4
INPUTS = PLANES * 64

DENSE_NET = np.dtype(
    [
        ("dense_weights", np.int64),  # address of float32: first layer (INPUTS rows), its bias, second layer, its bias
        ("playable", np.uint64),
        ("limit", np.float64),  # no value is larger, in discs
    ],
    align=True,
)

SUMS = ir.VectorType(REAL, HIDDEN)


def _add_rows(builder: ir.IRBuilder, sums: Any, address: Any, board: Any, plane: int) -> None:
    """Add the rows of all squares of *board*, as inputs of *plane*, to the vector that *sums* points to."""
    left = cgutils.alloca_once_value(builder, board)
    with cgutils.loop_nest(builder, (builder.ctpop(board),), WORD):
        bits = builder.load(left)
        sq = builder.cttz(bits, ir.Constant(ir.IntType(1), 1))
        builder.store(builder.and_(bits, builder.sub(bits, WORD(1))), left)
        row = emit_vector(builder, address, builder.add(sq, WORD(64 * plane)), SUMS)
        builder.store(builder.fadd(builder.load(sums), row), sums)


@intrinsic
def dense_sum(typing_context: Any, weights: Any, own: Any, opp: Any, own_moves: Any, opp_moves: Any) -> Any:
    """The network's output before it is kept within the limit, float32; *weights* is the address of its weights."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        address, *boards = args
        sums = cgutils.alloca_once_value(builder, emit_vector(builder, address, WORD(INPUTS), SUMS))
        for plane, board in enumerate(boards):
            _add_rows(builder, sums, address, board, plane)
        hidden = emit_clipped(builder, builder.load(sums), 1)
        total = emit_total(builder, builder.fmul(hidden, emit_vector(builder, address, WORD(INPUTS + 1), SUMS)))
        bias = builder.gep(builder.inttoptr(address, ir.PointerType(REAL)), [WORD((INPUTS + 2) * HIDDEN)])
        return builder.fadd(total, builder.load(bias))

    board = types.uint64
    return types.float32(types.int64, board, board, board, board), codegen


@evaluator(DENSE_NET)
def dense_value(net, own, opp):
    """Value of the position in discs for the side to move."""
    own_moves, opp_moves = legal_moves(own, opp, net.playable), legal_moves(opp, own, net.playable)
    value = np.float64(dense_sum(net.dense_weights, own, opp, own_moves, opp_moves))
    return min(max(value, -net.limit), net.limit)
