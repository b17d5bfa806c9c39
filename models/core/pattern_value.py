"""The forward pass of a linear `PatternNet` inside the search: table look-ups, no torch.

The weights are whole numbers, `UNITS` to a disc, in one block of memory whose address the record holds. One phase is a
row: the states of all patterns, then `COUNTS` weights each for the number of own moves and of the opponent's moves. A
last row has the constant for each number of empty squares.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.cpu import CPUContext
from numba.extending import intrinsic

from reversi_env.core.bitboard import legal_moves
from reversi_env.core.compiling import kernel
from reversi_env.core.intrinsics import popcount
from reversi_env.core.symmetry import mirror_columns, mirror_rows, transpose
from search.core.evaluate import evaluator

#: Value of one disc.
UNITS = 128
#: Weights for a number of moves; no board has more than 35.
COUNTS = 40
MOST_PATTERNS, MOST_INSTANCES = 16, 80
#: Steps of the portable `packed_bits`.
STEPS = 6
#: ``TERNARY[bits]``: the number whose base-3 digits are the bits.
TERNARY = np.array([int(f"{bits:b}", 3) for bits in range(1 << 10)], np.int32)

PATTERN_NET = np.dtype(
    [
        ("pattern_weights", np.int64),  # address of the int16 weights
        ("row", np.int64),  # weights of one phase
        ("states", np.int64),  # those of patterns among them
        ("phases", np.int64),
        ("empties_a_phase", np.int64),
        ("squares", np.int64),
        ("playable", np.uint64),
        ("limit", np.float64),  # no value is larger, in discs
        ("first_instance", np.int64, (9,)),  # by symmetry
        ("instance_pattern", np.int64, (MOST_INSTANCES,)),
        ("pattern_mask", np.uint64, (MOST_PATTERNS,)),
        ("pattern_offset", np.int64, (MOST_PATTERNS,)),
        ("pattern_steps", np.uint64, (MOST_PATTERNS, STEPS)),
    ],
    align=True,
)


def packing_steps(mask: int) -> list[int]:
    """The masks of bits to be moved by 1, 2, 4, … places so that the bits of *mask* come together at the bottom."""
    steps = []
    todo, gaps = mask, ~mask << 1 & (1 << 64) - 1
    for step in range(STEPS):
        prefix = gaps
        for shift in (1, 2, 4, 8, 16, 32):
            prefix ^= prefix << shift & (1 << 64) - 1
        moving = prefix & todo
        steps.append(moving)
        todo = (todo ^ moving) | (moving >> (1 << step))
        gaps &= ~prefix
    return steps


def packed_bits_portable(board: np.uint64, mask: np.uint64, steps: Any) -> np.uint64:
    """The bits of *board* on the squares of *mask*, lowest first, as a number; *steps* as `packing_steps` has them."""
    board &= mask
    for step in range(STEPS):
        moving = board & steps[step]
        board = (board ^ moving) | (moving >> np.uint64(1 << step))
    return board


@intrinsic
def packed_bits(typing_context: Any, board: Any, mask: Any, steps: Any) -> Any:
    """`packed_bits_portable`, in one instruction where the CPU has BMI2."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if isinstance(context, CPUContext) and "+bmi2" in context.codegen().magic_tuple()[2]:
            word = ir.IntType(64)
            pext = builder.module.declare_intrinsic("llvm.x86.bmi.pext.64", (), ir.FunctionType(word, [word, word]))
            return builder.call(pext, args[:2])
        return context.compile_internal(builder, packed_bits_portable, signature, args)

    return types.uint64(types.uint64, types.uint64, steps), codegen


@intrinsic
def load_weight(typing_context: Any, address: Any, index: Any) -> Any:
    """Number *index* of the int16 array at *address*, as int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.PointerType(ir.IntType(16)))
        return builder.sext(builder.load(builder.gep(pointer, [args[1]])), ir.IntType(64))

    return types.int64(types.int64, types.int64), codegen


@kernel
def _image_sum(net, own, opp, symmetry, weights):
    """Sum of the weights of all instances of one symmetry; the boards have undergone it, *weights* is the phase's address."""
    total = 0
    for i in range(net.first_instance[symmetry], net.first_instance[symmetry + 1]):
        pattern = net.instance_pattern[i]
        mask, steps = net.pattern_mask[pattern], net.pattern_steps[pattern]
        state = TERNARY[packed_bits(own, mask, steps)] + 2 * TERNARY[packed_bits(opp, mask, steps)]
        total += load_weight(weights, net.pattern_offset[pattern] + state)
    return total


@kernel
def pattern_sum(net, own, opp, weights):
    """Sum of the weights of all instances, in the order of symmetries that `reversi_env.core.symmetry` numbers."""
    total = _image_sum(net, own, opp, 0, weights)
    own_down, opp_down = mirror_rows(own), mirror_rows(opp)
    total += _image_sum(net, own_down, opp_down, 1, weights)
    own_over, opp_over = mirror_columns(own), mirror_columns(opp)
    total += _image_sum(net, own_over, opp_over, 2, weights)
    own_both, opp_both = mirror_rows(own_over), mirror_rows(opp_over)
    total += _image_sum(net, own_both, opp_both, 3, weights)
    total += _image_sum(net, transpose(own), transpose(opp), 4, weights)
    total += _image_sum(net, transpose(own_down), transpose(opp_down), 5, weights)
    total += _image_sum(net, transpose(own_over), transpose(opp_over), 6, weights)
    return total + _image_sum(net, transpose(own_both), transpose(opp_both), 7, weights)


@evaluator(PATTERN_NET)
def pattern_value(net, own, opp):
    """Value of the position in discs for the side to move."""
    empties = net.squares - popcount(own | opp)
    phase = empties // net.empties_a_phase
    weights = net.pattern_weights + 2 * phase * net.row
    total = pattern_sum(net, own, opp, weights)
    total += load_weight(weights, net.states + popcount(legal_moves(own, opp, net.playable)))
    total += load_weight(weights, net.states + COUNTS + popcount(legal_moves(opp, own, net.playable)))
    total += load_weight(net.pattern_weights, net.phases * net.row + empties)
    return min(max(total / UNITS, -net.limit), net.limit)
