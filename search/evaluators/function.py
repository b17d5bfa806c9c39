"""Evaluators from functions: in plain Python, which is slow, or compiled into the search.

>>> from reversi_env import Position
>>> from reversi_env.kernels import popcount
>>> from search import Engine, Limits, evaluator
>>> @evaluator(compiled=True)
... def mean_discs(own, opp):
...     return 0.5 * (popcount(own) - popcount(opp))
>>> mean_discs.static_value(Position.initial().play("d3"))
-1.5
"""

import ctypes
import hashlib
import math
import re
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, get_args, overload

import numpy as np
from numba import from_dtype, njit, types
from numpy.typing import ArrayLike, NDArray

from reversi_env import Position, Rules
from reversi_env.batch import checked_boards
from reversi_env.compiler.kernel import FAILURES, explanations
from reversi_env.errors import quoted
from reversi_env.rules import Variant
from search.evaluators.base import Evaluator, EvaluatorError, checked_name
from search.evaluators.formula import Formula, Weight
from search.kernels.evaluate import CALLBACK, code_fingerprint, fingerprint, register_function
from search.kernels.heuristics import BOARD_FIELDS, in_discs, record_type

ValueFunction = Callable[[Position], float]
_C_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_uint64, ctypes.c_uint64)


class SlowEvaluatorWarning(UserWarning):
    """An evaluator that runs in Python for every position of a search."""


class PythonEvaluator(Evaluator):
    """An evaluator that the search calls in Python for every position; it may run any code, but is slow.

    A subclass defines `static_value`. If `static_value` raises an exception, the search stops and raises the same exception.
    """

    def __init__(self, name: str) -> None:
        self.name = checked_name(name)
        self._functions: dict[Rules, Any] = {}
        self._failure: BaseException | None = None
        self._stops: list[Callable[[], None]] = []

    @abstractmethod
    def static_value(self, position: Position) -> float:
        """Return the value of the position in discs for the side to move, black or white."""

    def static_values(self, own: ArrayLike, opp: ArrayLike, rules: Rules) -> NDArray[np.float64]:
        boards = zip(*(side.tolist() for side in checked_boards(own, opp, rules)), strict=True)
        return np.array([self.static_value(Position(rules, *each)) for each in boards], np.float64)

    def record(self, rules: Rules) -> np.ndarray:
        """Return a record with the address of a function that calls this evaluator."""
        if not self._functions:
            warnings.warn(
                f"evaluator {self.name!r} is called in Python for every position: thousands per second, not millions",
                SlowEvaluatorWarning,
                stacklevel=3,
            )
        if rules not in self._functions:
            self._functions[rules] = _C_FUNCTION(lambda own, opp: self._evaluate_safely(Position(rules, own, opp)))
        net = np.zeros(1, CALLBACK)
        net["value_function"] = ctypes.cast(self._functions[rules], ctypes.c_void_p).value
        return net

    @contextmanager
    def during_search(self, stop: Callable[[], None]) -> Iterator[None]:
        """Return the context of a search. An exception of the evaluator calls *stop*; the context raises it at its end."""
        self._stops.append(stop)
        try:
            yield
        finally:
            self._stops.remove(stop)
            failure = self._failure
            if not self._stops:
                self._failure = None
        if failure is not None:
            raise failure

    def _evaluate_safely(self, position: Position) -> float:
        if self._failure is not None:
            return 0.0
        try:
            return self.static_value(position)
        except BaseException as failure:
            if not self._stops:
                raise  # outside a search only ctypes reports it
            self._failure = failure
            for stop in self._stops:
                stop()
            return 0.0

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_functions": {}, "_failure": None, "_stops": []}


class FunctionEvaluator(PythonEvaluator):
    """An evaluator that uses a Python function; calling the evaluator calls the function."""

    def __init__(self, function: ValueFunction, name: str, written_for: Variant = "normal") -> None:
        super().__init__(name)
        self._function, self.written_for = function, written_for

    def __call__(self, position: Position) -> float:
        return self._function(position)

    def static_value(self, position: Position) -> float:
        """Return the function's value, limited to the range of scores, and negated unless it was written for this game."""
        result = self._function(position)
        try:
            value = float(result)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if math.isnan(value):
            raise EvaluatorError(
                f"evaluator {self.name} gave {quoted(result)} for {position.to_text()}: expected a number; correct the function"
            )
        limit = position.rules.square_count - 0.5
        return max(-limit, min(limit, value if self.written_for == position.rules.variant else -value))


