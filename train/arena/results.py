"""Results of games: wins, draws and losses of one side, its score and discs, with standard errors and intervals."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env.errors import count_noun

#: Quantiles of the normal distribution: 95 % lie within `Z_95` standard deviations of the mean, 95 % lie below `Z_95_ONE_SIDED`.
Z_95, Z_95_ONE_SIDED = 1.959964, 1.644854
#: The pairs of a match count as at least this many games per game, and at most as this many (`score_interval`).
MIN_PAIR_EFFICIENCY, MAX_PAIR_EFFICIENCY = 0.5, 4.0
#: If at most this many (effective) points are won or lost, the end of the interval on that side is a Poisson bound.
MAX_RARE_POINTS = 3.5


@dataclass(frozen=True, eq=False)
class Results:
    """Scores in discs of player A in finished games, empty squares to the winner.

    With ``paired``, games 2k and 2k + 1 have one opening with the colours exchanged, and count as one for the standard errors.

    >>> results = Results(np.array([4, -4, 0, 2]))
    >>> results.wins, results.draws, results.losses, results.score, results.discs_per_game
    (2, 1, 1, 0.625, 0.5)
    """

    discs: NDArray[np.int64]
    paired: bool = True

    @property
    def games(self) -> int:
        return len(self.discs)

    @property
    def wins(self) -> int:
        return int((self.discs > 0).sum())

    @property
    def draws(self) -> int:
        """Games without a winner."""
        return int((self.discs == 0).sum())

    @property
    def losses(self) -> int:
        return int((self.discs < 0).sum())

    @property
    def points(self) -> NDArray[np.float64]:
        """A's points in every game: a win 1, a draw 0.5, a loss 0."""
        return (np.sign(self.discs) + 1) / 2

    @property
    def score(self) -> float:
        """A's mean points per game; 0 without games."""
        return float(self.points.mean()) if self.games else 0.0

    @property
    def score_error(self) -> float:
        """Standard error of `score`, from complete pairs."""
        return standard_error(self._units(self.points))

    @property
    def discs_per_game(self) -> float:
        """A's mean score in discs; 0 without games."""
        return float(self.discs.mean()) if self.games else 0.0

    @property
    def discs_error(self) -> float:
        """Standard error of `discs_per_game`."""
        return standard_error(self._units(self.discs.astype(float)))

    def interval(self) -> tuple[float, float]:
        """95 % confidence interval of `score`; an unpaired last game counts for the score, not for the variance.

        Without ``paired`` the interval assumes games without draws, and is conservative if there are some.
        """
        if not self.paired:
            return wilson_interval(self.score, self.games)
        return score_interval(self.score, self.games, self.score_error)

    def __str__(self) -> str:
        """Return A's score with its 95 % interval, games and discs in one line.

        >>> print(Results(np.array([4, -4, 0, 2] * 5)))
        62.5 % (95 % interval 51.5 to 72.3) of 20 games (+10 =5 -5), +0.5 discs per game
        """
        low, high = self.interval()
        score = f"{100 * self.score:.1f} % (95 % interval {100 * low:.1f} to {100 * high:.1f})"
        games = f"{count_noun(self.games, 'game')} (+{self.wins} ={self.draws} -{self.losses})"
        return f"{score} of {games}, {self.discs_per_game:+.1f} discs per game"

    def as_dict(self) -> dict[str, Any]:
        return {
            "games": self.games,
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "points": self.score,
            "standard_error": self.score_error,
            "interval": self.interval(),
            "discs": self.discs_per_game,
            "discs_standard_error": self.discs_error,
        }

    def _units(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the independent observations: means of pairs, or games."""
        return values[: len(values) // 2 * 2].reshape(-1, 2).mean(axis=1) if self.paired else values


def standard_error(values: ArrayLike) -> float:
    """Return the standard error of the mean of independent values; NaN for a single one."""
    numbers = np.asarray(values, float)
    return float(numbers.std(ddof=1) / math.sqrt(numbers.size)) if numbers.size > 1 else math.nan


def score_interval(score: float, games: int, error: float) -> tuple[float, float]:
    """Return the 95 % confidence interval of the score of paired games with a standard *error* of the pairs (NaN: unknown).

    It is Wilson's interval with the effective number of games, score · (1 − score) / error²: that of independent games, won or
    lost, with the same standard error. If all pairs are equal, their variance has no information, and each pair counts as one
    game. The interval is conservative there, and where the effective number is above its limit, four times the games.

    >>> [round(end, 3) for end in score_interval(0.5, 200, 0.0)]  # 100 pairs, a win and a loss each
    [0.404, 0.596]
    """
    efficiency = score * (1 - score) / (error * error * games) if error > 0 else MIN_PAIR_EFFICIENCY
    return wilson_interval(score, games * min(max(efficiency, MIN_PAIR_EFFICIENCY), MAX_PAIR_EFFICIENCY))


def wilson_interval(score: float, games: float) -> tuple[float, float]:
    """Return Wilson's 95 % confidence interval of a share, modified for shares near 0 and 1.

    Near 0 and 1 Wilson's interval covers as little as 84 %. If few points were won or lost, the end on that side is therefore the
    one-sided Poisson bound (L. D. Brown, T. T. Cai and A. DasGupta, "Interval estimation for a binomial proportion", Statistical
    Science 16, 2001), in Wilson and Hilferty's approximation, which is conservative.

    >>> [round(end, 3) for end in wilson_interval(1.0, 10)]
    [0.722, 1.0]
    """
    if not games:
        return 0.0, 1.0
    z = Z_95
    centre = (score + z * z / (2 * games)) / (1 + z * z / games)
    half_width = z * math.sqrt(score * (1 - score) / games + z * z / (4 * games * games)) / (1 + z * z / games)
    low, high = max(0.0, centre - half_width), min(1.0, centre + half_width)
    return min(low, _rare_bound(score * games) / games), max(high, 1 - _rare_bound((1 - score) * games) / games)


def _rare_bound(points: float) -> float:
    """Return the lower 95 % bound of a Poisson mean of which *points* were observed; infinite if there are many."""
    if points > MAX_RARE_POINTS:
        return math.inf
    if points <= 0:
        return 0.0
    return points * max(0.0, 1 - 1 / (9 * points) - Z_95_ONE_SIDED / (3 * math.sqrt(points))) ** 3
