"""An evaluator that lives outside of compiled code: its record holds the address of a C function, which Python may have made."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from search.core.evaluate import evaluator

CALLBACK = np.dtype([("value_function", np.int64)])


@intrinsic
def _call(typing_context, address, own, opp):
    """``double f(uint64_t own, uint64_t opp)`` at that address."""

    def generate(context, builder, signature, arguments):
        boards = [ir.IntType(64), ir.IntType(64)]
        function = builder.inttoptr(arguments[0], ir.FunctionType(ir.DoubleType(), boards).as_pointer())
        return builder.call(function, arguments[1:])

    return types.float64(types.int64, types.uint64, types.uint64), generate


@evaluator(CALLBACK)
def callback_value(net, own, opp):
    """What the function says."""
    return _call(net.value_function, own, opp)
