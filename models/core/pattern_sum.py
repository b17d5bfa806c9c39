"""The sum of a position's pattern weights, as code generated for a board size."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from models.core.pattern_states import emit_numbers
from models.core.vectors import WORD
from reversi_env import Rules


def emit_load(builder: ir.IRBuilder, address: Any, index: Any) -> Any:
    """Code for number *index* of the int16 array at *address*, as int64."""
    pointer = builder.inttoptr(address, ir.PointerType(ir.IntType(16)))
    return builder.sext(builder.load(builder.gep(pointer, [index])), WORD)


@intrinsic(prefer_literal=True)
def pattern_sum(typing_context: Any, size: Any, accumulator: Any, weights: Any) -> Any:
    """Sum of the weights of all instances on the board of *size*, a literal.

    *accumulator* is the address of the position's states, *weights* that of the phase's row.
    """
    assert isinstance(size, types.IntegerLiteral), "the size is known when the code is made"
    Rules(size.literal_value)  # a board that exists

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        _, accumulator, weights = args
        total = WORD(0)
        for state, first in emit_numbers(context, builder, size.literal_value, accumulator):
            total = builder.add(total, emit_load(builder, builder.add(weights, WORD(2 * first)), state))
        return total

    return types.int64(size, types.int64, types.int64), codegen


@intrinsic
def load_weight(typing_context: Any, address: Any, index: Any) -> Any:
    """Number *index* of the int16 array at *address*, as int64."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return emit_load(builder, *args)

    return types.int64(types.int64, types.int64), codegen