@overload
def evaluator(function: ValueFunction) -> FunctionEvaluator: ...
@overload
def evaluator(
    *, compiled: Literal[False] = False, name: str | None = None, written_for: Variant = "normal"
) -> Callable[[ValueFunction], FunctionEvaluator]: ...
@overload
def evaluator(
    *,
    compiled: Literal[True],
    name: str | None = None,
    written_for: Variant = "normal",
    weights: Mapping[str, Weight] | None = None,
) -> Callable[[Callable[..., Any]], Formula]: ...
def evaluator(
    function: ValueFunction | None = None,
    *,
    compiled: bool = False,
    name: str | None = None,
    written_for: Variant = "normal",
    weights: Mapping[str, Weight] | None = None,
) -> Any:
    """Decorate a function that returns a position's value in discs for the side to move.

    A plain function takes a `Position` and may use all of Python; it evaluates about ten thousand positions per second. With
    *compiled* numba compiles the function as a part of the search, and it is as fast as the published heuristics. A compiled
    function takes two boards (uint64), *own* and *opp*, or a record and the two boards. The record has the *weights* by name, and
    the boards ``playable``, ``corners``, ``edge_rows``, ``edge_columns`` and ``square_classes``. `reversi_env.kernels` has
    functions that take boards. NaN counts as 0 in a compiled function, and raises an `EvaluatorError` in a plain one.

    *written_for* is the game of the function; in the other game its values are negated. *name* is by default the function's name
    with hyphens.
    """

    def make(decorated: Callable[..., Any]) -> Evaluator:
        if not callable(decorated) or isinstance(decorated, type) or not hasattr(decorated, "__name__"):
            raise EvaluatorError(
                f"{quoted(decorated)} is not a function: expected one; for a torch module use models.TorchEvaluator(module)"
            )
        if written_for not in get_args(Variant):
            raise EvaluatorError(f"written_for={quoted(written_for)}: expected one of {', '.join(get_args(Variant))}")
        named = name or decorated.__name__.replace("_", "-").lower()
        if compiled:
            return _formula(decorated, named, dict(weights or {}), written_for)
        if weights is not None:
            raise EvaluatorError(
                f"weights of evaluator {named}: expected compiled=True with weights; add compiled=True"
            )
        return FunctionEvaluator(decorated, named, written_for)

    return make if function is None else make(function)


def _numba_error_summary(error: BaseException) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m|\.* Raised from None", "", str(error)).removeprefix(
        "Failed in nopython mode pipeline"
    )
    text = re.sub(r"Record\(.*?;(True|False)\)", "record", text)  # all its fields
    words = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("(step")]
    call, place = re.search(r">>> (.*)", text), re.search(r"line (\d+):", text)
    return (words or [""])[0].rstrip(".:") + (f" {call[1]}" if call else "") + (f", line {place[1]}" if place else "")


def _check_compiles(name: str, function: Any, arguments: tuple[Any, ...]) -> None:
    try:
        function.compile(arguments)
    except KeyError as error:
        raise EvaluatorError(
            f"field {error} in evaluator {name}: expected a field of its record; add it to weights, or correct its name"
        ) from None
    except FAILURES as error:
        raise EvaluatorError(
            f"evaluator {name} ({_numba_error_summary(error)}): expected code that numba can compile; change that line"
        ) from None
    result = function.overloads[arguments].signature.return_type
    if not isinstance(result, (types.Number, types.Boolean)):
        raise EvaluatorError(f"evaluator {name} returns {result}: expected a number; return the value in discs")


def _formula(function: Callable[..., Any], name: str, weights: dict[str, Weight], written_for: Variant) -> Formula:
    """Return the compiled function as a formula, which its record type identifies in the search."""
    # A function that was changed, in a notebook or by another constant, needs a new identity.
    code = code_fingerprint(function)
    source = hashlib.sha256(f"{fingerprint(function)} {code}".encode()).hexdigest()
    mark = f"{checked_name(name)}-{source[:16]}".replace("-", "_")
    for used in weights.keys() & {field[0] for field in BOARD_FIELDS}:
        raise EvaluatorError(
            f"weight {quoted(used)} of evaluator {name}: expected a name that is not a field of the record; rename the weight"
        )
    fields = [(key, np.float64, np.shape(weight)) for key, weight in weights.items()]
    kind, inner = record_type((mark, np.uint8), *fields), njit(nogil=True, error_model="numpy")(function)

    def of_boards(net, own, opp):  # type: ignore[no-untyped-def]
        value = np.float64(inner(own, opp))
        return in_discs(net, value if value == value else 0.0)

    def of_record(net, own, opp):  # type: ignore[no-untyped-def]
        value = np.float64(inner(net, own, opp))
        return in_discs(net, value if value == value else 0.0)

    count = function.__code__.co_argcount
    if count not in (2, 3):
        raise EvaluatorError(
            f"evaluator {name} has {count} parameters: expected (own, opp) or (record, own, opp); change its parameters"
        )
    register_function(kind, of_boards if count == 2 else of_record, source)
    boards = (types.uint64, types.uint64)
    explanations[mark] = partial(_check_compiles, name, inner, boards if count == 2 else (from_dtype(kind), *boards))

    return Formula(
        name, kind, weights, written_for=written_for, derive=lambda weights, rules: {**weights, mark: 0}, code=code
    )
