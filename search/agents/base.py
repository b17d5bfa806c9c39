"""`Agent`: the base class of agents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from reversi_env import Position, Rules
from reversi_env.options import Options

if TYPE_CHECKING:
    import numpy as np

    from search.engine.limits import Limits, SearchResult


class Agent(ABC):
    """An agent that chooses moves. State that it keeps between moves must also be valid in a new game.

    Subclasses implement `choose`; they can then play matches, tournaments and environments.

    >>> class First(Agent):
    ...     def choose(self, position):
    ...         return position.legal_actions()[0]
    >>> Position.initial().rules.name_of(First().choose(Position.initial()))
    'd3'
    """

    #: The options that a spec of an agent of another package may set, as keyword arguments of its class.
    spec_options: ClassVar[type[Options]] = Options
    #: Number of threads of its searches.
    threads: int = 1
    #: Time per move in seconds; None: moves are not timed.
    time: float | None = None
    #: Whether a game may begin in any position; otherwise only moves from the start of the game reach one.
    sets_up_positions: bool = True

    @abstractmethod
    def choose(self, position: Position) -> int:
        """Return the action to play in *position*, whose game is not over; the pass if nothing else is legal."""

    def choose_after(self, start: Position, moves: Sequence[str], position: Position | None = None) -> int:
        """Return the action to play after *moves* from *start*, by name with every pass: for agents that follow whole games.

        *position* is the position after the moves, if the caller has computed it.
        """
        return self.choose(start.play_all(moves) if position is None else position)

    def check(self, rules: Rules) -> None:
        """Raise a ReversiError if the agent cannot play that game; cheap, nothing is compiled."""

    def prepare(self, rules: Rules) -> None:
        """Load, compile or start everything the agent needs for that game, so that its first move is not slower than the others."""

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        """Return content hashes of the files that determine the agent's moves in that game, such as weights and a book."""
        return {}

    def stop(self) -> None:
        """Make a running `choose` return as soon as it can; callable from any thread."""

    def close(self) -> None:
        """End external programs of the agent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class TimedAgent(Agent):
    """An agent whose searches have limits and return values, so that it can play by a game clock; *limits* are the default."""

    limits: Limits

    @abstractmethod
    def search(
        self,
        position: Position,
        limits: Limits | None = None,
        *,
        multi_pv: int = 1,
        rng: np.random.Generator | None = None,
    ) -> SearchResult:
        """Return the result of a search within *limits*, by default its own; *rng* replaces the agent's own generator."""
