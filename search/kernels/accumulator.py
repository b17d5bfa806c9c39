"""Incremental evaluation: an evaluator keeps an accumulator per ply, updated by each move instead of recomputed from the board.

As in NNUE, the search calls `refresh_accumulator` at a new position, `update_accumulator` after a move and `accumulator_value` for
the value; `update_for_value` is an update for a position that is evaluated but not searched. The thread's record has memory for one
accumulator per level (number of empty squares). An evaluator registers its functions by the dtype of its record; the others have
no accumulator and are called with the boards.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numba.np.numpy_support import from_dtype

from search.kernels.evaluate import evaluate

#: Number of levels, and bytes of an accumulator.
LEVELS, ACCUMULATOR_BYTES = 65, 256
#: The field of a thread's record.
ACCUMULATORS: tuple[Any, ...] = ("states", np.uint8, (LEVELS, ACCUMULATOR_BYTES))


class IncrementalEvaluator(NamedTuple):
    """The kernels of an incremental evaluator; *accumulator* is the address of a level's memory.

    ``refresh_accumulator(net, accumulator, own, opp)`` computes it from the boards. ``update_accumulator(net, accumulator, sq,
    flipped)`` writes that of the next level, which lies before it; ``update_for_value`` writes only what the value needs.
    ``accumulator_value(net, accumulator, empties, own, opp, moves)`` returns the value of the position with these legal *moves*.
    """

    refresh_accumulator: Callable
    update_accumulator: Callable
    update_for_value: Callable
    accumulator_value: Callable


_INCREMENTAL: dict[types.Type, IncrementalEvaluator] = {}
_STATELESS = IncrementalEvaluator(
    lambda net, accumulator, own, opp: None,
    lambda net, accumulator, sq, flipped: None,
    lambda net, accumulator, sq, flipped: None,
    lambda net, accumulator, empties, own, opp, moves: evaluate(net, own, opp),
)


def register_incremental(dtype: np.dtype, functions: IncrementalEvaluator) -> None:
    """Register the kernels of the evaluator with records of *dtype*; `evaluator` registers the rest."""
    _INCREMENTAL[from_dtype(np.dtype(dtype))] = functions


def refresh_accumulator(net: Any, accumulator: Any, own: Any, opp: Any) -> None:
    """Compute the accumulator of a position. For use in kernels, as all of these."""


def update_accumulator(net: Any, accumulator: Any, sq: Any, flipped: Any) -> None:
    """Write the accumulator after the move *sq*, which flips *flipped*, into the next level's accumulator."""


def update_for_value(net: Any, accumulator: Any, sq: Any, flipped: Any) -> None:
    """Update only what `accumulator_value` needs, for a position that is not searched."""


def accumulator_value(net: Any, accumulator: Any, empties: Any, own: Any, opp: Any, moves: Any) -> float:
    """Return `evaluate` of the boards of *accumulator*, with *empties* empty squares and the legal *moves*."""
    raise TypeError("accumulator_value is compiled into kernels")


@overload(refresh_accumulator)
def _refresh_accumulator(net, accumulator, own, opp):
    return _INCREMENTAL.get(net, _STATELESS).refresh_accumulator


@overload(update_accumulator)
def _update_accumulator(net, accumulator, sq, flipped):
    return _INCREMENTAL.get(net, _STATELESS).update_accumulator


@overload(update_for_value)
def _update_for_value(net, accumulator, sq, flipped):
    return _INCREMENTAL.get(net, _STATELESS).update_for_value


@overload(accumulator_value)
def _accumulator_value(net, accumulator, empties, own, opp, moves):
    return _INCREMENTAL.get(net, _STATELESS).accumulator_value


@intrinsic
def accumulator_of(typing_context: Any, thread: Any, level: Any) -> Any:
    """Return the address of a level's accumulator in the record *thread*, which must have the field `ACCUMULATORS`."""
    first = thread.offset(ACCUMULATORS[0])

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        record, level = args
        place = builder.mul(level, level.type(ACCUMULATOR_BYTES))
        return builder.add(builder.ptrtoint(record, level.type), builder.add(place, level.type(first)))

    return types.int64(thread, types.int64), codegen
