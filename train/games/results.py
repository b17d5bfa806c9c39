"""What games add up to: wins, draws and losses of one side, its score and discs, and how sure they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env.errors import counted

#: Standard deviations on either side of the mean that hold 95 % of a normal distribution.
Z_95 = 1.959964


@dataclass(frozen=True, eq=False)
class Results:
    """Finished games from player A's side: its result of each in discs, positive if A won, empty squares to the winner.

    With ``paired``, games 2k and 2k + 1 have one opening with the colours exchanged, and count as one for the standard errors.

    >>> results = Results(np.array([4, -4, 0, 2]))
    >>> results.wins, results.draws, results.losses, results.score, results.discs_per_game
    (2, 1, 1, 0.625, 0.5)
    """

    discs: NDArray[np.int64]
    paired: bool = True

    @property
    def games(self) -> int:
        """Games played."""
        return len(self.discs)

    @property
    def wins(self) -> int:
        """Games that A won."""
        return int((self.discs > 0).sum())

    @property
    def draws(self) -> int:
        """Games that nobody won."""
        return int((self.discs == 0).sum())

    @property
    def losses(self) -> int:
        """Games that A lost."""
        return int((self.discs < 0).sum())

    @property
    def points(self) -> NDArray[np.float64]:
        """A's points in every game: a win 1, a draw 0.5, a loss 0."""
        return (np.sign(self.discs) + 1) / 2

    @property
    def score(self) -> float:
        """A's mean points a game; 0 if there are none."""
        return float(self.points.mean()) if self.games else 0.0

    @property
    def score_error(self) -> float:
        """Standard error of `score`."""
        return standard_error(self._units(self.points))

    @property
    def discs_per_game(self) -> float:
        """A's mean result in discs; 0 if there are no games."""
        return float(self.discs.mean()) if self.games else 0.0

    @property
    def discs_error(self) -> float:
        """Standard error of `discs_per_game`."""
        return standard_error(self._units(self.discs.astype(float)))

    def interval(self) -> tuple[float, float]:
        """95 % confidence interval of `score`."""
        return wilson_interval(self.score, self.games)

    def __str__(self) -> str:
        """The figures in a line: A's score with its standard error (not of a single pair of games), games and discs.

        >>> print(Results(np.array([4, -4, 0, 2])))
        62.5 ± 12.5 % of 4 games (+2 =1 -1), +0.5 discs a game
        """
        error = "" if math.isnan(self.score_error) else f" ± {100 * self.score_error:.1f}"
        score = f"{100 * self.score:.1f}{error} % of {counted(self.games, 'game')}"
        return f"{score} (+{self.wins} ={self.draws} -{self.losses}), {self.discs_per_game:+.1f} discs a game"

    def as_dict(self) -> dict[str, Any]:
        """The figures as JSON has them."""
        return {
            "games": self.games,
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "points": self.score,
            "deviation": self.score_error,
            "discs": self.discs_per_game,
            "disc_deviation": self.discs_error,
        }

    def _units(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """What was drawn independently: pairs of games, or games."""
        return values[: len(values) // 2 * 2].reshape(-1, 2).mean(axis=1) if self.paired else values


def standard_error(values: ArrayLike) -> float:
    """Of the mean of independent numbers; not a number if there is only one."""
    numbers = np.asarray(values, float)
    return float(numbers.std(ddof=1) / math.sqrt(numbers.size)) if numbers.size > 1 else math.nan


def wilson_interval(score: float, games: int, z: float = Z_95) -> tuple[float, float]:
    """Confidence interval of a share (Wilson's, which holds for few games and for shares near 0 and 1).

    >>> [round(end, 3) for end in wilson_interval(1.0, 10)]
    [0.722, 1.0]
    """
    if not games:
        return 0.0, 1.0
    centre = (score + z * z / (2 * games)) / (1 + z * z / games)
    spread = z * math.sqrt(score * (1 - score) / games + z * z / (4 * games * games)) / (1 + z * z / games)
    return max(0.0, centre - spread), min(1.0, centre + spread)
