"""The forward pass of a `DeepPatternNet` inside the search: vectors of sums and a small head, no torch and no array.

Every state of every pattern has a row of integers (int8, `QUANTISED_ONE` stands for 1), and so have the numbers of moves and of
empty squares. The rows of a position are added. The clipped sums go through a layer of units to one number; this number plus a
weighted sum of the sums is the value in discs. Sums and units are LLVM vectors in registers.

The head is quantised, too: inputs and weights of a unit are bytes, of which a CPU multiplies and adds 16 to 64 in one to three
instructions. The layer costs little compared with the rows, of which fifty are loaded from memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

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
from models.kernels.linear import COUNTS
from models.kernels.simd import (
    REAL,
    WORD,
    emit_clipped,
    emit_concatenated,
    emit_dot_products_added,
    emit_horizontal_sum,
    emit_multiply_add,
    emit_relu,
    emit_shuffle,
    emit_sum,
    emit_vector,
)
from reversi_env.compiler.llvm import emit_freeze
from reversi_env.kernels.bitboard import legal_moves
from reversi_env.kernels.simd import emit_run_ends, popcount
from reversi_env.rules import SIZES
from search.kernels.accumulator import IncrementalEvaluator, register_incremental
from search.kernels.evaluate import evaluator

#: The integer that stands for 1 in a row.
QUANTISED_ONE = 128
#: The largest input and weight of a unit, as signed bytes.
QUANTISED_MAX = 127
#: The largest quantised bias of a unit, to which all products are added in 32 bits.
MAX_BIAS = 1 << 30
#: The smallest scale of a unit's weights, which may all be 0.
MIN_SCALE = float(np.finfo(np.float32).tiny) * QUANTISED_MAX
#: Rows for the number of empty squares.
EMPTIES = 65
#: Sums or units per vector.
LANES = 8
#: Independent chains of additions of rows: the compiler would make one chain, in which each addition waits for the one before.
CHAINS = 4
FLOAT_VECTOR, INT_VECTOR = ir.VectorType(REAL, LANES), ir.VectorType(ir.IntType(32), LANES)
BYTE_VECTOR = ir.VectorType(ir.IntType(8), 4 * LANES)


class Shape(NamedTuple):
    """Width of a row and units of the head, both multiples of `LANES`, and the first indices of a head's parts.

    The parts are the weights of the sums, the weights of the units (a row for each input), the units' biases, the weights of their
    outputs, and a constant.
    """

    width: int
    units: int

    @property
    def inputs(self) -> int:
        """The number of inputs: the positive and the negative part of each sum, both clipped just below 1."""
        return 2 * self.width

    @property
    def first(self) -> int:
        return self.width

    @property
    def bias(self) -> int:
        return self.first + self.inputs * self.units

    @property
    def second(self) -> int:
        return self.bias + self.units

    @property
    def constant(self) -> int:
        return self.second + self.units

    @property
    def head(self) -> int:
        return self.constant + 1


class SearchHead(NamedTuple):
    """Byte offsets of the parts of a head in the search.

    The weights of the sums come first; the units' weights, bytes, come last: those of every unit for each four inputs.
    """

    biases: int
    outputs: int
    constant: int
    weights: int

    @classmethod
    def of(cls, shape: Shape) -> SearchHead:
        starts = np.cumsum([shape.width, shape.units, shape.units, 1])
        return cls(*(4 * int(start) for start in starts))


def array_module(numbers: Any) -> Any:
    """Return numpy or torch, whichever library an array or a tensor is of."""
    return sys.modules[type(numbers).__module__.partition(".")[0]]


def _scales(shape: Shape, heads: Any) -> Any:
    """Return the scales of the weights of each unit, ``(heads, 1, units)``.

    The largest weight is `QUANTISED_MAX`, unless the bias would then be too large for 32 bits.
    """
    library = array_module(heads)
    weights = heads[:, shape.first : shape.bias].reshape(-1, shape.inputs, shape.units)
    biases = abs(heads[:, None, shape.bias : shape.second]) * (QUANTISED_ONE * QUANTISED_MAX / MAX_BIAS)
    largest = library.maximum(library.amax(abs(weights), axis=1, keepdims=True), biases)
    return library.clip(largest, MIN_SCALE, None) / QUANTISED_MAX


def _quantised_units(shape: Shape, heads: Any) -> tuple[Any, Any]:
    """Return the units' weights ``(heads, inputs, units)`` and biases ``(heads, units)`` as integers."""
    weights, scales = heads[:, shape.first : shape.bias].reshape(-1, shape.inputs, shape.units), _scales(shape, heads)
    return (weights / scales).round(), (heads[:, shape.bias : shape.second] * QUANTISED_ONE / scales[:, 0]).round()


