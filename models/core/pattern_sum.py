"""The sum of a position's pattern weights, as code generated for a board size: no loops, every mask a constant.

For each of the eight images of the board under the symmetries, the state of each pattern is read off: the bits of its
squares are gathered to the bottom of a word (one instruction where the CPU has BMI2), for the own and for the opponent's
discs, and turned into digits of base 3 by a table; the state then chooses the weight.

Three things make it fast. The images follow from each other: all eight take one transposition, two mirrored columns and
some exchanges of bytes. A pattern in the first four rows has its squares of both boards in one word, and they are
gathered at once. A row is gathered already.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.cpu import CPUContext
from numba.extending import intrinsic

from models.core.patterns import patterns_of
from reversi_env import Rules
from reversi_env.core.symmetry import mirror_columns, transpose

WORD = ir.IntType(64)
#: Steps that gather bits without BMI2.
STEPS = 6
#: ``TERNARY[bits]``: the number whose base-3 digits are the bits.
TERNARY = np.array([int(f"{bits:b}", 3) for bits in range(1 << 10)], np.uint16)


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


def has_pext(context: Any) -> bool:
    """Whether code is made for a CPU that gathers bits in one instruction."""
    return isinstance(context, CPUContext) and "+bmi2" in context.codegen().magic_tuple()[2]


def emit_packed_bits(builder: ir.IRBuilder, board: Any, mask: int, pext: bool) -> Any:
    """Code for the bits of *board* on the squares of *mask*, lowest first, as a number."""
    lowest = (mask & -mask).bit_length() - 1
    if (mask >> lowest) + 1 & mask >> lowest == 0:  # neighbours already
        return builder.and_(builder.lshr(board, WORD(lowest)), WORD(mask >> lowest))
    if pext:
        gather = builder.module.declare_intrinsic("llvm.x86.bmi.pext.64", (), ir.FunctionType(WORD, [WORD, WORD]))
        return builder.call(gather, [board, WORD(mask)])
    board = builder.and_(board, WORD(mask))
    for step, moving in enumerate(packing_steps(mask)):
        if moving:
            moved = builder.and_(board, WORD(moving))
            board = builder.or_(builder.xor(board, moved), builder.lshr(moved, WORD(1 << step)))
    return board


class PatternStates:
    """Writes the code that finds the states of all instances of a position."""

    def __init__(self, context: Any, builder: ir.IRBuilder, size: int) -> None:
        self.context, self.builder = context, builder
        self.patterns, self.pext = patterns_of(size), has_pext(context)
        self.first_row = 8 * ((8 - size) // 2)  # lowest square of the board's first row, column left out
        number = ir.IntType(16)
        digits = ir.Constant(ir.ArrayType(number, TERNARY.size), [number(int(n)) for n in TERNARY])
        self.ternary = cgutils.global_constant(builder, "ternary", digits)

    def images(self, board: Any) -> list[Any]:
        """The board under all symmetries, in the order that `reversi_env.core.symmetry` gives them.

        Mirroring the columns and then transposing is transposing and then mirroring the rows, which is one instruction.
        """
        rows, columns = self.builder.bswap, self._call(mirror_columns)
        turned = self._call(transpose)(board)
        over, turned_over = columns(board), columns(turned)
        straight = [board, rows(board), over, rows(over)]
        return [*straight, turned, turned_over, rows(turned), rows(turned_over)]

    def _call(self, function: Any) -> Any:
        signature = types.uint64(types.uint64)
        return lambda board: self.context.compile_internal(self.builder, function.py_func, signature, (board,))

    def indices(self, own: Any, opp: Any) -> Iterator[Any]:
        """For every instance the number of its state among the states of all patterns."""
        images = list(zip(self.images(own), self.images(opp), strict=True))
        pairs = [self._first_rows(*image) for image in images]
        for pattern, symmetry in self.patterns.instances:
            state = self._state(*images[symmetry], pairs[symmetry], self.patterns.patterns[pattern].mask)
            yield self.builder.add(state, WORD(int(self.patterns.offsets[pattern])))

    def _first_rows(self, own: Any, opp: Any) -> Any:
        """The first four rows of both boards in one word, the own ones below."""
        builder, first = self.builder, WORD(self.first_row)
        lower = builder.and_(builder.lshr(own, first), WORD((1 << 32) - 1))
        return builder.or_(lower, builder.shl(builder.lshr(opp, first), WORD(32)))

    def _state(self, own: Any, opp: Any, pair: Any, mask: int) -> Any:
        """The pattern's state in base 3."""
        count, in_pair = mask.bit_count(), mask >> self.first_row
        if in_pair >> 32:
            bits = [emit_packed_bits(self.builder, board, mask, self.pext) for board in (own, opp)]
        else:
            both = emit_packed_bits(self.builder, pair, in_pair | in_pair << 32, self.pext)
            bits = [self.builder.and_(both, WORD((1 << count) - 1)), self.builder.lshr(both, WORD(count))]
        mine, theirs = (self._in_base_3(some) for some in bits)
        return self.builder.add(mine, self.builder.shl(theirs, WORD(1)))

    def _in_base_3(self, bits: Any) -> Any:
        digits = self.builder.load(self.builder.gep(self.ternary, [WORD(0), bits]))
        return self.builder.zext(digits, WORD)


def emit_load(builder: ir.IRBuilder, address: Any, index: Any) -> Any:
    """Code for number *index* of the int16 array at *address*, as int64."""
    pointer = builder.inttoptr(address, ir.PointerType(ir.IntType(16)))
    return builder.sext(builder.load(builder.gep(pointer, [index])), WORD)


@intrinsic(prefer_literal=True)
def pattern_sum(typing_context: Any, size: Any, own: Any, opp: Any, weights: Any) -> Any:
    """Sum of the weights of all instances on the board of *size*, a literal; *weights* is the address of the phase's row."""
    assert isinstance(size, types.IntegerLiteral), "the size is known when the code is made"
    Rules(size.literal_value)  # a board that exists

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        _, own, opp, weights = args
        total = WORD(0)
        for index in PatternStates(context, builder, size.literal_value).indices(own, opp):
            total = builder.add(total, emit_load(builder, weights, index))
        return total

    return types.int64(size, types.uint64, types.uint64, types.int64), codegen


@intrinsic
def load_weight(typing_context: Any, address: Any, index: Any) -> Any:
    """Number *index* of the int16 array at *address*, as int64."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return emit_load(builder, *args)

    return types.int64(types.int64, types.int64), codegen
