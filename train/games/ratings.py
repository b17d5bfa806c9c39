"""Elo ratings from the results of all pairings: Bradley and Terry's model with Davidson's draws, and its intervals.

Player *i* has a strength λ_i. In a game against *j* the chances of a win, a loss and a draw are in proportion to

    e^λ_i,   e^λ_j   and   ν e^((λ_i + λ_j) / 2)

(R. R. Davidson, "On extending the Bradley–Terry model to accommodate ties in paired comparison experiments", JASA 65, 1970).
Elo is 400 / ln 10 · λ, with the mean of all players at 0. The logarithm of the likelihood is concave in λ and ln ν, and Newton's
method finds its one maximum. Where an agent has won all its games the maximum is at infinity; therefore every
player takes part in one game more, spread evenly over its opponents, half won and half lost.

The intervals are those of the profile likelihood: all ratings of a player for which the best fit of everything else is worse
than the best of all by less than half the χ² quantile. They need no symmetry, which ratings near an end do not have.
Games are taken as independent. Those of a pair are not quite: an opening that favours black gives one to each side, so that the
intervals are, if anything, too wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from reversi_env import ReversiError

ELO = 400 / log(10)
#: Half the 95 % quantile of χ² with one degree of freedom.
DROP_95 = 3.841458820694124 / 2
#: A step of Newton's method shorter than this, in units of λ, is the last.
PRECISION = 1e-10


@dataclass(frozen=True)
class Rating:
    """A player's strength in Elo above the mean of all players, and the ends of its 95 % interval."""

    elo: float
    low: float
    high: float


@dataclass(frozen=True)
class Ratings:
    """The fit: a rating for every player, and ν, which makes draws likely (0: there are none)."""

    players: tuple[Rating, ...]
    draw_factor: float


def fit_ratings(wins: np.ndarray, draws: np.ndarray) -> Ratings:
    """Fit all players' ratings. ``wins[i, j]``: games that *i* won against *j*; ``draws`` likewise, and symmetric.

    >>> fit = fit_ratings(np.array([[0, 30], [10, 0]]), np.zeros((2, 2)))
    >>> round(fit.players[0].elo - fit.players[1].elo)  # 400 log10(30.5 / 10.5)
    185
    """
    model = _Davidson(*_checked(wins, draws))
    best = model.fit(np.zeros(model.unknowns))
    level = model.log_likelihood(best) - DROP_95
    ratings = []
    for player in range(model.players):
        ends = (model.profile_end(player, best, level, direction) for direction in (-1, 1))
        ratings.append(Rating(*(ELO * float(value) for value in (best[player], *ends))))
    return Ratings(tuple(ratings), float(np.exp(best[-1])) if model.has_draws else 0.0)


def _checked(wins: np.ndarray, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    wins, draws = np.asarray(wins, np.float64), np.asarray(draws, np.float64)
    square = wins.ndim == 2 and wins.shape[0] == wins.shape[1] >= 2 and wins.shape == draws.shape
    if not square or not np.array_equal(draws, draws.T) or (wins < 0).any() or (draws < 0).any():
        raise ReversiError("wins and draws: expected two square tables of counts, the draws symmetric")
    return wins, draws


class _Davidson:
    """The likelihood of the results as a function of (λ_1 … λ_n, ln ν), the last only if there are draws, and its maximum."""

    def __init__(self, wins: np.ndarray, draws: np.ndarray) -> None:
        self.players = len(wins)
        self.has_draws = bool(draws.any())
        self.unknowns = self.players + self.has_draws
        first, second = np.triu_indices(self.players, 1)
        more = 0.5 / (self.players - 1)  # half of the part of a game that each pairing is given
        counts = np.stack([wins[first, second] + more, wins[second, first] + more, draws[first, second]], axis=1)
        features = np.zeros((len(first), 3, self.unknowns))  # utilities are linear in the unknowns
        row = np.arange(len(first))
        features[row, 0, first] = features[row, 1, second] = 1.0
        features[row, 2, first] = features[row, 2, second] = 0.5
        features[row, 2, self.players :] = 1.0
        outcomes = 2 + self.has_draws
        self.counts, self.features = counts[:, :outcomes], features[:, :outcomes]

    def log_likelihood(self, unknowns: np.ndarray) -> float:
        """Of all results, up to a constant."""
        return float((self.counts * self._log_chances(unknowns)).sum())

    def fit(self, begin: np.ndarray, fixed: tuple[int, float] | None = None) -> np.ndarray:
        """The best unknowns with mean λ of 0, and with one player's λ *fixed*: (player, λ); found from *begin*."""
        conditions, values = np.zeros((1, self.unknowns)), np.zeros(1)
        conditions[0, : self.players] = 1 / self.players
        if fixed is not None:
            conditions = np.vstack([conditions, np.eye(1, self.unknowns, fixed[0])])
            values = np.append(values, fixed[1])
        # to where the conditions hold, by the shortest way
        unknowns = begin + np.linalg.pinv(conditions) @ (values - conditions @ begin)
        for _ in range(200):
            step = self._newton_step(unknowns, conditions)
            unknowns = self._improved(unknowns, step)
            if np.abs(step).max() < PRECISION:
                break
        return unknowns

    def profile_end(self, player: int, best: np.ndarray, level: float, direction: int) -> float:
        """The λ of *player* on that side of its best one where the best fit of all others falls to *level*."""
        inside, step, unknowns = float(best[player]), 0.5, best
        outside = inside
        while True:  # outwards until it is too unlikely …
            outside += direction * step
            unknowns = self.fit(unknowns, (player, outside))
            if self.log_likelihood(unknowns) < level:
                break
            inside, step = outside, 2 * step
        while abs(outside - inside) > 1e-4:  # … then halving
            middle = (inside + outside) / 2
            unknowns = self.fit(unknowns, (player, middle))
            inside, outside = (inside, middle) if self.log_likelihood(unknowns) < level else (middle, outside)
        return (inside + outside) / 2

    def _log_chances(self, unknowns: np.ndarray) -> np.ndarray:
        utilities = self.features @ unknowns
        return utilities - np.logaddexp.reduce(utilities, axis=1, keepdims=True)

    def _newton_step(self, unknowns: np.ndarray, conditions: np.ndarray) -> np.ndarray:
        """The step to the maximum of the quadratic that touches the likelihood, along the conditions."""
        features, counts = self.features, self.counts
        chances = np.exp(self._log_chances(unknowns))
        games = counts.sum(axis=1)
        mean = np.einsum("po,pou->pu", chances, features)
        gradient = np.einsum("po,pou->u", counts, features) - games @ mean
        second = np.einsum("p,po,pou,pov->uv", games, chances, features, features)
        hessian = np.einsum("p,pu,pv->uv", games, mean, mean) - second
        hessian -= 1e-12 * np.eye(self.unknowns)
        rows = len(conditions)
        system = np.block([[hessian, conditions.T], [conditions, np.zeros((rows, rows))]])
        right = np.concatenate([-gradient, np.zeros(rows)])
        step: np.ndarray = np.linalg.lstsq(system, right, rcond=None)[0][: self.unknowns]
        return step

    def _improved(self, unknowns: np.ndarray, step: np.ndarray) -> np.ndarray:
        """The step taken, or as much of it as makes the results likelier: far from the maximum it may go too far."""
        before, share = self.log_likelihood(unknowns), 1.0
        while self.log_likelihood(unknowns + share * step) < before - 1e-12 and share > 1e-9:
            share /= 2
        return unknowns + share * step
