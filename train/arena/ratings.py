"""Elo ratings by the model of Bradley and Terry with Davidson's draws, with intervals; and the standings of a tournament.

Player *i* has a strength λ_i. In a game against *j* the probabilities of a win, a loss and a draw are in proportion to

    e^λ_i,   e^λ_j   and   ν e^((λ_i + λ_j) / 2)

(R. R. Davidson, "On extending the Bradley–Terry model to accommodate ties in paired comparison experiments", JASA 65, 1970). Elo
is 400 / ln 10 · λ, with the mean of all players, or the anchor, at 0. The log-likelihood is concave in λ and ln ν, and Newton's
method finds its maximum. So that it is finite, every player has one more game, divided equally among its opponents, half won and
half lost. Without draws this is the logistic Elo of the score, 400 log10(s / (1 − s)), which `train.arena.sequential` uses; with
draws, differences are larger.

The intervals are those of the profile likelihood: all ratings for which the best fit of everything else is worse than the best of
all by less than half the χ² quantile. Games count as independent, which makes the intervals of paired games slightly too wide. If
the results do not bound a rating, as after games that were all won, the interval is open on that side.
"""

from dataclasses import dataclass
from math import inf, isfinite, log, sqrt

import numpy as np

from reversi_env import BLACK, WHITE, Colour, ReversiError
from train.arena.match import PlayedGame, PlayerResults
from train.arena.tournament import Tournament

ELO = 400 / log(10)
#: Half the 95 % quantile of χ² with one degree of freedom.
DROP_95 = 3.841458820694124 / 2
#: Newton's method ends at a step shorter than this, in units of λ.
PRECISION = 1e-10
#: Precision of the ends of an interval, in roots of the log-likelihood.
PROFILE_PRECISION = 1e-5


@dataclass(frozen=True)
class Rating:
    """A rating in Elo above the mean of all players, or above the anchor, and the ends of its 95 % interval.

    An end is infinite if the results do not bound the rating on that side; ``elo`` is then finite by the added games alone.
    """

    elo: float
    low: float
    high: float

    @property
    def is_determined(self) -> bool:
        """Whether the interval has two ends."""
        return isfinite(self.low) and isfinite(self.high)


@dataclass(frozen=True)
class Ratings:
    """A rating for every player, and ν, the parameter of draws (0 if there are none)."""

    players: tuple[Rating, ...]
    draw_factor: float


def interval_text(low: float | None, high: float | None) -> str:
    """Return a 95 % interval in Elo as text; None or infinite ends are open.

    >>> interval_text(-31.7, 12.1), interval_text(212.0, None), interval_text(None, None)
    ('-32…+12', '≥ +212', 'unknown')
    """
    ends = [f"{round(end):+d}" if end is not None and isfinite(end) else "" for end in (low, high)]  # never -0
    return "…".join(ends) if all(ends) else f"≥ {ends[0]}" if ends[0] else f"≤ {ends[1]}" if ends[1] else "unknown"


def rating_text(elo: float | None, low: float | None, high: float | None) -> str:
    """Return Elo with its 95 % interval as text, or the bound alone if the interval is open on one side.

    >>> rating_text(205.1, 174.0, 237.2), rating_text(None, 212.0, None)
    ('+205 (95 % interval +174…+237)', 'not determined (≥ +212, 95 % bound)')
    """
    interval = interval_text(low, high)
    if elo is None or "…" not in interval:
        return f"not determined ({interval}, 95 % bound)"
    return f"{round(elo):+d} (95 % interval {interval})"


