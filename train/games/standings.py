"""What a tournament's games add up to: points, Elo, the cross table, the time taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from train.games.playing import PlayerResults
from train.games.ratings import Rating, fit_ratings
from train.games.storage import Record
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
    """All players, best first, and the tables that the ratings come from, in the same order."""

    players: tuple[Standing, ...]
    wins: np.ndarray
    draws: np.ndarray
    draw_factor: float

    def score(self, player: int, opponent: int) -> float | None:
        """Mean points a game of one player against another, by their places; None if they have not met."""
        games = self.wins[player, opponent] + self.wins[opponent, player] + self.draws[player, opponent]
        return float((self.wins[player, opponent] + self.draws[player, opponent] / 2) / games) if games else None


def standings(tournament: Tournament) -> Standings:
    """Add up the games so far."""
    options, records = tournament.options, tournament.records
    wins, draws = _tables(len(options.agents), records)
    ratings = fit_ratings(wins, draws)
    players = [
        Standing.of(
            ((record.game, record.colour_of(player)) for record in records if player in record.fixture.players),
            paired=False,
            name=options.names[player],
            rating=rating,
            allowed=options.allowed_seconds(player),
        )
        for player, rating in enumerate(ratings.players)
    ]
    order = sorted(range(len(players)), key=lambda player: -players[player].rating.elo)
    grid = np.ix_(order, order)
    return Standings(tuple(players[player] for player in order), wins[grid], draws[grid], ratings.draw_factor)


def _tables(players: int, records: tuple[Record, ...]) -> tuple[np.ndarray, np.ndarray]:
    wins, draws = (np.zeros((players, players), np.int64) for _ in range(2))
    for record in records:
        black, white, discs = record.fixture.black, record.fixture.white, record.game.discs
        if discs == 0:
            draws[black, white] += 1
            draws[white, black] += 1
        else:
            winner, loser = (black, white) if discs > 0 else (white, black)
            wins[winner, loser] += 1
    return wins, draws
