"""The rows of many positions for training on a CPU: `PatternNetwork.features` as a compiled kernel."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from models.kernels.accumulator import emit_numbers, states_on_stack
from models.kernels.linear import COUNTS
from models.kernels.simd import WORD
from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import legal_moves
from reversi_env.kernels.simd import popcount


@intrinsic(prefer_literal=True)
def store_numbers(typing_context: Any, size: Any, accumulator: Any, address: Any) -> Any:
    """Write the numbers of all instances' states on the board of *size*, a literal, to the int32 array at *address*.

    *accumulator* is the address of the position's states.
    """

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        _, accumulator, address = args
        number = ir.IntType(32)
        array = builder.inttoptr(address, ir.PointerType(number))
        for k, (state, first) in enumerate(emit_numbers(context, builder, size.literal_value, accumulator)):
            index = builder.add(builder.trunc(state, number), number(first))
            builder.store(index, builder.gep(array, [WORD(k)]))
        return context.get_dummy_value()

    return types.none(size, types.int64, types.int64), codegen


@kernel
def write_rows(squares, playable, own, opp, digits, tied, weights, instances, out):
    """Write the numbers of the rows of every position into ``out[i]``: *instances* of patterns, own moves, opponent's moves.

    *digits* is the board's `digit_table`, *weights* the number of rows of patterns. An array with one more column also gets the
    row of the number of empty squares.
    """
    states = np.zeros(64, np.int32)
    for i in range(own.size):
        accumulator = states_on_stack(own[i], opp[i], digits.ctypes.data)
        if squares == 64:
            store_numbers(8, accumulator, states.ctypes.data)
        elif squares == 36:
            store_numbers(6, accumulator, states.ctypes.data)
        else:
            store_numbers(4, accumulator, states.ctypes.data)
        for j in range(instances):
            out[i, j] = tied[states[j]]
        out[i, instances] = weights + popcount(legal_moves(own[i], opp[i], playable))
        out[i, instances + 1] = weights + COUNTS + popcount(legal_moves(opp[i], own[i], playable))
        if out.shape[1] > instances + 2:
            out[i, instances + 2] = weights + 2 * COUNTS + squares - popcount(own[i] | opp[i])
