"""The transposition table: fixed memory, four entries per bucket, shared by threads without a lock.

An entry is three words: own board, opponent's board and data. Both boards are XORed with a hash of the data, much as in the
lockless hashing of Hyatt and Mann (2002). A probe compares both boards, so an entry torn by two concurrent writes matches no
position. Hyatt and Mann XOR with the data itself. Here that is not enough, since the boards are not hashed: two concurrent writes
of one position could leave a valid entry of another position.

The data word has, from the lowest bit: lower and upper bound (16 bits each, offset 2**15), best and second-best move (8 bits each,
64: none), depth and generation (8 bits each).

Replacement has two tiers: three entries of a bucket are replaced by depth, the fourth always. Empty entries are filled first and in
order, so that no entry follows an empty one; then entries of earlier generations are replaced.
"""

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
#: Bounds are integers within ±LIMIT, in the caller's unit.
LIMIT = 32_000
_OFFSET = 1 << 15
#: The data word of a place without an entry.
NO_ENTRY = np.uint64(0)
_SCRAMBLER = np.uint64(0x9E37_79B9_7F4A_7C15)
_HALF = np.uint64(32)


@kernel
def pack(lower, upper, move, second_move, depth, generation):
    """Return the data word of an entry."""
    word = np.uint64(lower + _OFFSET) | np.uint64(upper + _OFFSET) << np.uint64(16)
    word |= np.uint64(move) << np.uint64(32) | np.uint64(second_move) << np.uint64(40)
    return word | np.uint64(depth) << np.uint64(48) | np.uint64(generation & 255) << np.uint64(56)


@kernel
def lower_of(data):
    return np.int64(data & np.uint64(0xFFFF)) - _OFFSET


@kernel
def upper_of(data):
    return np.int64((data >> np.uint64(16)) & np.uint64(0xFFFF)) - _OFFSET


@kernel
def move_of(data):
    """Return the best move, 64 if there is none."""
    return np.int64((data >> np.uint64(32)) & np.uint64(0xFF))


@kernel
def second_move_of(data):
    """Return the previous best move, 64 if there is none."""
    return np.int64((data >> np.uint64(40)) & np.uint64(0xFF))


@kernel
def depth_of(data):
    """Return the depth of the search that gave the bounds."""
    return np.int64((data >> np.uint64(48)) & np.uint64(0xFF))


@kernel
def _generation_of(data):
    return np.int64(data >> np.uint64(56))


@kernel
def bucket_of(own, opp, bucket_mask):
    """Return the index of the bucket's first word."""
    return np.int64(position_hash(own, opp) & np.uint64(bucket_mask)) * WORDS_PER_BUCKET


@kernel
def prefetch(table, own, opp, bucket_mask):
    bucket = bucket_of(own, opp, bucket_mask)
    prefetch_word(table, bucket)
    prefetch_word(table, bucket + WORDS_PER_BUCKET - 1)  # a bucket spans two cache lines


@kernel
def _scrambled(data):
    """Return a hash of *data*: any changed bit changes each of the upper 33 bits with a probability of about a half."""
    return (data ^ data >> _HALF) * _SCRAMBLER


@kernel
def _halves_exchanged(word):
    return word << _HALF | word >> _HALF


@kernel
def _matches(table, at, data, own, opp):
    mask = _scrambled(data)
    return load_word(table, at) ^ mask == own and load_word(table, at + 1) ^ _halves_exchanged(mask) == opp


@kernel
def probe(table, bucket, own, opp):
    """Return the data word of the position's entry in the bucket, or 0, which is no entry's data word."""
    for way in range(WAYS):
        at = bucket + way * WORDS_PER_ENTRY
        data = load_word(table, at + 2)
        if not data:  # no entry follows; not loading the second cache line saves 1.5 % of the midgame's time
            break
        if _matches(table, at, data, own, opp):
            return data
    return NO_ENTRY


