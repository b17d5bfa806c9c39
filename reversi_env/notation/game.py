"""`Game`: a recorded game, which every reader of game files returns and every writer takes.

It has the content of the record; `Game.positions` replays the moves.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from reversi_env.errors import NotationError
from reversi_env.notation.text import within
from reversi_env.position import Position

#: How an unfinished game ended: by resignation, by the clock, or with a score that the players agreed on.
Ending = Literal["resigned", "timeout", "agreed"]


@dataclass(frozen=True, slots=True)
class Annotation:
    """The evaluation and the time of one move.

    ``evaluation`` is in discs for the side that made the move; ``seconds`` is the time that the move took.
    """

    evaluation: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Game:
    """A recorded game.

    ``moves`` are names (``'f5'`` …) with every pass explicit (``'pass'``), the first one by the side to move in
    ``start``. The readers return legal games only; whether the moves of a `Game` made by hand are legal is checked when
    they are replayed.

    ``result`` is the recorded result in discs for black, positive if black won; it need not follow from the moves,
    since games end by resignation and on time (``ending``). ``annotations`` has one entry per move, or is empty. ``tags``
    has the other properties of the game under their names in the format.

    >>> game = Game(Position.initial(), ("f5", "d6"))
    >>> [position.round for position in game.positions()]
    [4, 5, 6]
    """

    start: Position
    moves: tuple[str, ...] = ()
    black: str | None = None
    white: str | None = None
    result: float | None = None
    ending: Ending | None = None
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: tuple[Annotation, ...] = ()

    def __post_init__(self) -> None:
        rules = self.start.rules
        object.__setattr__(self, "moves", tuple(rules.name_of(rules.action_from_name(move)) for move in self.moves))
        object.__setattr__(self, "annotations", tuple(self.annotations))
        object.__setattr__(self, "tags", dict(self.tags))
        if self.annotations and len(self.annotations) != len(self.moves):
            raise NotationError(
                f"{len(self.annotations)} annotations: expected none or {len(self.moves)}, one per move"
            )

    def positions(self) -> Iterator[Position]:
        """Yield the start and the position after each move, ``len(moves) + 1`` in all."""
        position = self.start
        yield position
        for number, move in enumerate(self.moves, 1):
            with within(f"move {number}"):
                position = position.play(move)
            yield position

    def final(self) -> Position:
        """Return the position after the last move."""
        *_, last = self.positions()
        return last


def play_recorded(position: Position, move: str) -> tuple[tuple[str, ...], Position]:
    """Play the next *move* of a record that may leave passes out: (names of what was played, position after it)."""
    action = position.rules.action_from_name(move)
    name = position.rules.name_of(action)
    if action != position.rules.pass_action and position.must_pass():
        pass_name = position.rules.name_of(position.rules.pass_action)
        return (pass_name, name), position.play(pass_name).play(action)
    return (name,), position.play(action)
