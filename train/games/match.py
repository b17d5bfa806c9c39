"""A match between two agents over paired openings: each opening is played twice, with the colours exchanged.

Pairing takes the luck of the opening out of the result: only a difference between the agents is left. A player that is another
program and fails – it crashes, hangs, plays an illegal move – loses the game by all squares of the board, with the reason recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from reversi_env import BLACK, WHITE, Colour, ReversiError, Rules
from search.agent import Agent
from train.games.openings import random_opening
from train.games.playing import PlayedGame, play_game
from train.games.results import Results


@dataclass(frozen=True, eq=False)
class MatchResult(Results):
    """All games so far from agent A's side; A is black in the even ones. Players are called ``"a"`` and ``"b"``."""

    played: tuple[PlayedGame, ...] = ()

    @classmethod
    def of(cls, played: Sequence[PlayedGame]) -> MatchResult:
        """The result of *played* games."""
        discs = [-game.discs if number % 2 else game.discs for number, game in enumerate(played)]
        return cls(np.array(discs, np.int64), played=tuple(played))

    def forfeits(self, player: str) -> list[str]:
        """Why the player failed, for each game that it lost in that way."""
        return [
            game.forfeit.reason
            for game, colour in self._sides(player)
            if game.forfeit is not None and game.forfeit.colour == colour
        ]

    def seconds_per_move(self, player: str) -> float:
        """The player's mean thinking time."""
        seconds = [taken for game, colour in self._sides(player) for taken in game.seconds_of(colour)]
        return sum(seconds) / max(1, len(seconds))

    def _sides(self, player: str) -> list[tuple[PlayedGame, Colour]]:
        """The games with the player's colour."""
        colours = (BLACK, WHITE) if player == "a" else (WHITE, BLACK)
        return [(game, colours[number % 2]) for number, game in enumerate(self.played)]


def play_match(
    agent_a: Agent,
    agent_b: Agent,
    games: int,
    rules: Rules | None = None,
    *,
    opening_plies: int = 6,
    seed: int = 0,
    on_game: Callable[[MatchResult], None] = lambda result: None,
) -> MatchResult:
    """Play *games* games (an even number: both colours of every opening) and call *on_game* after each."""
    if games < 2 or games % 2:
        raise ReversiError(f"{games} games: expected an even number, since every opening is played from both sides")
    if opening_plies < 0:
        raise ReversiError(f"{opening_plies} opening plies: expected 0 or more")
    rules = rules or Rules()
    for agent in (agent_a, agent_b):
        agent.prepare(rules)
    generator = np.random.default_rng(seed)
    played: list[PlayedGame] = []
    for _ in range(games // 2):
        opening = random_opening(rules, opening_plies, generator)
        for black, white in ((agent_a, agent_b), (agent_b, agent_a)):
            played.append(play_game({BLACK: black, WHITE: white}, opening))
            on_game(MatchResult.of(played))
    return MatchResult.of(played)
