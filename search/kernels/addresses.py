"""Calls of kernels by address, so that two kernels can share the machine code of a third.

The solver prunes by the midgame search (ProbCut), which would otherwise be compiled twice for every evaluator. Addresses are in
records and belong to one process: they are never part of compiled code, which is cached on disk.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from reversi_env.compiler.llvm import emit_kernel_call

#: Own and opponent's board, alpha, beta, depth.
_ARGUMENTS = (types.uint64, types.uint64, types.int64, types.int64, types.int64)
_WORD = ir.IntType(64)


@intrinsic
def address_of(typing_context: Any, function: Any, thread: Any, net: Any) -> Any:
    """Return the address of the kernel *function* ``(thread, net, own, opp, alpha, beta, depth)``, a part of the calling kernel."""
    arguments = (thread, net, *_ARGUMENTS)
    function.dispatcher.compile(arguments)
    compiled = function.dispatcher.overloads[arguments]

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        context.active_code_library.add_linking_library(compiled.library)
        return builder.ptrtoint(context.declare_function(builder.module, compiled.fndesc), _WORD)

    return types.int64(function, thread, net), codegen


@intrinsic
def call(
    typing_context: Any, address: Any, thread: Any, net: Any, own: Any, opp: Any, alpha: Any, beta: Any, depth: Any
) -> Any:
    """Return the integer result of the kernel at *address*."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return emit_kernel_call(context, builder, args[0], signature.args[1:], args[1:])

    return types.int64(types.int64, thread, net, *_ARGUMENTS), codegen
