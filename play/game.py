"""`Game`: a game in progress, with its moves and those taken back, for the terminal, the server and the protocols.

>>> game = Game()
>>> game.play("f5")
>>> game.play("d6", seconds=1.5)
>>> game.undo()
'd6'
>>> game.position.turn
<Colour.WHITE: 1>
>>> game.redo()
'd6'
>>> game.to_transcript()
'f5d6'

Games that are finished and stored are `reversi_env.notation.Game`, which `record` and `from_record` convert from and to.
"""

from __future__ import annotations

from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import IllegalMoveError
from reversi_env.notation import Annotation, Ending, read_ggf_game, read_transcript, write_ggf, write_transcript
from reversi_env.notation import Game as Record
from reversi_env.notation.game import play_recorded
from reversi_env.rules import BLACK, PASS_NAME, Colour


class Game:
    """A game in progress, from *start*: a position, or the rules whose usual start it is (by default standard 8x8 Reversi).

    Every pass is a move, named ``'pass'``. If a square is played where the side to move must pass, the pass before it is added.
    `undo` and `redo` go one move back and forth; a new move deletes the moves that were taken back.

    ``moves`` has the names of the moves, ``positions`` the start and the position after each move, ``annotations`` seconds and
    evaluation of each. A game is over when neither side can move, or after `end`, whose reason is ``ending``. *black* and *white*
    are the players' names.
    """

    def __init__(
        self, start: Position | Rules | None = None, black: str | None = None, white: str | None = None
    ) -> None:
        self.start = start if isinstance(start, Position) else Position.initial(start)
        self.black, self.white = black, white
        self.moves: tuple[str, ...] = ()
        self.positions: tuple[Position, ...] = (self.start,)
        self.annotations: tuple[Annotation, ...] = ()
        self.ending: Ending | None = None
        self._loser: Colour | None = None
        self._taken_back: list[tuple[str, Annotation]] = []

    @property
    def rules(self) -> Rules:
        return self.start.rules

    @property
    def position(self) -> Position:
        return self.positions[-1]

    @property
    def turn(self) -> Colour:
        return self.position.turn

    @property
    def last_action(self) -> int | None:
        """The last move as an action of the rules, for the renderers; None at the start."""
        return self.rules.action_from_name(self.moves[-1]) if self.moves else None

    def mover(self, number: int) -> Colour:
        """Return the side that made move *number*, counted from 0."""
        return self.positions[number].turn

    def is_over(self) -> bool:
        return self.ending is not None or self.position.is_over()

    def score(self, colour: Colour = BLACK) -> int:
        """Return the result in discs for *colour*: the empty squares count for the winner.

        A side that resigned or ran out of time loses all squares. If the players agreed on the score, the discs on the board count.
        """
        if self._loser is not None:
            return -self.rules.square_count if colour == self._loser else self.rules.square_count
        if self.ending == "agreed" and not self.position.is_over():
            return self.rules.sign * self.position.disc_difference(colour)
        return self.position.score(colour)

    def winner(self) -> Colour | None:
        """Return the side that won; None for a draw or an unfinished game."""
        if not self.is_over() or self.score() == 0:
            return None
        return BLACK if self.score() > 0 else BLACK.other

    def play(self, move: str | int, *, seconds: float | None = None, evaluation: float | None = None) -> None:
        """Make *move*, a square, an action or the pass; *seconds* and *evaluation* (the mover's, in discs) are stored with it."""
        if self.ending is not None:
            raise IllegalMoveError(f"move {move!r}: the game is over ({self.ending}), expected no move")
        name = move if isinstance(move, str) else self.rules.name_of(move)
        played, _ = play_recorded(self.position, name)
        for forced in played[:-1]:
            self._make(forced, Annotation())
        self._make(played[-1], Annotation(evaluation, seconds))
        self._taken_back.clear()

    def play_forced_pass(self) -> bool:
        """Pass if the side to move has to; return whether it had to."""
        forced = not self.is_over() and self.position.must_pass()
        if forced:
            self.play(PASS_NAME)
        return forced

    def undo(self) -> str | None:
        """Take back the last move, or the end of the game; return the move, or None if it was the end."""
        if self.ending is not None:
            self.ending = self._loser = None
            return None
        if not self.moves:
            raise ReversiError("no move to take back: the game is at its start")
        move = self.moves[-1]
        self._taken_back.append((move, self.annotations[-1]))
        self.moves, self.positions, self.annotations = self.moves[:-1], self.positions[:-1], self.annotations[:-1]
        return move

    def redo(self) -> str:
        """Make the move again that was taken back last, and return it."""
        if not self._taken_back:
            raise ReversiError("no move to make again: none was taken back")
        move, note = self._taken_back.pop()
        self._make(move, note)
        return move

    def undo_to(self, colours: set[Colour], first: int = 0) -> list[str]:
        """Take back until one of *colours* is to move and has a choice; return the moves in the order they were taken back.

        The *first* moves stay.
        """
        if self.ending is not None:
            self.undo()
            return []
        earlier = [
            number
            for number, position in enumerate(self.positions[:-1])
            if number >= first and position.turn in colours and not position.must_pass()
        ]
        if not earlier:
            raise ReversiError("no move to take back: you have made none")
        return [str(self.undo()) for _ in range(len(self.moves) - earlier[-1])]

    def redo_to(self, colours: set[Colour]) -> list[str]:
        """Make moves again until one of *colours* has a choice, or none is left; return them."""
        moves = [self.redo()]
        while self._taken_back and (self.turn not in colours or self.position.must_pass()):
            moves.append(self.redo())
        return moves

    def end(self, ending: Ending, loser: Colour | None = None) -> None:
        """End the game early: *loser* resigned or ran out of time, or the players agreed on a score."""
        if self.is_over():
            raise ReversiError(f"the game cannot end as {ending}: it is over already")
        if (loser is None) != (ending == "agreed"):
            raise ReversiError(f"ending {ending} with loser {loser}: expected a loser, except for 'agreed'")
        self.ending, self._loser = ending, loser

    def _make(self, move: str, note: Annotation) -> None:
        self.positions += (self.position.play(move),)
        self.moves += (move,)
        self.annotations += (note,)

    def record(self) -> Record:
        noted = any(note != Annotation() for note in self.annotations)
        result = float(self.score()) if self.is_over() else None
        notes = self.annotations if noted else ()
        return Record(self.start, self.moves, self.black, self.white, result, self.ending, annotations=notes)

    @classmethod
    def from_record(cls, record: Record) -> Game:
        game = cls(record.start, record.black, record.white)
        notes = record.annotations or [Annotation()] * len(record.moves)
        for move, note in zip(record.moves, notes, strict=True):
            game._make(move, note)
        if record.ending == "agreed" and not game.is_over():
            game.end("agreed")
        elif record.ending is not None and record.result and not game.is_over():
            game.end(record.ending, BLACK if record.result < 0 else BLACK.other)
        return game

    def to_ggf(self) -> str:
        """Return the game on one line of GGF, which keeps the start, the names, the times and the result."""
        return write_ggf(self.record())

    @classmethod
    def from_ggf(cls, text: str) -> Game:
        return cls.from_record(read_ggf_game(text))

    def to_transcript(self) -> str:
        """Return the moves as one word, ``f5d6c3``; a pass is ``--`` only at the end."""
        explicit = self.moves[-1:] == (PASS_NAME,)
        return write_transcript(self.moves[:-1]) + ("--" if explicit else "".join(self.moves[-1:]))

    @classmethod
    def from_transcript(cls, text: str, start: Position | Rules | None = None) -> Game:
        """Read a transcript, whose start is not part of it."""
        begin = start if isinstance(start, Position) else Position.initial(start)
        return cls.from_record(read_transcript(text, begin))