def fit_ratings(wins: np.ndarray, draws: np.ndarray, anchor: int | None = None) -> Ratings:
    """Fit the ratings of all players. ``wins[i, j]``: games that *i* won against *j*; ``draws[i, j]`` is symmetric.

    Elo is relative to player *anchor*, by default to the mean of all.

    >>> fit = fit_ratings(np.array([[0, 30], [10, 0]]), np.zeros((2, 2)))
    >>> round(fit.players[0].elo - fit.players[1].elo)  # 400 log10(30.5 / 10.5)
    185
    """
    wins, draws = _checked(wins, draws)
    model, is_open = _Davidson(wins, draws, anchor), _open_ends(wins, draws, anchor)
    best = model.fit(np.zeros(model.unknowns))
    ratings = []
    for player in range(model.players):
        ends = (
            direction * inf if is_open[side][player] else model.profile_end(player, best, direction)
            for side, direction in enumerate((-1, 1))
        )
        values = (0.0, 0.0, 0.0) if player == anchor else (best[player], *ends)
        ratings.append(Rating(*(ELO * float(value) for value in values)))
    return Ratings(tuple(ratings), float(np.exp(best[-1])) if model.has_draws else 0.0)


def _checked(wins: np.ndarray, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    wins, draws = np.asarray(wins, np.float64), np.asarray(draws, np.float64)
    square = wins.ndim == 2 and wins.shape[0] == wins.shape[1] >= 2 and wins.shape == draws.shape
    if not square or not np.array_equal(draws, draws.T) or (wins < 0).any() or (draws < 0).any():
        raise ReversiError("wins and draws: expected two square tables of counts, the draws symmetric")
    return wins, draws


def _open_ends(wins: np.ndarray, draws: np.ndarray, anchor: int | None) -> np.ndarray:
    """Return for every player whether its rating may fall, and rise, without limit: booleans (2, players).

    A rating has no limit if the likelihood never falls along a direction (δ, γ) of (λ, ln ν). The winner of a pair must then rise
    by 2γ or more above the other, and after draws their difference may grow by 2γ at most; γ is 0, or can be scaled to 1. This is
    a system of difference constraints, and shortest paths are the largest differences that it allows.
    """
    is_open = np.zeros((2, len(wins)), np.bool_)
    for gamma in (0.0, 1.0):
        rise = np.where(draws > 0, 2 * gamma, inf)  # rise[i, j]: the most that i may rise above j
        rise[wins.T > 0] = -2 * gamma
        np.fill_diagonal(rise, 0)
        for middle in range(len(wins)):
            rise = np.minimum(rise, rise[:, [middle]] + rise[[middle]])
        if (rise.diagonal() >= 0).all():
            above = rise.mean(axis=1) if anchor is None else rise[:, anchor]
            below = rise.mean(axis=0) if anchor is None else rise[anchor]
            is_open |= np.stack([below, above]) > 0
    return is_open


class _Davidson:
    """The likelihood of the results as a function of (λ_1 … λ_n, ln ν), the last only if there are draws, and its maximum."""

    def __init__(self, wins: np.ndarray, draws: np.ndarray, anchor: int | None) -> None:
        self.players = len(wins)
        self.has_draws = bool(draws.any())
        self.unknowns = self.players + self.has_draws
        first, second = np.triu_indices(self.players, 1)
        added = 0.5 / (self.players - 1)  # half of the additional game's part for each pairing
        counts = np.stack([wins[first, second] + added, wins[second, first] + added, draws[first, second]], axis=1)
        features = np.zeros((len(first), 3, self.unknowns))  # utilities are linear in the unknowns
        row = np.arange(len(first))
        features[row, 0, first] = features[row, 1, second] = 1.0
        features[row, 2, first] = features[row, 2, second] = 0.5
        features[row, 2, self.players :] = 1.0
        outcomes = 2 + self.has_draws
        self.counts, self.features = counts[:, :outcomes], features[:, :outcomes]
        self.origin = np.zeros(self.unknowns)  # the condition that the mean λ, or that of the anchor, is 0
        self.origin[: self.players] = 1 / self.players if anchor is None else np.eye(self.players)[anchor]

    def log_likelihood(self, unknowns: np.ndarray) -> float:
        return float((self.counts * self._log_probabilities(unknowns)).sum())

    def fit(self, start: np.ndarray, fixed: tuple[int, float] | None = None) -> np.ndarray:
        """Return the unknowns of maximum likelihood, starting from *start*; *fixed* is a condition (player, λ)."""
        conditions, values = self.origin[None], np.zeros(1)
        if fixed is not None:
            conditions = np.vstack([conditions, np.eye(1, self.unknowns, fixed[0])])
            values = np.append(values, fixed[1])
        unknowns = start + np.linalg.pinv(conditions) @ (values - conditions @ start)
        for _ in range(200):
            step = self._newton_step(unknowns, conditions)
            unknowns = self._improved(unknowns, step)
            if np.abs(step).max() < PRECISION:
                break
        return unknowns

    def profile_end(self, player: int, best: np.ndarray, direction: int) -> float:
        """Return the λ of *player* in that direction from its best one where the best fit of all others is worse by `DROP_95`.

        The root of the drop is nearly linear in the distance from the best λ: the secant method converges fast.
        """
        maximum, target, unknowns = self.log_likelihood(best), sqrt(DROP_95), best
        before, distance = (0.0, 0.0), 0.25
        while True:
            unknowns = self.fit(unknowns, (player, best[player] + direction * distance))
            root = sqrt(max(0.0, maximum - self.log_likelihood(unknowns)))
            if abs(root - target) < PROFILE_PRECISION:
                return float(best[player]) + direction * distance
            slope = (root - before[1]) / (distance - before[0])
            before, step = (distance, root), (target - root) / max(slope, 1e-9)
            distance = min(max(distance + step, distance / 4), 4 * distance)

    def _log_probabilities(self, unknowns: np.ndarray) -> np.ndarray:
        utilities = self.features @ unknowns
        return utilities - np.logaddexp.reduce(utilities, axis=1, keepdims=True)

    def _newton_step(self, unknowns: np.ndarray, conditions: np.ndarray) -> np.ndarray:
        features, counts = self.features, self.counts
        probabilities = np.exp(self._log_probabilities(unknowns))
        games = counts.sum(axis=1)
        mean = np.einsum("po,pou->pu", probabilities, features)
        gradient = np.einsum("po,pou->u", counts, features) - games @ mean
        second = np.einsum("p,po,pou,pov->uv", games, probabilities, features, features)
        hessian = np.einsum("p,pu,pv->uv", games, mean, mean) - second
        hessian -= 1e-12 * np.eye(self.unknowns)
        rows = len(conditions)
        system = np.block([[hessian, conditions.T], [conditions, np.zeros((rows, rows))]])
        right = np.concatenate([-gradient, np.zeros(rows)])
        step: np.ndarray = np.linalg.lstsq(system, right, rcond=None)[0][: self.unknowns]
        return step

    def _improved(self, unknowns: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Take the step, halved until it increases the likelihood: far from the maximum it may be too long."""
        before, share = self.log_likelihood(unknowns), 1.0
        while self.log_likelihood(unknowns + share * step) < before - 1e-12 and share > 1e-9:
            share /= 2
        return unknowns + share * step


#: A move is an overrun if it took this multiple of the time allowed.
OVERRUN_FACTOR = 1.1


@dataclass(frozen=True, eq=False, kw_only=True)
class TournamentRow(PlayerResults):
    """The results of a player; ``allowed``: its time per move in seconds, None without a limit."""

    name: str
    rating: Rating
    allowed: float | None

    @property
    def overruns(self) -> int:
        return 0 if self.allowed is None else sum(taken > OVERRUN_FACTOR * self.allowed for taken in self.seconds)


@dataclass(frozen=True)
class Standings:
    """All players, best first, and their mean points per game against each other, None if two have not met."""

    players: tuple[TournamentRow, ...]
    cross_table: list[list[float | None]]
    draw_factor: float


def standings(tournament: Tournament) -> Standings:
    """Return the standings after the games so far."""
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
        TournamentRow.of(games, paired=False, name=name, rating=rating, allowed=agent.time)
        for games, name, rating, agent in zip(sides, names, fit.players, agents, strict=True)
    ]
    order = sorted(range(len(players)), key=lambda player: -players[player].rating.elo)
    games, points = wins + wins.T + draws, wins + draws / 2
    scores = [[float(points[a, b] / games[a, b]) if games[a, b] else None for b in order] for a in order]
    return Standings(tuple(players[player] for player in order), scores, fit.draw_factor)
