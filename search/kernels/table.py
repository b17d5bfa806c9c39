"""The transposition table: fixed memory, four entries a bucket, safe to share between threads without a lock.

An entry is three words: own board, opponent's board, both mixed up with the data, and the data. It belongs to a
position only if both boards come out right, so that an entry torn by two threads writing at once belongs to no position
and is ignored (after Hyatt and Mann, 2002, who mix by ``^ data``; here that would not do: two writes of one position
could be torn into an entry of another one, where the discs on the squares in which the data differ are missing or have
the other colour). The data word holds, from the lowest bit: lower bound and upper bound (16 bits each, offset 2**15),
best move and second-best move (8 bits each, 64: none), depth (8 bits) and generation (8 bits).

Replacement has two tiers: three entries of a bucket are kept by depth; the fourth takes whatever did not get in there.
Empty entries are filled first, in their order, so that nothing lies behind one; then those of earlier generations give way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.symmetry import position_hash

WAYS = 4
WORDS_PER_ENTRY = 3
WORDS_PER_BUCKET = WAYS * WORDS_PER_ENTRY
BYTES_PER_BUCKET = 8 * WORDS_PER_BUCKET

NO_MOVE = 64
#: Bounds are whole numbers within +-LIMIT, in the caller's unit.
LIMIT = 32_000
_OFFSET = 1 << 15
_NOTHING = np.uint64(0)
_SCRAMBLER = np.uint64(0x9E37_79B9_7F4A_7C15)
_HALF = np.uint64(32)


@kernel
def pack(lower, upper, move, second_move, depth, generation):
    """The data word of an entry."""
    word = np.uint64(lower + _OFFSET) | np.uint64(upper + _OFFSET) << np.uint64(16)
    word |= np.uint64(move) << np.uint64(32) | np.uint64(second_move) << np.uint64(40)
    return word | np.uint64(depth) << np.uint64(48) | np.uint64(generation & 255) << np.uint64(56)


@kernel
def lower_of(data):
    """Lower bound of the position's value."""
    return np.int64(data & np.uint64(0xFFFF)) - _OFFSET


@kernel
def upper_of(data):
    """Upper bound of the position's value."""
    return np.int64((data >> np.uint64(16)) & np.uint64(0xFFFF)) - _OFFSET


@kernel
def move_of(data):
    """Best move known, 64 if none."""
    return np.int64((data >> np.uint64(32)) & np.uint64(0xFF))


@kernel
def second_move_of(data):
    """Best move known before the present one, 64 if none."""
    return np.int64((data >> np.uint64(40)) & np.uint64(0xFF))


@kernel
def depth_of(data):
    """Depth of the search that gave the bounds."""
    return np.int64((data >> np.uint64(48)) & np.uint64(0xFF))


@kernel
def _generation_of(data):
    return np.int64(data >> np.uint64(56))


@kernel
def bucket_of(own, opp, bucket_mask):
    """Index of the bucket's first word."""
    return np.int64(position_hash(own, opp) & np.uint64(bucket_mask)) * WORDS_PER_BUCKET


@kernel
def prefetch(table, own, opp, bucket_mask):
    """Have the position's bucket brought from memory while other work is done: it will be looked up soon."""
    bucket = bucket_of(own, opp, bucket_mask)
    prefetch_word(table, bucket)
    prefetch_word(table, bucket + WORDS_PER_BUCKET - 1)  # a bucket lies in two lines of the cache


@kernel
def _scrambled(data):
    """A word in which one changed bit of *data* changes about half of the upper 33 bits."""
    return (data ^ data >> _HALF) * _SCRAMBLER


@kernel
def _halves_exchanged(word):
    return word << _HALF | word >> _HALF


@kernel
def _matches(table, at, data, own, opp):
    """Whether the entry with that data word is whole, and the position's."""
    mask = _scrambled(data)
    return load_word(table, at) ^ mask == own and load_word(table, at + 1) ^ _halves_exchanged(mask) == opp


@kernel
def probe(table, bucket, own, opp):
    """Data word of the position's entry in the bucket, or 0 if there is none (no entry's data word is 0)."""
    for way in range(WAYS):
        at = bucket + way * WORDS_PER_ENTRY
        data = load_word(table, at + 2)
        if not data:  # nothing lies behind it: a second line of the cache is not waited for, 1.5 % of the midgame
            break
        if _matches(table, at, data, own, opp):
            return data
    return _NOTHING


@kernel
def store(table, bucket, own, opp, lower, upper, move, depth, generation):
    """Keep a result: bounds of equal depth are narrowed, a deeper search replaces them, and the move before stays as second.

    Estimates of equal depth may contradict each other (one search may have used deeper results than another, or ProbCut):
    then the new bounds stand alone.
    """
    victim, victim_rank = bucket, 1 << 20
    for way in range(WAYS):
        at = bucket + way * WORDS_PER_ENTRY
        data = load_word(table, at + 2)
        if not data:
            victim, victim_rank = at, -1
            break
        if _matches(table, at, data, own, opp):
            _update(table, at, own, opp, data, lower, upper, move, depth, generation)
            return
        rank = depth_of(data) if _generation_of(data) == generation & 255 else -1
        if rank < victim_rank and (way < WAYS - 1 or rank < 0):
            victim, victim_rank = at, rank
    if victim_rank > depth:
        victim = bucket + (WAYS - 1) * WORDS_PER_ENTRY
    _write(table, victim, own, opp, pack(lower, upper, move, NO_MOVE, depth, generation))


