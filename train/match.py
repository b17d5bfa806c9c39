"""A match between two agents over paired openings: each opening is played twice, with the colours exchanged.

Pairing takes the luck of the opening out of the result: only a difference between the agents is left. A player that is another
program and fails – it crashes, hangs, plays an illegal move – loses the game by all squares of the board, with the reason recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from reversi_env import BLACK, WHITE, Colour, Position, ReversiError, Rules
from reversi_env.rules import PASS_NAME
from search.agents import Agent, choose
from search.external import EngineFailure


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


@dataclass(frozen=True, slots=True)
class Opening:
    """Where games begin: a start, and the moves that were made from it, by name with every pass."""

    start: Position
    moves: tuple[str, ...] = ()

    @property
    def position(self) -> Position:
        """Where the players take over."""
        return self.start.play_all(self.moves)


def random_opening(rules: Rules, plies: int, generator: np.random.Generator) -> Opening:
    """*plies* random moves from the start that leave a game to play."""
    for _ in range(1000):
        position, moves = Position.initial(rules), list[str]()
        for _ in range(plies):
            if position.is_over():
                break
            action = int(generator.choice(position.legal_actions()))
            moves.append(rules.name_of(action))
            position = position.play(action)
        if not position.is_over():
            return Opening(Position.initial(rules), tuple(moves))
    raise ReversiError(
        f"no opening of {plies} random plies leaves a game to play on the {rules.size}x{rules.size} board"
    )


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
    """Play one game to the end, adding the thinking times to *result*. Passes are made for the agents."""
    position, moves = opening.position, list(opening.moves)
    while not position.is_over():
        if position.must_pass():
            moves.append(PASS_NAME)
            position = position.play(PASS_NAME)
            continue
        player, agent = ("a", agent_a) if position.turn == a_plays else ("b", agent_b)
        began = perf_counter()
        try:
            action = choose(agent, position, opening.start, moves)
        except EngineFailure as failure:
            all_squares = position.rules.square_count
            return GameResult(a_plays, -all_squares if player == "a" else all_squares, str(failure))
        result.seconds[player] += perf_counter() - began
        result.moves[player] += 1
        moves.append(position.rules.name_of(action))
        position = position.play(action)
    return GameResult(a_plays, position.score(a_plays))
