"""`Agent`: what every player is, with the defaults that hold for most."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Self

from reversi_env import Position, Rules


class Agent(ABC):
    """A player. It may keep state between moves (a random generator, a table), but none that a new game must reset.

    A player of one's own derives from this class and defines `choose`; it can then play matches, tournaments and environments.

    >>> class First(Agent):
    ...     def choose(self, position):
    ...         return position.legal_actions()[0]
    >>> Position.initial().rules.name_of(First().choose(Position.initial()))
    'd3'
    """

    #: Threads that it thinks with.
    threads: int = 1
    #: Seconds a move that it was given; None: its moves are not timed.
    time: float | None = None
    #: Whether a game may begin in any position; else only moves from the start of the game lead anywhere.
    sets_up_positions: bool = True

    @abstractmethod
    def choose(self, position: Position) -> int:
        """The action to play in *position*, whose game is not over; the pass where nothing else is legal."""

    def choose_after(self, start: Position, moves: Sequence[str], position: Position | None = None) -> int:
        """The action to play after *moves*, by name with every pass, from *start*: for players that follow whole games.

        *position* is where they lead to, if the caller knows it.
        """
        return self.choose(start.play_all(moves) if position is None else position)

    def choose_many(self, positions: Iterable[Position]) -> list[int]:
        """The actions to play in all *positions*."""
        return [self.choose(position) for position in positions]

    def check(self, rules: Rules) -> None:
        """Raise a ReversiError if the agent cannot play that game; cheap, nothing is compiled."""

    def prepare(self, rules: Rules) -> None:
        """Load, compile or start what the agent needs for that game, so that no clock pays for it."""

    def ingredients(self, rules: Rules) -> dict[str, str]:
        """Hashes of what decides its moves in that game and may change behind the names in its spec: weights, a book."""
        return {}

    def stop(self) -> None:
        """Make a running `choose` return as soon as it can; callable from any thread."""

    def close(self) -> None:
        """End what the agent keeps running: another program."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
