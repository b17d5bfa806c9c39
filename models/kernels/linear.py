"""The forward pass of a linear `PatternNet` inside the search: table look-ups, no torch.

The weights are integers, `UNITS` per disc, in one block of memory whose address is in the record. A row is a phase: the states of
all patterns, then `COUNTS` weights each for the number of own moves and of the opponent's moves. The last row has the constant for
each number of empty squares.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_jitable

from models.kernels.accumulator import (
    emit_numbers,
    refresh_accumulator,
    states_on_stack,
    update_accumulator,
    update_for_value,
)
from models.kernels.simd import WORD
from reversi_env.kernels.bitboard import legal_moves
from reversi_env.kernels.simd import popcount
from search.kernels.accumulator import IncrementalEvaluator, register_incremental
from search.kernels.evaluate import evaluator

#: Value of one disc.
UNITS = 128
#: Weights for a number of moves; no board has more than 35.
COUNTS = 40

PATTERN_NET = np.dtype(
    [
        ("pattern_weights", np.int64),  # address of the int16 weights
        ("digits", np.int64),  # address of `digit_table`
        ("row", np.int64),  # weights of one phase
        ("states", np.int64),  # weights of pattern states among them
        ("phases", np.int64),
        ("empties_per_phase", np.int64),
        ("square_count", np.int64),
        ("playable", np.uint64),
        ("limit", np.float64),  # maximum value in discs
    ],
    align=True,
)


@register_jitable
def _value_of(net, accumulator, empties, own, opp, moves):
    """Return the value of the position with these states and legal *moves*, in discs for the side to move."""
    phase = min(empties // net.empties_per_phase, net.phases - 1)  # that of the start for emptier boards
    weights = net.pattern_weights + 2 * phase * net.row
    if net.square_count == 64:
        total = pattern_sum(8, accumulator, weights)
    elif net.square_count == 36:
        total = pattern_sum(6, accumulator, weights)
    else:
        total = pattern_sum(4, accumulator, weights)
    total += load_weight(weights, net.states + popcount(moves))
    total += load_weight(weights, net.states + COUNTS + popcount(legal_moves(opp, own, net.playable)))
    total += load_weight(net.pattern_weights, net.phases * net.row + empties)
    return min(max(total / UNITS, -net.limit), net.limit)


register_incremental(
    PATTERN_NET, IncrementalEvaluator(refresh_accumulator, update_accumulator, update_for_value, _value_of)
)


@evaluator(PATTERN_NET)
def pattern_value(net, own, opp):
    moves = legal_moves(own, opp, net.playable)
    empties = net.square_count - popcount(own | opp)
    return _value_of(net, states_on_stack(own, opp, net.digits), empties, own, opp, moves)


def emit_load(builder: ir.IRBuilder, address: Any, index: Any) -> Any:
    pointer = builder.inttoptr(address, ir.PointerType(ir.IntType(16)))
    return builder.sext(builder.load(builder.gep(pointer, [index])), WORD)


@intrinsic(prefer_literal=True)
def pattern_sum(typing_context: Any, size: Any, accumulator: Any, weights: Any) -> Any:
    """Return the sum of the weights of all instances on the board of *size*, a literal.

    *accumulator* is the address of the position's states, *weights* that of the phase's row.
    """

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        _, accumulator, weights = args
        total = WORD(0)
        for state, first in emit_numbers(context, builder, size.literal_value, accumulator):
            total = builder.add(total, emit_load(builder, builder.add(weights, WORD(2 * first)), state))
        return total

    return types.int64(size, types.int64, types.int64), codegen


@intrinsic
def load_weight(typing_context: Any, address: Any, index: Any) -> Any:
    """Return number *index* of the int16 array at *address*, as int64."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return emit_load(builder, *args)

    return types.int64(types.int64, types.int64), codegen
