"""The states of all instances of a position at once: a sum of vectors from a table, as code generated for a board size.

A state is a number in base 3, and a disc adds the same to it whatever stands on the other squares. So a row of the board
adds the same vector of numbers, one for each instance, whatever stands on the other rows: `digit_table` has it for every
setting of a row's bits. Sixteen vectors, eight of own rows and eight of the opponent's, make up the states of a position.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from models.core.patterns import patterns_of
from models.core.vectors import WORD

#: States that are added up at once: 256 bits of them. (With 512 a Skylake was slower.)
LANES = 16
NUMBER = ir.IntType(16)
VECTOR = ir.VectorType(NUMBER, LANES)
#: Settings of the eight bits of a row.
SETTINGS = 256
#: Bytes of a line of the cache, which no vector should straddle.
LINE = 64


def _vectors_of(size: int) -> int:
    """Vectors that hold the states of all instances."""
    return -(-len(patterns_of(size).instances) // LANES)


@lru_cache
def digit_table(size: int) -> np.ndarray:
    """``(8, 256, instances and some zeros)``: what the own discs of a row add to the states. Twice that for the opponent's.

    The bits of a setting are the columns of the 8x8 frame, the lowest one first.
    """
    weights = patterns_of(size).digit_weights.reshape(8, 8, -1)
    shape = (8, SETTINGS, LANES * _vectors_of(size))
    memory = np.zeros(np.prod(shape) + LINE // 2, np.uint16)
    table = memory[-memory.ctypes.data % LINE // 2 :][: np.prod(shape)].reshape(shape)
    bits = np.arange(SETTINGS)[:, None] >> np.arange(8) & 1
    table[:, :, : weights.shape[2]] = bits.astype(np.float32) @ weights
    return table


def _emit_sum_of_rows(builder: ir.IRBuilder, size: int, board: Any, table: Any) -> list[Any]:
    """What the discs of *board* add to the states, if they are own ones."""
    vectors, first = _vectors_of(size), (8 - size) // 2
    pointer = builder.inttoptr(table, ir.PointerType(VECTOR))
    sums = [ir.Constant(VECTOR, [0] * LANES)] * vectors
    for row in range(first, first + size):
        bits = builder.and_(builder.lshr(board, WORD(8 * row)), WORD(SETTINGS - 1))
        start = builder.mul(builder.add(bits, WORD(row * SETTINGS)), WORD(vectors))
        for k in range(vectors):
            place = builder.gep(pointer, [builder.add(start, WORD(k))])
            sums[k] = builder.add(sums[k], builder.load(place, align=2 * LANES))
    return sums


def emit_states(builder: ir.IRBuilder, size: int, own: Any, opp: Any, table: Any) -> list[Any]:
    """For every instance the number of its state among the states of all patterns; *table* is the address of `digit_table`."""
    patterns = patterns_of(size)
    mine, theirs = (_emit_sum_of_rows(builder, size, board, table) for board in (own, opp))
    states = [builder.add(a, builder.add(b, b)) for a, b in zip(mine, theirs, strict=True)]
    numbers = _emit_in_memory(builder, states)
    found = []
    for k, (pattern, _) in enumerate(patterns.instances):
        state = builder.zext(builder.load(builder.gep(numbers, [WORD(k)])), WORD)
        found.append(builder.add(state, WORD(int(patterns.offsets[pattern]))))
    return found


def _emit_in_memory(builder: ir.IRBuilder, vectors: list[Any]) -> Any:
    """Write the vectors to the stack; a pointer to their first number.

    Reading numbers there is faster than taking them out of registers one by one, which the compiler would do instead if it
    knew what the pointer points to: an empty piece of assembly keeps it from knowing.
    """
    with builder.goto_entry_block():
        room = builder.alloca(ir.ArrayType(VECTOR, len(vectors)))
    for k, vector in enumerate(vectors):
        builder.store(vector, cgutils.gep_inbounds(builder, room, 0, k))
    kind = ir.FunctionType(ir.PointerType(NUMBER), [room.type])
    return builder.call(ir.InlineAsm(kind, "", "=r,0,~{memory}", side_effect=True), [room])
