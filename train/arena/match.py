"""Games between agents, one at a time: one game, and a match over paired openings, each played twice with the colours exchanged.

Pairing takes the luck of the opening out of the result: only a difference between the agents is left. A player that is another
program and fails – it crashes, hangs, plays an illegal move – loses the game by all squares of the board, with the reason recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from numbers import Integral
from time import perf_counter
from typing import Any, Self

import numpy as np

from reversi_env import BLACK, WHITE, Colour, Position, ReversiError, Rules
from reversi_env.errors import quoted
from reversi_env.rules import PASS_NAME, checked_rules
from search.agents.base import Agent
from search.agents.external.process import EngineFailure
from search.agents.spec import make_agent
from train.arena.openings import Opening, random_opening
from train.arena.results import Results


@dataclass(frozen=True, slots=True)
class Forfeit:
    """Who could not go on, the kind of failure in a word (see `search.agents.external.process`), and what happened."""

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

    def discs_of(self, colour: Colour) -> int:
        """The result for one side."""
        return self.discs if colour == BLACK else -self.discs

    def seconds_of(self, colour: Colour) -> list[float]:
        """What each move of one side took, passes left out."""
        turns = cycle((self.opening.position.turn, self.opening.position.turn.other))
        timed = zip(self.moves, self.seconds, turns, strict=False)
        return [taken for move, taken, turn in timed if turn == colour and move != PASS_NAME]


@dataclass(frozen=True, eq=False)
class PlayerResults(Results):
    """The results of one player, from games of which all is known; ``sides`` has them with its colour in each."""

    sides: tuple[tuple[PlayedGame, Colour], ...] = ()

    @classmethod
    def of(cls, sides: Iterable[tuple[PlayedGame, Colour]], **others: Any) -> Self:
        """The results of these games."""
        sides = tuple(sides)
        discs = np.array([game.discs_of(colour) for game, colour in sides], np.int64)
        return cls(discs, sides=sides, **others)

    @classmethod
    def of_match(cls, played: Iterable[PlayedGame]) -> Self:
        """The results of agent A, which is black in the even games of a match."""
        return cls.of(zip(played, cycle((BLACK, WHITE)), strict=False))

    @property
    def opponent(self) -> PlayerResults:
        """The same games from the other side."""
        return PlayerResults.of(((game, colour.other) for game, colour in self.sides), paired=self.paired)

    @property
    def forfeits(self) -> list[Forfeit]:
        """How the player failed, for each game that it lost in that way."""
        found = [(game.forfeit, colour) for game, colour in self.sides]
        return [forfeit for forfeit, colour in found if forfeit is not None and forfeit.colour == colour]

    @cached_property
    def seconds(self) -> list[float]:
        """What each of the player's moves took."""
        return [taken for game, colour in self.sides for taken in game.seconds_of(colour)]

    @property
    def seconds_per_move(self) -> float:
        """The player's mean thinking time."""
        return sum(self.seconds) / max(1, len(self.seconds))


def play_game(players: Mapping[Colour, Agent], opening: Opening) -> PlayedGame:
    """Let *players* finish the *opening*. Passes are made for them."""
    position, moves, seconds = opening.position, list(opening.moves), list[float]()
    forfeit = None
    while not position.is_over():
        began = perf_counter()
        try:
            move = PASS_NAME
            if not position.must_pass():
                move = _chosen_move(players[position.turn], opening.start, moves, position)
        except EngineFailure as failure:
            forfeit = Forfeit(position.turn, failure.kind, str(failure))
            break
        seconds.append(0.0 if move == PASS_NAME else round(perf_counter() - began, 6))
        moves.append(move)
        position = position.play(move)
    return PlayedGame(
        opening, tuple(moves[len(opening.moves) :]), tuple(seconds), result_of(position, forfeit), forfeit
    )


def result_of(position: Position, forfeit: Forfeit | None) -> int:
    """The result for black, in discs, of a game that ended there: by the rules, or by a *forfeit*."""
    return position.score(BLACK) if forfeit is None else int(forfeit.colour) * position.rules.square_count


def _chosen_move(player: Agent, start: Position, moves: Sequence[str], position: Position) -> str:
    """The move that a player chooses, by name, if it is legal."""
    action, legal = player.choose_after(start, moves, position), position.legal_actions()
    if not isinstance(action, Integral) or action not in legal:
        names = ", ".join(f"{one} ({position.rules.name_of(one)})" for one in legal)
        raise ReversiError(
            f"{type(player).__name__} has chosen action {quoted(action)} for {position.turn}: expected one of {names}"
        )
    return position.rules.name_of(int(action))


def play_match(
    agent_a: Agent | str,
    agent_b: Agent | str,
    games: int,
    rules: Rules | None = None,
    *,
    opening_plies: int = 6,
    seed: int = 0,
    on_game: Callable[[PlayerResults], None] = lambda result: None,
) -> PlayerResults:
    """Play *games* games (an even number: both colours of every opening); agent A's results, which *on_game* hears after each.

    Agents are given as they are or by their specs.
    """
    for name, number in (("games", games), ("opening_plies", opening_plies), ("seed", seed)):
        if isinstance(number, bool) or not isinstance(number, Integral) or number < 0:
            raise ReversiError(f"{name}={quoted(number)}: expected a whole number of 0 or more")
    if games < 2 or games % 2:
        raise ReversiError(f"{games} games: expected an even number, since every opening is played from both sides")
    rules = checked_rules(rules)
    first, second = players = [make_agent(agent) if isinstance(agent, str) else agent for agent in (agent_a, agent_b)]
    for agent in players:
        if not isinstance(agent, Agent):
            raise ReversiError(f"agent {quoted(agent)}: expected an Agent, or a text such as six-factor:depth=4")
        agent.prepare(rules)
    generator = np.random.default_rng(seed)
    played: list[PlayedGame] = []
    for _ in range(games // 2):
        opening = random_opening(rules, opening_plies, generator)
        for black, white in ((first, second), (second, first)):
            played.append(play_game({BLACK: black, WHITE: white}, opening))
            on_game(PlayerResults.of_match(played))
    return PlayerResults.of_match(played)
