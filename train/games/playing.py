"""One game between two agents: played to the end, or to the failure of a player that is another program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from time import perf_counter

from reversi_env import Colour
from reversi_env.rules import PASS_NAME
from search.agent import Agent
from search.external.failure import EngineFailure
from train.games.openings import Opening


@dataclass(frozen=True, slots=True)
class Forfeit:
    """Who could not go on, the kind of failure in a word (see `search.external.failure`), and what happened."""

    colour: Colour
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlayedGame:
    """A game. ``moves`` are those after the opening, passes included, ``seconds`` what the players took for each (a pass: 0).

    ``discs`` is the result for black, positive if black won, the empty squares with the winner; a forfeit costs all squares.
    """

    opening: Opening
    moves: tuple[str, ...]
    seconds: tuple[float, ...]
    discs: int
    forfeit: Forfeit | None = None

    def seconds_of(self, colour: Colour) -> list[float]:
        """What each move of one side took, passes left out."""
        turns = cycle((self.opening.position.turn, self.opening.position.turn.other))
        timed = zip(self.moves, self.seconds, turns, strict=False)
        return [taken for move, taken, turn in timed if turn == colour and move != PASS_NAME]


def play_game(players: Mapping[Colour, Agent], opening: Opening) -> PlayedGame:
    """Let *players* finish the *opening*. Passes are made for them."""
    position, moves, seconds = opening.position, list(opening.moves), list[float]()
    forfeit = None
    while not position.is_over():
        began = perf_counter()
        try:
            move = PASS_NAME
            if not position.must_pass():
                action = players[position.turn].choose_after(opening.start, moves, position)
                move = position.rules.name_of(action)
        except EngineFailure as failure:
            forfeit = Forfeit(position.turn, failure.kind, str(failure))
            break
        seconds.append(0.0 if move == PASS_NAME else round(perf_counter() - began, 6))
        moves.append(move)
        position = position.play(move)
    discs = position.score(Colour.BLACK) if forfeit is None else int(forfeit.colour) * position.rules.square_count
    return PlayedGame(opening, tuple(moves[len(opening.moves) :]), tuple(seconds), discs, forfeit)
