"""Means over positions of games, with standard errors clustered by game and 95 % confidence intervals.

Positions of one game are alike, so that games are the independent units. `Sample` takes the cluster-robust variance of Liang
and Zeger (1986). Its three intervals are those of a mean, of a share, and of a mean of losses that are rare and large.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from train.arena.results import Z_95

Interval = tuple[float, float]
#: Maximum number of independent observations per position in the interval of a share.
MAX_UNITS = 4
#: Quantiles of Student's t with one, two and three degrees of freedom.
_FIRST_T_95 = (12.7062, 4.3027, 3.1824)


@dataclass(frozen=True)
class Estimate:
    """A mean, its standard error (nan if all is of one game), and its 95 % confidence interval."""

    mean: float
    standard_error: float
    interval: Interval


class Sample:
    """Positions in *strata* of equal weight, each of one of the *games*; None: every position is of another game.

    The mean of values is the mean over the strata of their means.

    >>> Sample(strata=[5, 6, 5, 6], games=[0, 0, 1, 1]).standard_error([0, 0, 2, 2])  # as of two values, 0 and 2
    1.0
    """

    def __init__(self, strata: ArrayLike, games: ArrayLike | None = None) -> None:
        _, self.strata, self.sizes = np.unique(strata, return_inverse=True, return_counts=True)
        self.games = np.unique(np.arange(len(self.strata)) if games is None else games, return_inverse=True)[1]
        self.weights: NDArray[np.float64] = 1 / (len(self.sizes) * self.sizes[self.strata])

    def standard_error(self, values: ArrayLike) -> float:
        """Return the standard error of the mean of *values*; nan if all positions are of one game.

        A stratum with one game is centred at the mean of all, which makes the error too large rather than too small.
        """
        numbers, all_games = np.asarray(values, float), int(self.games.max()) + 1
        if all_games < 2:
            return math.nan
        single = self._games_in_strata == 1
        centres = np.where(single, self._mean(numbers), np.bincount(self.strata, numbers) / self.sizes)
        games = np.where(single, all_games, self._games_in_strata)
        residuals = np.sqrt(games / (games - 1))[self.strata] * (numbers - centres[self.strata])
        return float(np.linalg.norm(np.bincount(self.games, self.weights * residuals)))

    def mean(self, values: ArrayLike) -> Estimate:
        """Return the mean of *values* with the interval of Student's t."""
        mean, error = self._mean(values), self.standard_error(values)
        within = _t_95(len(self._game_weights) - 1) * error
        return Estimate(mean, error, (mean - within, mean + within))

    def share(self, values: ArrayLike) -> Estimate:
        """Return the mean of *values* from 0 to 1 with Wilson's interval with continuity correction, which holds near 0 and 1.

        The number of observations is the one that would have the clustered standard error, within what games and positions allow.
        The interval is conservative where values other than 0, or other than 1, are rare.
        """
        mean, error = self._mean(values), self.standard_error(values)
        min_units, max_units = (
            1 / float(self._game_weights @ self._game_weights),
            MAX_UNITS / float(self.weights @ self.weights),
        )
        units = min(max(mean * (1 - mean) / error**2, min_units), max_units) if error > 0 else min_units
        return Estimate(mean, error, (_wilson_low(mean, units), 1 - _wilson_low(1 - mean, units)))

    def loss(self, values: ArrayLike, worst: ArrayLike) -> Estimate:
        """Return the mean of *values* from 0 on, most of which may be 0, with a gamma interval.

        It is the interval of Fay and Feuer (1997) for a sum of rare events of different sizes, with the clustered variance.
        The upper end allows for the loss of one more game than was observed. Its size is the root mean square of the observed
        losses and of the mean of *worst*, the maximum loss of each position. So the interval has a width even if nothing was
        lost. It is conservative where losses are rare.
        """
        losses = np.bincount(self.games, self.weights * np.asarray(values, float))
        mean, error = self._mean(values), self.standard_error(values)
        if math.isnan(error):
            return Estimate(mean, error, (math.nan, math.nan))
        largest = float(self._mean(worst) * self.weights.mean())
        extra = math.sqrt((float(losses @ losses) + largest**2) / (np.count_nonzero(losses) + 1))
        low = _gamma_quantile(mean, error**2, -Z_95)
        return Estimate(mean, error, (low, _gamma_quantile(mean + extra, error**2 + extra**2, Z_95)))

    def _mean(self, values: ArrayLike) -> float:
        return float((np.bincount(self.strata, np.asarray(values, float)) / self.sizes).mean())

    @cached_property
    def _games_in_strata(self) -> NDArray[np.int64]:
        return np.bincount(np.unique(self.strata * len(self.games) + self.games) // len(self.games))

    @cached_property
    def _game_weights(self) -> NDArray[np.float64]:
        return np.bincount(self.games, self.weights).astype(np.float64)


def _t_95(degrees_of_freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t, from four degrees of freedom on by two terms of its expansion."""
    if degrees_of_freedom <= len(_FIRST_T_95):
        return (math.nan, *_FIRST_T_95)[degrees_of_freedom]
    z, n = Z_95, degrees_of_freedom
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)


def _wilson_low(share: float, count: float) -> float:
    """Return the lower end of Wilson's 95 % interval with continuity correction (Newcombe 1998)."""
    z, twice = Z_95, 2 * count * share
    root = math.sqrt(max(0.0, z * z - 1 / count + 2 * twice * (1 - share) + 4 * share - 2))
    return max(0.0, (twice + z * z - 1 - z * root) / (2 * (count + z * z))) if share > 0 else 0.0


def _gamma_quantile(mean: float, variance: float, z: float) -> float:
    """Return the quantile at *z* standard deviations of a gamma distribution, by the approximation of Wilson and Hilferty."""
    if variance <= 0:
        return mean
    ninth = variance / (9 * mean**2)
    return mean * max(0.0, 1 - ninth + z * math.sqrt(ninth)) ** 3


def plain(statistics: Mapping[str, Any]) -> dict[str, Any]:
    """Return statistics as JSON values: intervals are lists, and NaN is None.

    >>> plain({"mean": 1.5, "standard_error": math.nan, "interval": (1.0, 2.0)})
    {'mean': 1.5, 'standard_error': None, 'interval': [1.0, 2.0]}
    """

    def json_value(value: Any) -> Any:
        if isinstance(value, tuple):
            return None if math.isnan(value[0]) else list(value)
        return None if isinstance(value, float) and math.isnan(value) else value

    return {name: json_value(value) for name, value in statistics.items()}