@kernel
def _write(table, at, own, opp, data):
    mask = _scrambled(data)
    store_word(table, at, own ^ mask)
    store_word(table, at + 1, opp ^ _halves_exchanged(mask))
    store_word(table, at + 2, data)


@kernel
def _update(table, at, own, opp, data, lower, upper, move, depth, generation):
    if depth < depth_of(data) and _generation_of(data) == generation & 255:
        return
    if depth == depth_of(data) and lower <= upper_of(data) and upper >= lower_of(data):
        lower, upper = max(lower, lower_of(data)), min(upper, upper_of(data))
    best, second = move_of(data), second_move_of(data)
    if move != NO_MOVE and move != best:
        best, second = move, best
    _write(table, at, own, opp, pack(lower, upper, best, second, depth, generation))


@kernel
def rehash(table, buckets, bucket_mask):
    """Move the entries of the first *buckets* buckets to where *bucket_mask* has them, among more buckets, the others empty.

    A bucket's entries go to buckets that take those of no other one, in the order in which they were.
    """
    for bucket in range(0, buckets * WORDS_PER_BUCKET, WORDS_PER_BUCKET):
        for way in range(WAYS):
            at = bucket + way * WORDS_PER_ENTRY
            data = load_word(table, at + 2)
            if not data:
                break
            mask = _scrambled(data)
            own, opp = load_word(table, at) ^ mask, load_word(table, at + 1) ^ _halves_exchanged(mask)
            store_word(table, at + 2, _NOTHING)
            target = bucket_of(own, opp, bucket_mask)
            if target % (buckets * WORDS_PER_BUCKET) == bucket:  # else torn by two threads, and of no position
                _put(table, target, own, opp, data)


@kernel
def _put(table, bucket, own, opp, data):
    """Write an entry to the bucket's first empty place, if there is one."""
    for at in range(bucket, bucket + WORDS_PER_BUCKET, WORDS_PER_ENTRY):
        if not load_word(table, at + 2):
            _write(table, at, own, opp, data)
            return


# --- shallow table ---------------------------------------------------------------------------------


#: Fewest and most empties of a position that is kept here.
MIN_EMPTIES, MAX_EMPTIES = 7, 9
#: Confidence of all entries: nothing near the end is ever cut (`search.kernels.endgame`).
EXACT = 5
#: An entry is a position and the data word of `search.kernels.table`; so many bits of the hash choose it.
_WORDS, _BITS = 3, 13
#: 64-bit words of a thread's table.
SHALLOW_WORDS = (MAX_EMPTIES - MIN_EMPTIES + 1) * _WORDS << _BITS
_NO_MOVES, _SHIFT = np.uint64(0), np.uint64(64 - _BITS)


@kernel
def shallow_slot(own, opp, count):
    """Index of the first word of the position's entry."""
    return (((count - MIN_EMPTIES) << _BITS) + np.int64(position_hash(own, opp) >> _SHIFT)) * _WORDS


@kernel
def shallow_probe(table, own, opp, count):
    """Data word of the position's entry, or 0 if there is none."""
    at = shallow_slot(own, opp, count)
    return load_word(table, at + 2) if load_word(table, at) == own and load_word(table, at + 1) == opp else _NO_MOVES


@kernel
def shallow_prefetch(table, own, opp, count):
    """Have the position's entry brought into the nearest cache while other work is done."""
    prefetch_word(table, shallow_slot(own, opp, count))


@kernel
def shallow_store(table, own, opp, lower, upper, move, count):
    """Keep bounds, narrowed by those that are known, and the best move; NO_MOVE: the one that is known stays."""
    at = shallow_slot(own, opp, count)
    data = shallow_probe(table, own, opp, count)
    if data:
        lower, upper = max(lower, lower_of(data)), min(upper, upper_of(data))
        move = move_of(data) if move == NO_MOVE else move
    store_word(table, at, own)
    store_word(table, at + 1, opp)
    store_word(table, at + 2, pack(lower, upper, move, NO_MOVE, count + EXACT, 0))


# --- 64-bit words in memory ------------------------------------------------------------------------


_WORD = ir.IntType(64)
#: How a prefetch is meant: for reading, into all levels of the cache, of data.
_TO_READ, _TO_KEEP, _DATA = 0, 3, 1


def _pointer(builder: Any, address: Any, index: Any) -> Any:
    """Pointer to word *index* of the array at *address*."""
    return builder.gep(builder.inttoptr(address, ir.PointerType(_WORD)), [index])


@intrinsic
def load_word(typing_context: Any, address: Any, index: Any) -> Any:
    """Word *index* of the uint64 array at *address*."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(builder, *args))

    return types.uint64(types.int64, types.int64), codegen


@intrinsic
def store_word(typing_context: Any, address: Any, index: Any, word: Any) -> Any:
    """Write word *index* of the uint64 array at *address*."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _pointer(builder, args[0], args[1]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.uint64), codegen


@intrinsic
def prefetch_word(typing_context: Any, address: Any, index: Any) -> Any:
    """Ask the CPU to have word *index* of the array at *address* in its cache soon; nothing waits for it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, number = ir.PointerType(ir.IntType(8)), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        pointer = builder.bitcast(_pointer(builder, *args), byte)
        builder.call(prefetch, [pointer, number(_TO_READ), number(_TO_KEEP), number(_DATA)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen
