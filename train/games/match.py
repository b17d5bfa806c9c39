"""A match between two agents over paired openings: each opening is played twice, with the colours exchanged.

Pairing takes the luck of the opening out of the result: only a difference between the agents is left. A player that is another
program and fails – it crashes, hangs, plays an illegal move – loses the game by all squares of the board, with the reason recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from reversi_env import BLACK, WHITE, Colour, ReversiError, Rules
from reversi_env.rules import PASS_NAME
from search.agents import Agent
from train.games.openings import Opening, random_opening
from train.games.playing import play_game


@dataclass(frozen=True, slots=True)
class GameResult:
    """One finished game from agent A's side: its colour, and its result in discs (positive: A won, empties to the winner).

    ``forfeit`` says why the loser could not play on.
    """

    a_plays: Colour
    discs: int
    forfeit: str | None = None


@dataclass(slots=True)
class MatchResult:
    """All games so far. `score` is A's mean result with a win as 1, a draw as 0.5 and a loss as 0."""

    games: list[GameResult] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: {"a": 0.0, "b": 0.0})
    moves: dict[str, int] = field(default_factory=lambda: {"a": 0, "b": 0})

    def _points(self) -> np.ndarray:
        return np.array([0.5 + 0.5 * np.sign(game.discs) for game in self.games])

    @property
    def wins(self) -> int:
        """Games that A won."""
        return sum(game.discs > 0 for game in self.games)

    @property
    def draws(self) -> int:
        """Games that nobody won."""
        return sum(game.discs == 0 for game in self.games)

    @property
    def losses(self) -> int:
        """Games that A lost."""
        return sum(game.discs < 0 for game in self.games)

    def forfeits(self, player: str) -> list[str]:
        """Why player ``"a"`` or ``"b"`` failed, for each game that it lost in that way."""
        lost = -1 if player == "a" else 1
        return [game.forfeit for game in self.games if game.forfeit is not None and game.discs * lost > 0]

    @property
    def score(self) -> float:
        """A's mean points a game."""
        return float(self._points().mean()) if self.games else math.nan

    @property
    def discs_per_game(self) -> float:
        """A's mean result in discs."""
        return float(np.mean([game.discs for game in self.games])) if self.games else math.nan

    def interval(self) -> tuple[float, float]:
        """95 % confidence interval of `score` (Wilson's, which holds for few games and for scores near 0 and 1)."""
        count, z = len(self.games), 1.959964
        if not count:
            return 0.0, 1.0
        centre = (self.score + z * z / (2 * count)) / (1 + z * z / count)
        spread = (
            z * math.sqrt(self.score * (1 - self.score) / count + z * z / (4 * count * count)) / (1 + z * z / count)
        )
        return max(0.0, centre - spread), min(1.0, centre + spread)

    def seconds_per_move(self, player: str) -> float:
        """Mean thinking time of player ``"a"`` or ``"b"``."""
        return self.seconds[player] / max(1, self.moves[player])


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
        if hasattr(agent, "prepare"):
            agent.prepare(rules)
    generator = np.random.default_rng(seed)
    result = MatchResult()
    for _ in range(games // 2):
        opening = random_opening(rules, opening_plies, generator)
        for a_plays in (BLACK, WHITE):
            result.games.append(_play_game(agent_a, agent_b, opening, a_plays, result))
            on_game(result)
    return result


def _play_game(agent_a: Agent, agent_b: Agent, opening: Opening, a_plays: Colour, result: MatchResult) -> GameResult:
    """Play one game to the end, adding the thinking times to *result*."""
    game = play_game({a_plays: agent_a, a_plays.other: agent_b}, opening)
    turn = opening.position.turn
    for move, seconds in zip(game.moves, game.seconds, strict=True):
        player = "a" if turn == a_plays else "b"
        result.seconds[player] += seconds
        result.moves[player] += move != PASS_NAME
        turn = turn.other
    return GameResult(a_plays, -int(a_plays) * game.discs, game.forfeit.reason if game.forfeit else None)
