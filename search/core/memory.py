"""Reads and writes of 64-bit words at an address.

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