def quantised_heads(shape: Shape, heads: Any) -> Any:
    """Return the heads, a float32 array or tensor, with quantised weights and biases of units; the function is idempotent."""
    (weights, biases), scales = _quantised_units(shape, heads), _scales(shape, heads)
    units = (weights * scales).reshape(len(heads), -1), biases * scales[:, 0] / QUANTISED_ONE
    parts = heads[:, : shape.first], *units, heads[:, shape.second :]
    return array_module(heads).concatenate(parts, axis=1)


def heads_for_search(shape: Shape, heads: np.ndarray) -> np.ndarray:
    """Return the heads as the search reads them, a row of bytes for each; inputs are integers, `QUANTISED_ONE` stands for 1."""
    weights, biases = _quantised_units(shape, heads)
    fours = weights.reshape(-1, shape.inputs // 4, 4, shape.units).swapaxes(2, 3).reshape(len(heads), -1)
    parts = (
        (heads[:, : shape.first] / QUANTISED_ONE, np.float32),
        (biases, np.int32),
        (heads[:, shape.second : shape.constant] * _scales(shape, heads)[:, 0] / QUANTISED_ONE, np.float32),
        (heads[:, shape.constant :], np.float32),
        (fours, np.int8),
    )
    return np.concatenate([np.ascontiguousarray(part.astype(kind)).view(np.uint8) for part, kind in parts], axis=1)


class _Forward:
    """Emits LLVM code for the forward pass of networks of one shape."""

    def __init__(self, context: Any, builder: ir.IRBuilder, shape: Shape) -> None:
        self.context, self.builder, self.shape, self.place = context, builder, shape, SearchHead.of(shape)
        self.row, self.sums = (ir.VectorType(ir.IntType(bits), shape.width) for bits in (8, 16))

    def sum_of_rows(self, rows: Any, numbers: list[tuple[Any, int]]) -> Any:
        """Return the sum of the rows with these *numbers*, pairs of a value and a constant. A hundred rows cannot overflow."""
        builder = self.builder
        places = [(builder.add(rows, WORD(self.shape.width * first)), number) for number, first in numbers]
        vectors = [builder.sext(emit_vector(builder, start, number, self.row), self.sums) for start, number in places]
        parts = [emit_sum(vectors[k::CHAINS], builder.add) for k in range(min(CHAINS, len(vectors)))]
        return emit_sum([emit_freeze(builder, part) for part in parts], builder.add)

    def value(self, sums: Any, head: Any) -> Any:
        builder, shape, place = self.builder, self.shape, self.place
        inputs = self._inputs(sums)
        parts = []
        for first in range(0, shape.width, LANES):
            some = builder.sext(emit_shuffle(builder, sums, range(first, first + LANES)), INT_VECTOR)
            parts.append(builder.fmul(builder.sitofp(some, FLOAT_VECTOR), self._part(head, 4 * first, FLOAT_VECTOR)))
        total = emit_sum(parts, builder.fadd)
        for first in range(0, shape.units, LANES):
            units = builder.sitofp(self._units(inputs, head, first), FLOAT_VECTOR)
            weights = self._part(head, place.outputs + 4 * first, FLOAT_VECTOR)
            total = emit_multiply_add(self.context, builder, total, units, weights)
        constant = builder.load(builder.inttoptr(builder.add(head, WORD(place.constant)), ir.PointerType(REAL)))
        return builder.fadd(emit_horizontal_sum(builder, total), constant)

    def _inputs(self, sums: Any) -> list[Any]:
        """Return the positive parts of the sums, then the negative ones: four bytes at a time, repeated for all lanes."""
        builder = self.builder
        above, below = (emit_clipped(builder, some, QUANTISED_MAX) for some in (sums, builder.neg(sums)))
        both = builder.trunc(emit_concatenated(builder, above, below), ir.VectorType(ir.IntType(8), self.shape.inputs))
        return [emit_shuffle(builder, both, [*range(k, k + 4)] * LANES) for k in range(0, self.shape.inputs, 4)]

    def _units(self, inputs: list[Any], head: Any, first: int) -> Any:
        """Return the outputs of the units from *first* to *first* + LANES - 1, int32."""
        total = self._part(head, self.place.biases + 4 * first, INT_VECTOR)
        for k, four in enumerate(inputs):
            weights = self._part(head, self.place.weights + 4 * (k * self.shape.units + first), BYTE_VECTOR)
            total = emit_dot_products_added(self.context, self.builder, total, four, weights)
        return emit_relu(self.builder, total)

    def _part(self, head: Any, start: int, kind: ir.VectorType) -> Any:
        return emit_vector(self.builder, self.builder.add(head, WORD(start)), WORD(0), kind)


def _sum_for(shape: Shape) -> Callable:
    @intrinsic
    def deep_sum(
        typing_context: Any,
        squares: Any,
        accumulator: Any,
        rows: Any,
        head: Any,
        own_moves: Any,
        opp_moves: Any,
        empties: Any,
        own: Any,
        opp: Any,
        playable: Any,
    ) -> Any:
        """Return the network's output before clipping, float32.

        *accumulator*, *rows* and *head* are addresses: of the position's states, and of the phase's rows and head. The next three
        are row numbers: of the numbers of moves of both sides, and of the number of empty squares.
        """

        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            squares, accumulator, rows, head, own_moves, opp_moves, empties, own, opp, playable = args
            forward, done = _Forward(context, builder, shape), builder.append_basic_block()
            results = []
            for size in reversed(SIZES):
                block, other = builder.append_basic_block(), builder.append_basic_block()
                builder.cbranch(builder.icmp_signed("==", squares, WORD(size * size)), block, other)
                builder.position_at_end(block)
                results.append(
                    (forward.sum_of_rows(rows, emit_numbers(context, builder, size, accumulator)), builder.block)
                )
                builder.branch(done)
                builder.position_at_end(other)
            builder.unreachable()
            builder.position_at_end(done)
            sums = builder.phi(forward.sums)
            for value, block in results:
                sums.add_incoming(value, block)
            ends = emit_run_ends(context, builder, opp, own)
            moves = builder.and_(ends, builder.and_(playable, builder.not_(builder.or_(own, opp))))
            counts = own_moves, builder.add(opp_moves, builder.ctpop(moves)), empties
            sums = builder.add(sums, forward.sum_of_rows(rows, [(count, 0) for count in counts]))
            return forward.value(sums, head)

        return types.float32(*[types.int64] * 7, *[types.uint64] * 3), codegen

    return deep_sum


def evaluator_for(shape: Shape) -> tuple[np.dtype, Callable]:
    """Return the record type of networks of this shape, which no other shape has, and their forward pass."""
    net = np.dtype(
        [
            ("deep_rows", np.int64, (EMPTIES,)),  # addresses of the int8 rows and of the heads, by empties
            ("heads", np.int64, (EMPTIES,)),
            ("digits", np.int64),  # address of `digit_table`
            ("states", np.int64),  # rows of patterns
            ("square_count", np.int64),
            ("playable", np.uint64),
            ("limit", np.float64),  # maximum value in discs
            (f"shape_{shape.width}_{shape.units}", np.uint8),
        ],
        align=True,
    )
    deep_sum = _sum_for(shape)

    @register_jitable
    def value_of(net, accumulator, empties, own, opp, moves):
        """Return the value of the position with these states and legal *moves*, in discs for the side to move."""
        rows, head = net.deep_rows[np.uint64(empties)], net.heads[np.uint64(empties)]
        own_moves = net.states + popcount(moves)
        opp_moves = net.states + COUNTS
        left = net.states + 2 * COUNTS + empties
        value = deep_sum(net.square_count, accumulator, rows, head, own_moves, opp_moves, left, own, opp, net.playable)
        return min(max(np.float64(value), -net.limit), net.limit)

    @evaluator(net)
    def deep_value(net, own, opp):
        moves = legal_moves(own, opp, net.playable)
        empties = net.square_count - popcount(own | opp)
        return value_of(net, states_on_stack(own, opp, net.digits), empties, own, opp, moves)

    register_incremental(net, IncrementalEvaluator(refresh_accumulator, update_accumulator, update_for_value, value_of))
    return net, deep_value


#: The shape of the deep networks.
SHAPE = Shape(8, 16)
DEEP_NET, deep_value = evaluator_for(SHAPE)
