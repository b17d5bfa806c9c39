"""The pattern states of a position as vectors, computed from the board or updated incrementally after a move.

A state is a number in base 3, to which a disc adds the same amount whatever the other squares contain. A row of the board therefore
adds a vector with an element for each instance: `digit_table` has this vector for every setting of a row's bits. The states of a
position are the sum of sixteen such vectors. After a move, only the vectors of the placed disc and of the flipped ones are added.

An accumulator of the search has the states from the view of the side to move, then those from the view of the other side.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from models.kernels.patterns import patterns_of
from models.kernels.simd import WORD, is_arm
from search.kernels.accumulator import ACCUMULATOR_BYTES

NUMBER = ir.IntType(16)
#: Lengths of the vectors that hold the states of any board: 256 bits at most, since 512 were slower on a Skylake.
LANES = 16, 16, 16, 8
VECTORS = [ir.VectorType(NUMBER, lanes) for lanes in LANES]
#: Numbers in an array of states, with padding.
STATES = 64
#: Bytes of the states from one side's view.
SIDE = 2 * STATES
assert 2 * SIDE == ACCUMULATOR_BYTES
#: Settings of the eight bits of a row, and of all rows.
SETTINGS = 256
ALL_SETTINGS = 8 * SETTINGS
#: Bytes of a cache line, which no vector should straddle.
LINE = 64


@lru_cache
def digit_table(size: int) -> np.ndarray:
    """Return ``(8, 256, STATES)``: what the own discs of a row add to the states; the opponent's discs add twice as much.

    The bits of a setting are the columns of the 8x8 frame, lowest first. In memory, a smaller table follows, which fits into the
    CPU's cache: what one own disc adds, for each square, and zeros for no disc.
    """
    weights = patterns_of(size).search_digit_weights.reshape(8, 8, -1)
    memory = np.zeros((ALL_SETTINGS + 65) * STATES + LINE // 2, np.uint16)
    rows = memory[-memory.ctypes.data % LINE // 2 :][: (ALL_SETTINGS + 65) * STATES].reshape(-1, STATES)
    table = rows[:ALL_SETTINGS].reshape(8, SETTINGS, STATES)
    bits = np.arange(SETTINGS)[:, None] >> np.arange(8) & 1
    table[:, :, : weights.shape[2]] = bits.astype(np.float32) @ weights
    rows[ALL_SETTINGS:-1] = table[:, 1 << np.arange(8)].reshape(64, STATES)
    return table


def emit_numbers(context: Any, builder: ir.IRBuilder, size: int, accumulator: Any) -> list[tuple[Any, int]]:
    """Return the state of every instance in *accumulator*, and the number of its pattern's first state among all states.

    ARM CPUs forward a store only to loads at its beginning or middle; other loads wait for the cache. Four numbers, 64 of the 128
    bits stored, are therefore loaded at a time there.
    """
    patterns = patterns_of(size)
    numbers = builder.inttoptr(_emit_unknown(builder, accumulator), ir.PointerType(NUMBER))
    count = len(patterns.instances)
    if is_arm(context):
        words = builder.bitcast(numbers, ir.PointerType(WORD))
        fours = [builder.load(builder.gep(words, [WORD(k)]), align=2) for k in range(-(-count // 4))]
        shifted = [builder.lshr(fours[k // 4], WORD(16 * (k % 4))) for k in range(count)]
        states = [builder.and_(number, WORD(0xFFFF)) for number in shifted]
    else:
        states = [builder.zext(builder.load(builder.gep(numbers, [WORD(k)])), WORD) for k in range(count)]
    return [
        (state, int(patterns.offsets[number])) for state, (number, _) in zip(states, patterns.instances, strict=True)
    ]


# --- for use in kernels ---------------------------------------------------------------------------


@intrinsic
def states_on_stack(typing_context: Any, own: Any, opp: Any, digits: Any) -> Any:
    """Return the address of the states of a position on the caller's stack; *digits* is the address of `digit_table`."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        with builder.goto_entry_block():
            accumulator = builder.alloca(ir.ArrayType(NUMBER, STATES))
        address = builder.ptrtoint(accumulator, WORD)
        for k, (mine, theirs) in enumerate(zip(*_emit_both_sums(builder, *args), strict=True)):
            _emit_store(builder, address, k, builder.add(mine, builder.add(theirs, theirs)))
        return address

    return types.int64(types.uint64, types.uint64, types.int64), codegen


@intrinsic
def write_states(typing_context: Any, own: Any, opp: Any, digits: Any, accumulator: Any) -> Any:
    """Write the states of a position, from the views of both sides, to the *accumulator*."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        *boards_and_digits, accumulator = args
        for k, (mine, theirs) in enumerate(zip(*_emit_both_sums(builder, *boards_and_digits), strict=True)):
            _emit_store(builder, accumulator, k, builder.add(mine, builder.add(theirs, theirs)))
            _emit_store(builder, builder.add(accumulator, WORD(SIDE)), k, builder.add(theirs, builder.add(mine, mine)))
        return context.get_dummy_value()

    return types.none(types.uint64, types.uint64, types.int64, types.int64), codegen


@intrinsic
def move_states(typing_context: Any, sq: Any, flipped: Any, digits: Any, accumulator: Any) -> Any:
    """Write the states after a move to the next level's accumulator."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        accumulator, after, placed, flips = _emit_move(builder, *args)
        other = builder.add(after, WORD(SIDE))
        for k in range(len(VECTORS)):
            mine = _emit_load(builder, accumulator, k)
            _emit_store(builder, other, k, builder.sub(builder.add(mine, placed[k]), flips[k]))
        return context.get_dummy_value()

    return types.none(types.int64, types.uint64, types.int64, types.int64), codegen


