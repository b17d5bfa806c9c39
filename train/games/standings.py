"""What a tournament's games add up to: points, Elo, the cross table, the time taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reversi_env import BLACK, WHITE
from train.games.ratings import Rating, fit_ratings
from train.games.results import Results
from train.games.sprt import pair_counts
from train.games.storage import Record
from train.games.tournament import Tournament, points_of

#: A move is late if it took so much longer than was allowed.
LATE = 1.1


@dataclass(frozen=True)
class Clock:
    """A player's time: moves made, seconds in all, seconds of the slowest move, and moves that took a tenth more than allowed."""

    moves: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    overruns: int = 0

    @property
    def per_move(self) -> float:
        """Mean seconds a move."""
        return self.seconds / max(1, self.moves)


@dataclass(frozen=True, eq=False, kw_only=True)
class Standing(Results):
    """One player's results; ``forfeits`` says why games were lost without being played out."""

    player: int
    name: str
    rating: Rating
    clock: Clock
    forfeits: tuple[str, ...]


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
    players = [_standing(player, tournament, rating) for player, rating in enumerate(ratings.players)]
    order = sorted(range(len(players)), key=lambda player: -players[player].rating.elo)
    grid = np.ix_(order, order)
    return Standings(tuple(players[player] for player in order), wins[grid], draws[grid], ratings.draw_factor)


def sprt_counts(tournament: Tournament) -> np.ndarray:
    """Pairs in which the first agent got 0, ½, 1, 1½ and 2 points; a pair with a game missing does not count."""
    points = {record.fixture.index: points_of(record, 0) for record in tournament.records}
    return pair_counts(
        [points[index] + points[index + 1] for index in points if index % 2 == 0 and index + 1 in points]
    )


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


def _standing(player: int, tournament: Tournament, rating: Rating) -> Standing:
    own = [record for record in tournament.records if player in (record.fixture.black, record.fixture.white)]
    discs = [record.game.discs if record.fixture.black == player else -record.game.discs for record in own]
    forfeits = [record.game.forfeit for record in own if _forfeited(record) == player]
    return Standing(
        np.array(discs, np.int64),
        paired=False,
        player=player,
        name=tournament.options.names[player],
        rating=rating,
        clock=_clock(player, own, tournament.options.allowed_seconds(player)),
        forfeits=tuple(f"{forfeit.kind}: {forfeit.reason}" for forfeit in forfeits if forfeit is not None),
    )


def _forfeited(record: Record) -> int | None:
    """The player who could not go on, if any."""
    if record.game.forfeit is None:
        return None
    return record.fixture.black if record.game.forfeit.colour == BLACK else record.fixture.white


def _clock(player: int, records: list[Record], allowed: float | None) -> Clock:
    seconds = [
        taken
        for record in records
        for taken in record.game.seconds_of(BLACK if record.fixture.black == player else WHITE)
    ]
    late = sum(taken > LATE * allowed for taken in seconds) if allowed is not None else 0
    return Clock(len(seconds), sum(seconds), max(seconds, default=0.0), late)


def by_kind(forfeits: tuple[str, ...]) -> dict[str, list[str]]:
    """The reasons under the kind of failure that each begins with."""
    found: dict[str, list[str]] = {}
    for forfeit in forfeits:
        kind, _, reason = forfeit.partition(": ")
        found.setdefault(kind, []).append(reason)
    return found
