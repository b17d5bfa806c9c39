"""LLVM code for which numba and llvmlite have no public function."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once


def emit_freeze(builder: ir.IRBuilder, value: Any) -> Any:
    """Return *value* after LLVM's ``freeze``: the optimiser does not use how it was computed."""
    frozen = ir.Instruction(builder.block, value.type, "freeze", [value])
    builder._insert(frozen)
    return frozen


def emit_kernel_call(context: Any, builder: ir.IRBuilder, address: Any, signature: Any, arguments: Any) -> Any:
    """Return the int64 result of the kernel at *address*, called by numba's convention with these *arguments*."""
    convention = context.call_conv
    kind = convention.get_function_type(types.int64, signature)
    result, error = (alloca_once(builder, argument.pointee) for argument in kind.args[:2])
    packed = convention._get_arg_packer(signature).as_arguments(builder, arguments)
    builder.call(builder.inttoptr(address, kind.as_pointer()), [result, error, *packed])
    return builder.load(result)
