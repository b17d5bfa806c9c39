"""What a tournament's games add up to: points, Elo, the cross table, the time taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reversi_env import BLACK, WHITE, Colour
from train.games.playing import PlayedGame, PlayerResults
from train.games.ratings import Rating, fit_ratings
from train.games.tournament import Tournament

#: A move is late if it took so much longer than was allowed.
LATE = 1.1


@dataclass(frozen=True, eq=False, kw_only=True)
class Standing(PlayerResults):
    """One player's results; ``allowed`` are the seconds that it had for a move, None if nobody limited them."""

    name: str
    rating: Rating
    allowed: float | None

    @property
    def overruns(self) -> int:
        """Moves that took a tenth more than allowed."""
        return 0 if self.allowed is None else sum(taken > LATE * self.allowed for taken in self.seconds)


@dataclass(frozen=True)
class Standings:
    """All players, best first, and their mean points a game against each other, in the same order; None if two have not met."""

    players: tuple[Standing, ...]
    cross_table: list[list[float | None]]
    draw_factor: float


def standings(tournament: Tournament) -> Standings:
    """Add up the games so far."""
    agents, names = tournament.options.made_agents(), tournament.options.names
    sides: list[list[tuple[PlayedGame, Colour]]] = [[] for _ in agents]
    wins, draws = np.zeros((2, len(agents), len(agents)), np.int64)
    for record in tournament.records:
        black, white, discs = record.fixture.black, record.fixture.white, record.game.discs
        sides[black].append((record.game, BLACK))
        sides[white].append((record.game, WHITE))
        wins[black, white] += discs > 0
        wins[white, black] += discs < 0
        draws[[black, white], [white, black]] += discs == 0
    fit = fit_ratings(wins, draws)
    players = [
        Standing.of(games, paired=False, name=name, rating=rating, allowed=agent.time)
        for games, name, rating, agent in zip(sides, names, fit.players, agents, strict=True)
    ]
    order = sorted(range(len(players)), key=lambda player: -players[player].rating.elo)
    games, points = wins + wins.T + draws, wins + draws / 2
    scores = [[float(points[a, b] / games[a, b]) if games[a, b] else None for b in order] for a in order]
    return Standings(tuple(players[player] for player in order), scores, fit.draw_factor)
