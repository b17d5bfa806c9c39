"""`evaluate`: the one generic through which the search knows any evaluator.

An evaluator is plain data, one record of weights, and a function that reads it. ``@evaluator(DTYPE)`` joins the two:
wherever a kernel calls ``evaluate(net, own, opp)``, numba picks the function by the type of *net* and compiles it in.
There is no function pointer, no Python in the loop, and one searcher for all evaluators. The value is for the side to
move, in discs, positive if it is better for it under the rules' objective.

>>> import numpy as np
>>> from reversi_env.core.intrinsics import popcount
>>> DOUBLE = np.dtype([("double_weight", np.float64)])
>>> @evaluator(DOUBLE)
... def doubled_discs(net, own, opp):
...     return net.double_weight * (popcount(own) - popcount(opp))
>>> float(static_values(np.ones(1, DOUBLE), np.array([7], np.uint64), np.array([8], np.uint64))[0])
2.0
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher
from numba.extending import overload
from numba.np.numpy_support import from_dtype

from reversi_env.core.compiling import TYPE_FINGERPRINTS, kernel, source_fingerprint

_FUNCTIONS: dict[types.Type, Callable] = {}


def evaluate(net: Any, own: Any, opp: Any) -> float:
    """Value of the position for the side to move in discs, by the evaluator whose record *net* is. For use in kernels."""
    raise TypeError(f"evaluate is compiled into kernels; no evaluator is registered for {net!r}")


@overload(evaluate, strict=False)  # users may name or annotate the arguments as they like
def _evaluate_by_type(net: Any, own: Any, opp: Any) -> Callable | None:
    return _FUNCTIONS.get(net)


def evaluator(dtype: np.dtype) -> Callable[[Callable], Callable]:
    """Register the decorated ``function(net, own, opp)`` as `evaluate` for records of *dtype*.

    The record type is the evaluator's identity: give it a field name that no other evaluator has.
    """

    def register(function: Callable) -> Callable:
        record = from_dtype(np.dtype(dtype))
        known = _FUNCTIONS.get(record)
        if known is not None and known.__code__ != function.__code__:
            raise ValueError(
                f"an evaluator for {np.dtype(dtype)} exists already: expected a record with a field name of its own"
            )
        register_function(dtype, function, fingerprint(function))
        return function

    return register


def register_function(dtype: np.dtype, function: Callable, source: str) -> None:
    """Make *function* `evaluate` for records of *dtype*; *source* changes whenever what it is compiled from does."""
    record = from_dtype(np.dtype(dtype))
    _FUNCTIONS[record], TYPE_FINGERPRINTS[record] = function, source


def fingerprint(function: Callable, *, with_values: bool = False) -> str:
    """Hash of the function's file and of the kernel sources that it may use; where there is no file, of all that it refers to.

    *with_values*: of both, for a function whose file may be run with other constants.
    """
    source = ""
    with suppress(OSError, TypeError):
        file = inspect.getsourcefile(function)
        source = source_fingerprint(file) if file is not None else ""
    if source and not with_values:
        return source
    return hashlib.sha256(f"{source}{_essence(function, ())!r}".encode()).hexdigest()


def _essence(value: Any, within: tuple[Any, ...]) -> Any:
    """What decides the compiled form of a function without a file: its code, and the constants and functions that it refers to."""
    function = value.py_func if isinstance(value, Dispatcher) else value
    if isinstance(function, FunctionType) and function not in within:
        code, found = function.__code__, inspect.getclosurevars(function)
        named = sorted({**found.globals, **found.nonlocals}.items())
        return _essence_of_code(code), [(name, _essence(one, (*within, function))) for name, one in named]
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))  # where things are says nothing of them


def _essence_of_code(code: CodeType) -> Any:
    """Instructions, names and constants, and those of the functions inside."""
    constants = [_essence_of_code(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return code.co_code, code.co_names, constants


@kernel
def _static_values(nets, own, opp, out):
    for i in range(own.size):
        out[i] = evaluate(nets[0], own[i], opp[i])


def static_values(nets: np.ndarray, own: np.ndarray, opp: np.ndarray) -> np.ndarray:
    """The evaluator's value of every position, no search; *nets* is an array of one record."""
    out = np.empty(own.size, np.float64)
    _static_values(nets, own, opp, out)
    return out