@kernel
def store(table, bucket, own, opp, lower, upper, move, depth, generation):
    """Store a result: narrow bounds of equal depth, or replace bounds of less depth. The previous best move becomes the second.

    If estimates of equal depth contradict each other, because of deeper table entries or ProbCut, the new bounds replace the old.
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
        rank = depth_of(data) if _generation_of(data) == generation & 255 else -1  # an older generation goes first
        if rank < victim_rank and (way < WAYS - 1 or rank < 0):
            victim, victim_rank = at, rank
    if victim_rank > depth:  # the entries that are replaced by depth are deeper: take the one that always is
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
    """Move the entries of the first *buckets* buckets to their buckets in a table grown to *bucket_mask*, whose rest is empty.

    A new bucket receives entries of only one old bucket, in their order.
    """
    for bucket in range(0, buckets * WORDS_PER_BUCKET, WORDS_PER_BUCKET):
        for way in range(WAYS):
            at = bucket + way * WORDS_PER_ENTRY
            data = load_word(table, at + 2)
            if not data:
                break
            mask = _scrambled(data)
            own, opp = load_word(table, at) ^ mask, load_word(table, at + 1) ^ _halves_exchanged(mask)
            store_word(table, at + 2, NO_ENTRY)
            target = bucket_of(own, opp, bucket_mask)
            if target % (buckets * WORDS_PER_BUCKET) == bucket:  # else torn by two threads
                _put(table, target, own, opp, data)


@kernel
def _put(table, bucket, own, opp, data):
    for at in range(bucket, bucket + WORDS_PER_BUCKET, WORDS_PER_ENTRY):
        if not load_word(table, at + 2):
            _write(table, at, own, opp, data)
            return


# A thread's own small table for the solver near the end: one entry per hash value and number of empties, always replaced.

#: Minimum and maximum empties of a position in the shallow table.
MIN_SHALLOW_EMPTIES, MAX_SHALLOW_EMPTIES = 7, 9
#: The last selectivity level (`search.engine.probcut.SELECTIVITIES`), that of all entries: nothing is pruned near the end.
EXACT_LEVEL = 5
#: Words of an entry, a position and its data word, and bits of the hash that select it.
_WORDS, _BITS = 3, 13
#: 64-bit words of a thread's table.
SHALLOW_WORDS = (MAX_SHALLOW_EMPTIES - MIN_SHALLOW_EMPTIES + 1) * _WORDS << _BITS
_SHIFT = np.uint64(64 - _BITS)


@kernel
def shallow_slot(own, opp, count):
    """Return the index of the first word of the position's entry."""
    return (((count - MIN_SHALLOW_EMPTIES) << _BITS) + np.int64(position_hash(own, opp) >> _SHIFT)) * _WORDS


@kernel
def shallow_probe(table, own, opp, count):
    """Return the data word of the position's entry, or 0."""
    at = shallow_slot(own, opp, count)
    return load_word(table, at + 2) if load_word(table, at) == own and load_word(table, at + 1) == opp else NO_ENTRY


@kernel
def shallow_prefetch(table, own, opp, count):
    """Prefetch the position's entry."""
    prefetch_word(table, shallow_slot(own, opp, count))


@kernel
def shallow_store(table, own, opp, lower, upper, move, count):
    """Store bounds, narrowed by the stored ones, and the best move; with NO_MOVE the stored move stays."""
    at = shallow_slot(own, opp, count)
    data = shallow_probe(table, own, opp, count)
    if data:
        lower, upper = max(lower, lower_of(data)), min(upper, upper_of(data))
        move = move_of(data) if move == NO_MOVE else move
    store_word(table, at, own)
    store_word(table, at + 1, opp)
    store_word(table, at + 2, pack(lower, upper, move, NO_MOVE, count + EXACT_LEVEL, 0))


# --- 64-bit words in memory ------------------------------------------------------------------------


_WORD = ir.IntType(64)
#: Arguments of llvm.prefetch: read, all cache levels, data.
_TO_READ, _TO_KEEP, _DATA = 0, 3, 1


def _pointer(builder: Any, address: Any, index: Any) -> Any:
    return builder.gep(builder.inttoptr(address, ir.PointerType(_WORD)), [index])


@intrinsic
def load_word(typing_context: Any, address: Any, index: Any) -> Any:
    """Return word *index* of the uint64 array at *address*."""

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
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, number = ir.PointerType(ir.IntType(8)), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        pointer = builder.bitcast(_pointer(builder, *args), byte)
        builder.call(prefetch, [pointer, number(_TO_READ), number(_TO_KEEP), number(_DATA)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen
