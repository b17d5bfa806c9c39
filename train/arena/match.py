"""Games between agents, one at a time: one game, and a match over paired openings, each played with both colours.

Pairs remove the effect of the opening from the result. An external program that fails (it crashes, hangs or plays an illegal
move) loses the game by all squares of the board, and the reason is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from numbers import Integral
from time import perf_counter
from typing import Any, Self

import numpy as np

from reversi_env import BLACK, WHITE, Colour, Position, ReversiError, Rules
from reversi_env.errors import check_integer, quoted
from reversi_env.rules import PASS_NAME, checked_rules
from search.agents.base import Agent
from search.agents.external.process import EngineFailure
from search.agents.spec import make_agent
from train.arena.openings import DEFAULT_PLIES, Opening, random_opening
from train.arena.results import Results


@dataclass(frozen=True, slots=True)
class Forfeit:
    """The side that failed, the kind of failure (see `search.agents.external.process`), and its message."""

    colour: Colour
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlayedGame:
    """A game: its moves after the opening with passes, and the seconds of each (a pass: 0).

    ``discs`` is the score for black, empty squares to the winner; a forfeit loses all squares.
    """

    opening: Opening
    moves: tuple[str, ...]
    seconds: tuple[float, ...]
    discs: int
    forfeit: Forfeit | None = None

    def discs_of(self, colour: Colour) -> int:
        return self.discs if colour == BLACK else -self.discs

    def seconds_of(self, colour: Colour) -> list[float]:
        """Return the seconds of each move of one side, without passes."""
        turns = cycle((self.opening.position.turn, self.opening.position.turn.other))
        timed = zip(self.moves, self.seconds, turns, strict=False)
        return [taken for move, taken, turn in timed if turn == colour and move != PASS_NAME]


@dataclass(frozen=True, eq=False)
class PlayerResults(Results):
    """The results of one player; ``sides`` has its games and its colour in each."""

    sides: tuple[tuple[PlayedGame, Colour], ...] = ()

    @classmethod
    def of(cls, sides: Iterable[tuple[PlayedGame, Colour]], **others: Any) -> Self:
        sides = tuple(sides)
        discs = np.array([game.discs_of(colour) for game, colour in sides], np.int64)
        return cls(discs, sides=sides, **others)

    @classmethod
    def of_match(cls, played: Iterable[PlayedGame]) -> Self:
        """Return the results of agent A, which is black in the even games of a match."""
        return cls.of(zip(played, cycle((BLACK, WHITE)), strict=False))

    @property
    def opponent(self) -> PlayerResults:
        return PlayerResults.of(((game, colour.other) for game, colour in self.sides), paired=self.paired)

    @property
    def forfeits(self) -> list[Forfeit]:
        forfeits = ((game.forfeit, colour) for game, colour in self.sides)
        return [forfeit for forfeit, colour in forfeits if forfeit is not None and forfeit.colour == colour]

    @cached_property
    def seconds(self) -> list[float]:
        return [taken for game, colour in self.sides for taken in game.seconds_of(colour)]

    @property
    def seconds_per_move(self) -> float:
        return sum(self.seconds) / max(1, len(self.seconds))


def play_game(players: Mapping[Colour, Agent], opening: Opening) -> PlayedGame:
    """Play a game from the *opening*; passes are automatic."""
    position, moves, seconds = opening.position, list(opening.moves), list[float]()
    forfeit = None
    while not position.is_over():
        began = perf_counter()
        try:
            move = PASS_NAME
            if not position.must_pass():
                move = chosen_move(players[position.turn], opening.start, moves, position)
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
    """Return the score for black of a game that ended in *position*: by the rules, or by a *forfeit*."""
    return position.score(BLACK) if forfeit is None else int(forfeit.colour) * position.rules.square_count


def chosen_move(player: Agent, start: Position, moves: Sequence[str], position: Position) -> str:
    """Return the name of the move that a player chooses; an illegal one raises."""
    action, legal = player.choose_after(start, moves, position), position.legal_actions()
    if not isinstance(action, Integral) or action not in legal:
        names = ", ".join(f"{option} ({position.rules.name_of(option)})" for option in legal)
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
    opening_plies: int | None = None,
    seed: int = 0,
    on_game: Callable[[PlayerResults], None] = lambda result: None,
) -> PlayerResults:
    """Play *games* games (an even number: both colours of every opening) between agents or specs; return A's results.

    *opening_plies*: by default 6, or 2 on 4x4. *on_game* is called with the results after each game.
    """
    rules = checked_rules(rules)
    plies = DEFAULT_PLIES[rules.size] if opening_plies is None else opening_plies
    for name, number in (("games", games), ("opening_plies", plies), ("seed", seed)):
        check_integer(name, number, 0, error=ReversiError)
    if games < 2 or games % 2:
        raise ReversiError(f"{games} games: expected an even number, since every opening is played from both sides")
    generator, played = np.random.default_rng(seed), list[PlayedGame]()
    with ExitStack() as opened:  # ends the external programs of specs
        first, second = players = [
            opened.enter_context(make_agent(agent)) if isinstance(agent, str) else agent for agent in (agent_a, agent_b)
        ]
        for agent in players:
            if not isinstance(agent, Agent):
                raise ReversiError(f"agent {quoted(agent)}: expected an Agent, or a text such as six-factor:depth=4")
            agent.prepare(rules)
        for _ in range(games // 2):
            opening = random_opening(rules, plies, generator)
            for black, white in ((first, second), (second, first)):
                played.append(play_game({BLACK: black, WHITE: white}, opening))
                on_game(PlayerResults.of_match(played))
    return PlayerResults.of_match(played)
