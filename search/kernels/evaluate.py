"""`evaluate`: the generic function by which kernels call any evaluator.

An evaluator is a record of weights and a function that reads it; ``@evaluator(DTYPE)`` joins the two. Where a kernel calls
``evaluate(net, own, opp)``, numba selects the function by the type of *net* and inlines it. The value is in discs for the side to
move, positive if this side is better under the rules' objective.

>>> import numpy as np
>>> from reversi_env.kernels.simd import popcount
>>> DOUBLE = np.dtype([("double_weight", np.float64)])
>>> @evaluator(DOUBLE)
... def doubled_discs(net, own, opp):
...     return net.double_weight * (popcount(own) - popcount(opp))
>>> float(static_values(np.ones(1, DOUBLE), np.array([7], np.uint64), np.array([8], np.uint64))[0])
2.0
"""

import hashlib
import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic, overload
from numba.np.numpy_support import from_dtype

from reversi_env.compiler.kernel import TYPE_FINGERPRINTS, kernel, source_fingerprint

#: Units per disc: values of the search are integers.
UNIT = 128
#: Beyond every value.
INFINITY = 30_000
_FUNCTIONS: dict[types.Type, Callable] = {}


def evaluate(net: Any, own: Any, opp: Any) -> float:
    """Return the value of the position for the side to move in discs, by the evaluator of the record *net*. For use in kernels."""
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
        registered = _FUNCTIONS.get(record)
        if registered is not None and registered.__code__ != function.__code__:
            raise ValueError(
                f"an evaluator for {np.dtype(dtype)} exists already: expected a record with another field name"
            )
        register_function(dtype, function, fingerprint(function))
        return function

    return register


def register_function(dtype: np.dtype, function: Callable, source: str) -> None:
    """Make *function* `evaluate` for records of *dtype*; *source* is a fingerprint of the sources that it is compiled from."""
    record = from_dtype(np.dtype(dtype))
    _FUNCTIONS[record], TYPE_FINGERPRINTS[record] = function, source


def fingerprint(function: Callable) -> str:
    """Return a hash of the function's file and of the kernel sources that it may use; without a file, of all that it refers to."""
    with suppress(OSError, TypeError):
        file = inspect.getsourcefile(function)
        if file is not None:
            return source_fingerprint(file)
    return code_fingerprint(function)


def code_fingerprint(function: Callable) -> str:
    """Return a hash of all that determines the compiled function: its code, constants and the functions that it refers to."""
    return hashlib.sha256(repr(_fingerprint_of(function, ())).encode()).hexdigest()


def _fingerprint_of(value: Any, within: tuple[Any, ...]) -> Any:
    function = value.py_func if isinstance(value, Dispatcher) else value
    if isinstance(function, FunctionType) and function not in within:
        return _fingerprint_of_function(function, (*within, function))
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [_fingerprint_of(item, within) for item in value]
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))  # without addresses


def _fingerprint_of_function(function: FunctionType, within: tuple[Any, ...]) -> Any:
    # code, defaults, and the present values of the names in it and in the functions inside it
    code, referred = function.__code__, dict[str, Any]()
    instructions, names = _fingerprint_of_code(code)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # the cell is still empty
            referred[name] = cell.cell_contents
    referred |= {name: function.__globals__[name] for name in sorted(names & function.__globals__.keys())}
    for module, library in [(name, one) for name, one in referred.items() if isinstance(one, ModuleType)]:
        for name in sorted(names & vars(library).keys()):
            value = vars(library)[name]
            if not callable(value) or isinstance(value, Dispatcher):  # numba compiles constants in
                referred[f"{module}.{name}"] = value
    defaults = function.__defaults__, sorted((function.__kwdefaults__ or {}).items())
    values = [(name, _fingerprint_of(one, within)) for name, one in referred.items() if not isinstance(one, ModuleType)]
    return instructions, _fingerprint_of(list(defaults), within), values


def _fingerprint_of_code(code: CodeType) -> tuple[Any, set[str]]:
    # instructions, names and constants, those of the functions inside included, and all the names
    inside = [_fingerprint_of_code(one) for one in code.co_consts if isinstance(one, CodeType)]
    constants = [repr(one) for one in code.co_consts if not isinstance(one, CodeType)]
    names = set(code.co_names).union(*(names for _, names in inside))
    return (code.co_code, code.co_names, constants, [one for one, _ in inside]), names


@kernel
def units(value, squares):
    """Return an evaluation in discs as integer units, strictly inside the range of exact scores."""
    most = squares * UNIT - 1
    return min(max(np.int64(np.floor(value * UNIT + 0.5)), -most), most)


@kernel
def _static_values(nets, own, opp, out):
    for i in range(own.size):
        out[i] = evaluate(nets[0], own[i], opp[i])


def static_values(nets: np.ndarray, own: np.ndarray, opp: np.ndarray) -> np.ndarray:
    """Return the static value of every position; *nets* is an array of one record."""
    out = np.empty(own.size, np.float64)
    _static_values(nets, own, opp, out)
    return out


# --- evaluators called by address ------------------------------------------------------------------


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
    return _call(net.value_function, own, opp)
