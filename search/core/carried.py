"""Evaluators that carry a state from move to move, so that a value need not begin with the whole board.

The search keeps room for a state at each level, a number of empty squares, in its record. It says where the search stands:
`begin` at a position, `after_move`; and asks for the value of that position, or of one that it only tries: `try_move`. What they
do, an evaluator registers by the type of its record, as it does with `evaluate`: the others carry nothing, and are asked as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numba.np.numpy_support import from_dtype

from search.core.evaluate import evaluate

#: Levels, and bytes of the room that each has for a state.
LEVELS, ROOM = 65, 256
#: The field that a search's record needs.
STATES: tuple[Any, ...] = ("states", np.uint8, (LEVELS, ROOM))


class Carried(NamedTuple):
    """What an evaluator does with its state, for use in kernels; *room* is the address of a level's room.

    ``begin(net, room, own, opp)`` writes a position's state. ``after_move(net, room, sq, turned)`` writes the state after a move
    into the next level's room, which lies before it; ``try_move(net, room, sq, turned)`` writes what a value needs of it, and no
    more. ``value_of(net, room, empties, own, opp, moves)`` is the value of the boards whose state it is, with so many empty
    squares and those legal *moves*.
    """

    begin: Callable
    after_move: Callable
    try_move: Callable
    value_of: Callable


_CARRIED: dict[types.Type, Carried] = {}
_NOTHING = Carried(
    lambda net, room, own, opp: None,
    lambda net, room, sq, turned: None,
    lambda net, room, sq, turned: None,
    lambda net, room, empties, own, opp, moves: evaluate(net, own, opp),
)


def carries(dtype: np.dtype, functions: Carried) -> None:
    """Register what the evaluator with records of *dtype* does with its state; `evaluator` registers the rest."""
    _CARRIED[from_dtype(np.dtype(dtype))] = functions


def begin(net: Any, room: Any, own: Any, opp: Any) -> None:
    """Write the state of a position. For use in kernels, as all of these."""


def after_move(net: Any, room: Any, sq: Any, turned: Any) -> None:
    """Write the state after the move *sq*, which turns *turned*, into the next level's room."""


def try_move(net: Any, room: Any, sq: Any, turned: Any) -> None:
    """`after_move` as far as `value_of` needs it, for a position that is not searched."""


def value_of(net: Any, room: Any, empties: Any, own: Any, opp: Any, moves: Any) -> float:
    """`evaluate` of the boards whose state *room* has, with so many *empties* and those legal *moves*."""
    raise TypeError("value_of is compiled into kernels")


@overload(begin)
def _begin(net, room, own, opp):
    return _CARRIED.get(net, _NOTHING).begin


@overload(after_move)
def _after_move(net, room, sq, turned):
    return _CARRIED.get(net, _NOTHING).after_move


@overload(try_move)
def _try_move(net, room, sq, turned):
    return _CARRIED.get(net, _NOTHING).try_move


@overload(value_of)
def _value_of(net, room, empties, own, opp, moves):
    return _CARRIED.get(net, _NOTHING).value_of


@intrinsic
def room_of(typing_context: Any, work: Any, level: Any) -> Any:
    """Address of a level's room in the record *work*, which must have the field `STATES`."""
    first = work.offset(STATES[0])

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        record, level = args
        place = builder.mul(level, level.type(ROOM))
        return builder.add(builder.ptrtoint(record, level.type), builder.add(place, level.type(first)))

    return types.int64(work, types.int64), codegen
