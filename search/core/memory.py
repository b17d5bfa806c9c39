"""Reads, writes and prefetches of 64-bit words at an address.

A recursive kernel that takes a numpy array pays for its seven-word descriptor at every call. The search passes one
record pointer instead, and keeps the address of its table in it; whoever owns the array keeps it alive for as long as
the kernel runs.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

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
