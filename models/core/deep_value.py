"""The forward pass of a `DeepPatternNet` inside the search: vectors of sums and a small head, no torch and no array.

Every state of every pattern has a row of `WIDTH` whole numbers (int8, `ONE` to 1), and so have the numbers of moves and
of empty squares. The rows of a position are added up. The sums, cut off above and below, go through a layer of `HIDDEN`
units to one number; that and a weighted sum of the sums themselves is the value in discs. Sums and units are LLVM vectors,
which the CPU's registers hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from models.core.pattern_sum import PatternStates
from models.core.pattern_value import COUNTS
from models.core.vectors import REAL, WORD, emit_at_least, emit_chosen, emit_clipped, emit_sum, emit_total, emit_vector
from reversi_env import Rules
from reversi_env.core.bitboard import legal_moves
from reversi_env.core.intrinsics import popcount
from search.core.evaluate import evaluator

#: Numbers that a row has, and units of the head.
WIDTH, HIDDEN = 8, 16
#: A sum goes into the head twice: its part above 0 and its part below, each cut off at 1.
INPUTS = 2 * WIDTH
#: The whole number that stands for 1 in a row.
ONE = 128
#: Rows for the number of empty squares.
EMPTIES = 65
#: Where the parts of a head begin, in numbers: the weights of the sums, those of the units (a row for each input), the
#: units' biases, the weights of their outputs, and a constant.
FIRST = WIDTH
BIAS = FIRST + INPUTS * HIDDEN
SECOND = BIAS + HIDDEN
CONSTANT = SECOND + HIDDEN
HEAD = CONSTANT + 1
#: Empty squares that share rows and a head, by board size.
EMPTIES_A_PHASE = {8: 6, 6: 4, 4: 4}


def phases_of(size: int) -> int:
    """Number of phases; phase *p* has ``p * EMPTIES_A_PHASE`` empties and a few more."""
    return (size * size - 4) // EMPTIES_A_PHASE[size] + 1


DEEP_NET = np.dtype(
    [
        ("deep_rows", np.int64),  # address of the int8 rows
        ("heads", np.int64),  # address of the float32 heads
        ("row_count", np.int64),  # rows of one phase
        ("states", np.int64),  # those of patterns among them
        ("phases", np.int64),
        ("empties_a_phase", np.int64),
        ("squares", np.int64),
        ("playable", np.uint64),
        ("limit", np.float64),  # no value is larger, in discs
    ],
    align=True,
)

ROW, SUMS = ir.VectorType(ir.IntType(8), WIDTH), ir.VectorType(ir.IntType(16), WIDTH)
REALS, UNITS = ir.VectorType(REAL, WIDTH), ir.VectorType(REAL, HIDDEN)


def _emit_sums(builder: ir.IRBuilder, rows: Any, indices: list[Any]) -> Any:
    """The sums of the rows with these numbers, each in units of 1. A hundred rows cannot overflow."""
    total = ir.Constant(SUMS, [0] * WIDTH)
    for index in indices:
        total = builder.add(total, builder.sext(emit_vector(builder, rows, index, ROW), SUMS))
    wide = builder.sext(total, ir.VectorType(ir.IntType(32), WIDTH))
    return builder.fmul(builder.sitofp(wide, REALS), ir.Constant(REALS, [1.0 / ONE] * WIDTH))


def _emit_head(builder: ir.IRBuilder, sums: Any, head: Any) -> Any:
    """The value in discs of these sums."""

    def part(start: int, kind: ir.VectorType) -> Any:
        return emit_vector(builder, builder.add(head, WORD(4 * start)), WORD(0), kind)

    negative = builder.fsub(ir.Constant(REALS, [0.0] * WIDTH), sums)
    products = [
        builder.fmul(emit_chosen(builder, inputs, [k] * HIDDEN), part(FIRST + (side * WIDTH + k) * HIDDEN, UNITS))
        for side, inputs in enumerate((emit_clipped(builder, sums), emit_clipped(builder, negative)))
        for k in range(WIDTH)
    ]
    units = emit_sum(builder, [part(BIAS, UNITS), *products])
    units = emit_at_least(builder, units, 0.0)
    value = emit_total(builder, builder.fmul(units, part(SECOND, UNITS)))
    straight = emit_total(builder, builder.fmul(sums, part(0, REALS)))
    constant = builder.load(builder.inttoptr(builder.add(head, WORD(4 * CONSTANT)), ir.PointerType(REAL)))
    return builder.fadd(builder.fadd(value, straight), constant)


@intrinsic(prefer_literal=True)
def deep_sum(
    typing_context: Any,
    size: Any,
    own: Any,
    opp: Any,
    rows: Any,
    head: Any,
    own_moves: Any,
    opp_moves: Any,
    empties: Any,
) -> Any:
    """The network's output before it is kept within the limit, float32.

    *size* is a literal; *rows* and *head* are the addresses of the phase's rows and head; the last three are the numbers
    of the rows of the two numbers of moves and of the empty squares.
    """
    assert isinstance(size, types.IntegerLiteral), "the size is known when the code is made"
    Rules(size.literal_value)  # a board that exists

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        _, own, opp, rows, head, *counts = args
        states = PatternStates(context, builder, size.literal_value).indices(own, opp)
        return _emit_head(builder, _emit_sums(builder, rows, [*states, *counts]), head)

    board, number = types.uint64, types.int64
    return types.float32(size, board, board, *[number] * 5), codegen


@evaluator(DEEP_NET)
def deep_value(net, own, opp):
    """Value of the position in discs for the side to move."""
    empties = net.squares - popcount(own | opp)
    phase = min(empties // net.empties_a_phase, net.phases - 1)  # a board emptier than the start has the first rows
    rows, head = net.deep_rows + WIDTH * phase * net.row_count, net.heads + 4 * HEAD * phase
    own_moves = net.states + popcount(legal_moves(own, opp, net.playable))
    opp_moves = net.states + COUNTS + popcount(legal_moves(opp, own, net.playable))
    left = net.states + 2 * COUNTS + empties
    if net.squares == 64:
        value = deep_sum(8, own, opp, rows, head, own_moves, opp_moves, left)
    elif net.squares == 36:
        value = deep_sum(6, own, opp, rows, head, own_moves, opp_moves, left)
    else:
        value = deep_sum(4, own, opp, rows, head, own_moves, opp_moves, left)
    return min(max(np.float64(value), -net.limit), net.limit)
