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
from numba.extending import intrinsic, register_jitable

from models.core.carried_states import after_move, begin, try_move
from models.core.pattern_states import emit_numbers, states_on_stack
from models.core.pattern_value import COUNTS
from models.core.vectors import (
    REAL,
    WORD,
    emit_at_least,
    emit_chosen,
    emit_limited,
    emit_product_added,
    emit_sum,
    emit_total,
    emit_vector,
)
from reversi_env.core.bitboard import legal_moves
from reversi_env.core.intrinsics import emit_run_ends, popcount
from reversi_env.rules import SIZES
from search.core.carried import Carried, carries
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

DEEP_NET = np.dtype(
    [
        ("deep_rows", np.int64, (EMPTIES,)),  # addresses of the int8 rows and the float32 heads, by empties
        ("heads", np.int64, (EMPTIES,)),
        ("digits", np.int64),  # address of `digit_table`
        ("states", np.int64),  # rows of patterns
        ("squares", np.int64),
        ("playable", np.uint64),
        ("limit", np.float64),  # no value is larger, in discs
    ],
    align=True,
)

ROW, SUMS, REALS = ir.VectorType(ir.IntType(8), WIDTH), ir.VectorType(ir.IntType(16), WIDTH), ir.VectorType(REAL, WIDTH)
#: Chains of multiplications and additions that go on side by side.
CHAINS = 4


def heads_for_sums(heads: np.ndarray) -> np.ndarray:
    """Heads for inputs that are whole numbers, `ONE` to 1, as the sums are."""
    scaled = np.array(heads, np.float32, order="C")
    scaled[:, :BIAS] /= ONE
    return scaled


def _emit_sums(builder: ir.IRBuilder, rows: Any, numbers: list[tuple[Any, int]]) -> Any:
    """The sums of the rows with these numbers, of which the second part is known. A hundred rows cannot overflow."""
    places = [(builder.add(rows, WORD(WIDTH * first)), number) for number, first in numbers]
    vectors = [builder.sext(emit_vector(builder, start, number, ROW), SUMS) for start, number in places]
    return emit_sum(vectors, builder.add)


def _emit_reals(builder: ir.IRBuilder, head: Any, start: int) -> Any:
    """Numbers *start* … *start* + WIDTH - 1 of the head."""
    return emit_vector(builder, builder.add(head, WORD(4 * start)), WORD(0), REALS)


def _emit_real(builder: ir.IRBuilder, sums: Any) -> Any:
    return builder.sitofp(builder.sext(sums, ir.VectorType(ir.IntType(32), WIDTH)), REALS)


def _emit_units(context: Any, builder: ir.IRBuilder, inputs: list[Any], head: Any, first: int) -> Any:
    """The outputs of the units *first* … *first* + WIDTH - 1."""
    chains = [_emit_reals(builder, head, BIAS + first)]
    for k, value in enumerate(inputs):
        weights = _emit_reals(builder, head, FIRST + k * HIDDEN + first)
        if k < CHAINS - 1:
            chains.append(builder.fmul(value, weights))
        else:
            chains[k % CHAINS] = emit_product_added(context, builder, chains[k % CHAINS], value, weights)
    return emit_at_least(builder, emit_sum(chains, builder.fadd), 0.0)


def _emit_head(context: Any, builder: ir.IRBuilder, sums: Any, head: Any) -> Any:
    """The value in discs of these sums."""
    parts = [_emit_real(builder, emit_limited(builder, some, 0, ONE)) for some in (sums, builder.neg(sums))]
    inputs = [emit_chosen(builder, part, [k] * WIDTH) for part in parts for k in range(WIDTH)]
    total = builder.fmul(_emit_real(builder, sums), _emit_reals(builder, head, 0))
    for first in range(0, HIDDEN, WIDTH):
        units = _emit_units(context, builder, inputs, head, first)
        total = emit_product_added(context, builder, total, units, _emit_reals(builder, head, SECOND + first))
    constant = builder.load(builder.inttoptr(builder.add(head, WORD(4 * CONSTANT)), ir.PointerType(REAL)))
    return builder.fadd(emit_total(builder, total), constant)


@intrinsic
def deep_sum(
    typing_context: Any,
    squares: Any,
    room: Any,
    rows: Any,
    head: Any,
    own_moves: Any,
    opp_moves: Any,
    empties: Any,
    own: Any,
    opp: Any,
    playable: Any,
) -> Any:
    """The network's output before it is kept within the limit, float32.

    *room*, *rows* and *head* are the addresses of the position's states and of the phase's rows and head; the last three are
    the numbers of the rows of the two numbers of moves and of the empty squares.
    """

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        squares, room, rows, head, own_moves, opp_moves, empties, own, opp, playable = args
        done = builder.append_basic_block()
        found = []
        for size in reversed(SIZES):
            block, other = builder.append_basic_block(), builder.append_basic_block()
            builder.cbranch(builder.icmp_signed("==", squares, WORD(size * size)), block, other)
            builder.position_at_end(block)
            sums = _emit_sums(builder, rows, emit_numbers(builder, size, room))
            found.append((sums, builder.block))
            builder.branch(done)
            builder.position_at_end(other)
        builder.unreachable()
        builder.position_at_end(done)
        sums = builder.phi(SUMS)
        for value, block in found:
            sums.add_incoming(value, block)
        ends = emit_run_ends(context, builder, opp, own)
        moves = builder.and_(ends, builder.and_(playable, builder.not_(builder.or_(own, opp))))
        counts = own_moves, builder.add(opp_moves, builder.ctpop(moves)), empties
        sums = builder.add(sums, _emit_sums(builder, rows, [(count, 0) for count in counts]))
        return _emit_head(context, builder, sums, head)

    return types.float32(*[types.int64] * 7, *[types.uint64] * 3), codegen


@register_jitable
def _value_of(net, room, empties, own, opp, moves):
    """Value of the position with the states in *room* and those legal *moves*, in discs for the side to move."""
    rows, head = net.deep_rows[np.uint64(empties)], net.heads[np.uint64(empties)]
    own_moves = net.states + popcount(moves)
    opp_moves = net.states + COUNTS
    left = net.states + 2 * COUNTS + empties
    value = deep_sum(net.squares, room, rows, head, own_moves, opp_moves, left, own, opp, net.playable)
    return min(max(np.float64(value), -net.limit), net.limit)


carries(DEEP_NET, Carried(begin, after_move, try_move, _value_of))


@evaluator(DEEP_NET)
def deep_value(net, own, opp):
    """Value of the position in discs for the side to move."""
    moves = legal_moves(own, opp, net.playable)
    empties = net.squares - popcount(own | opp)
    return _value_of(net, states_on_stack(own, opp, net.digits), empties, own, opp, moves)