@intrinsic
def try_states(typing_context: Any, sq: Any, flipped: Any, digits: Any, accumulator: Any) -> Any:
    """Write the states after a move, from the view of the next side to move only, to the next level's accumulator."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        _emit_move(builder, *args)
        return context.get_dummy_value()

    return types.none(types.int64, types.uint64, types.int64, types.int64), codegen


def _emit_move(
    builder: ir.IRBuilder, sq: Any, flipped: Any, digits: Any, accumulator: Any
) -> tuple[Any, Any, list[Any], list[Any]]:
    """Write the states after a move, from the view of the next side to move, whose opponent has the placed and flipped discs.

    Return the addresses of the accumulators before and after the move, and the vectors of the placed disc and of the flipped ones.
    """
    after = builder.sub(accumulator, WORD(ACCUMULATOR_BYTES))
    flips, placed = _emit_sum_of_discs(builder, flipped, digits), _emit_digits(builder, sq, digits)
    other = builder.add(accumulator, WORD(SIDE))
    for k in range(len(VECTORS)):
        theirs = _emit_load(builder, other, k)
        _emit_store(builder, after, k, builder.add(builder.add(theirs, flips[k]), builder.add(placed[k], placed[k])))
    return accumulator, after, placed, flips


def _emit_both_sums(builder: ir.IRBuilder, own: Any, opp: Any, digits: Any) -> tuple[list[Any], list[Any]]:
    """Return what the discs of both boards add to the states, each as own discs."""
    mine, theirs = (_emit_sum_of_rows(builder, board, digits) for board in (own, opp))
    return mine, theirs


def _emit_sum_of_rows(builder: ir.IRBuilder, board: Any, digits: Any) -> list[Any]:
    """Return what the discs of *board* add to the states as own discs."""
    sums = _zeros()
    for row in range(8):
        setting = builder.and_(builder.lshr(board, WORD(8 * row)), WORD(SETTINGS - 1))
        added = _emit_row(builder, builder.add(setting, WORD(SETTINGS * row)), digits)
        sums = [builder.add(a, b) for a, b in zip(sums, added, strict=True)]
    return sums


def _emit_sum_of_discs(builder: ir.IRBuilder, board: Any, digits: Any) -> list[Any]:
    """Return the result of `_emit_sum_of_rows`, computed for two discs at a time: most moves flip one or two."""
    before, loop, done = builder.block, builder.append_basic_block(), builder.append_basic_block()
    builder.branch(loop)
    builder.position_at_end(loop)
    left, sums = builder.phi(WORD), [builder.phi(vector) for vector in VECTORS]
    rest, totals = left, sums
    for _ in range(2):
        added = _emit_digits(builder, builder.cttz(rest, ir.IntType(1)(0)), digits)
        totals = [builder.add(a, b) for a, b in zip(totals, added, strict=True)]
        rest = builder.and_(rest, builder.sub(rest, WORD(1)))
    for phi, first, next_one in [(left, board, rest), *zip(sums, _zeros(), totals, strict=True)]:
        phi.add_incoming(first, before)
        phi.add_incoming(next_one, loop)
    builder.cbranch(builder.icmp_unsigned("!=", rest, WORD(0)), loop, done)
    builder.position_at_end(done)
    return totals


def _zeros() -> list[Any]:
    return [ir.Constant(vector, [0] * vector.count) for vector in VECTORS]


def _emit_digits(builder: ir.IRBuilder, sq: Any, digits: Any) -> list[Any]:
    """Return what an own disc on *sq* (64: none) adds to the states."""
    return _emit_row(builder, builder.add(sq, WORD(ALL_SETTINGS)), digits)


def _emit_row(builder: ir.IRBuilder, number: Any, digits: Any) -> list[Any]:
    start = builder.add(digits, builder.mul(number, WORD(SIDE)))
    return [builder.load(_emit_place(builder, start, k), align=2 * lanes) for k, lanes in enumerate(LANES)]


def _emit_place(builder: ir.IRBuilder, states: Any, number: int) -> Any:
    return builder.inttoptr(builder.add(states, WORD(2 * sum(LANES[:number]))), ir.PointerType(VECTORS[number]))


def _emit_load(builder: ir.IRBuilder, states: Any, number: int) -> Any:
    return builder.load(_emit_place(builder, states, number), align=2)


def _emit_store(builder: ir.IRBuilder, states: Any, number: int, vector: Any) -> None:
    builder.store(vector, _emit_place(builder, states, number), align=2)


def _emit_unknown(builder: ir.IRBuilder, address: Any) -> Any:
    """Return the address through empty assembly, so that the compiler cannot know what it points to.

    Otherwise it would extract the numbers from vectors one by one, which is slower than loading them from memory.
    """
    kind = ir.FunctionType(WORD, [WORD])
    return builder.call(ir.InlineAsm(kind, "", "=r,0,~{memory}", side_effect=True), [address])


# --- functions of an evaluator's record ------------------------------------------------------------


def refresh_accumulator(net, accumulator, own, opp):
    write_states(own, opp, net.digits, accumulator)


def update_accumulator(net, accumulator, sq, flipped):
    move_states(sq, flipped, net.digits, accumulator)


def update_for_value(net, accumulator, sq, flipped):
    try_states(sq, flipped, net.digits, accumulator)
