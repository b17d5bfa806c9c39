"""`State`: games as a named tuple of arrays, one type for each game."""

from functools import cache
from typing import Any, NamedTuple

from reversi_env.rules import Rules, Variant

NORMAL_8X8 = Rules()


class State(NamedTuple):
    """Games as five arrays of one shape: numpy's, or torch's, where boards are int64, since torch has few functions of uint64.

    ``own``, ``opp``, ``legal``: bits of the 8x8 frame, a1 lowest: discs of the side to move, of the other side, and squares
    that may be played on. ``turn``: int8, the side to move, 0 black, 1 white. ``status``: int8, 0 while the game runs, 1 when
    neither side can move, 2 when the side to move has forfeited it by an illegal action.

    The game belongs to the type (``state.rules``), so that all fields are arrays, also for functions such as those of torch's
    pytree.
    """

    own: Any
    opp: Any
    legal: Any
    turn: Any
    status: Any

    rules = NORMAL_8X8  # type: ignore[misc]
    size, variant = rules.size, rules.variant  # type: ignore[misc]  # constants that any torch.compile can trace

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.own.shape)

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (self.rules.size, self.rules.variant, *self)


@cache
def state_type(size: int, variant: Variant) -> type[State]:
    """Return the type of a game's states; it does not depend on the start."""
    rules = Rules(size, variant)
    return (
        State
        if rules == NORMAL_8X8
        else type("State", (State,), {"__slots__": (), "rules": rules, "size": size, "variant": variant})
    )


def restored(size: int, variant: Variant, *fields: Any) -> State:
    """Return a state of a game from its arrays, as unpickling does."""
    return state_type(size, variant)(*fields)
