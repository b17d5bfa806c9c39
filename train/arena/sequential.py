"""Sequential tests and intervals: the SPRT of a strength difference, and a confidence sequence for a mean.

**SPRT.** Wald's sequential test between "A is stronger by at most `elo0`" (H0) and "by at least `elo1`" (H1), as chess engines are
tested: a pair of games from one opening, colours exchanged, is one observation with five outcomes, 0, ½, 1, 1½ or 2 points for A
(the "pentanomial" model). The generalised likelihood ratio compares the likeliest distributions over the five whose means are
those of the hypotheses (M. Van den Bergh, "The generalized maximum likelihood ratio for the expectation value of a distribution",
2017; used by Fishtest: https://github.com/official-stockfish/fishtest). With a given mean s the likeliest distribution is
p_i = f_i / (1 + θ (a_i − s)), where f are the observed frequencies, a the points of pairs as shares of 1, and θ solves
Σ f_i (a_i − s) / (1 + θ (a_i − s)) = 0.

**Confidence sequence.** An interval that holds at all numbers of observations at once, so that one may stop at any time. For every
rate m a gambler bets that the mean is not m, at fair odds. If the capital reaches 20 times the stake, m is refuted with 95 %
confidence (Ville's inequality); the rates not refuted are the interval (I. Waudby-Smith and A. Ramdas, "Estimating means of
bounded random variables by betting", JRSS B 86, 2024: the hedged capital process of section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import TYPE_CHECKING, Literal

from reversi_env import ReversiError
from reversi_env.errors import quoted

if TYPE_CHECKING:
    import numpy as np  # not at run time: the help of the commands reads the options

#: Points of a pair as a share of two.
PAIR_SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Count of outcomes that were not observed: without them, a mean outside the observed range is impossible.
PSEUDO_COUNT = 1e-3
#: Newton's method ends at a step shorter than this.
PRECISION = 1e-12

Verdict = Literal["H0", "H1"]


def expected_score(elo: float) -> float:
    """Return the mean points per game of a player that is stronger by *elo*.

    >>> round(expected_score(100), 3)
    0.64
    """
    return 1 / (1 + 10 ** (-elo / 400))


@dataclass(frozen=True)
class Sprt:
    """A test of two hypotheses about A's strength over B in Elo, with the probabilities *alpha* and *beta* of errors."""

    elo0: float = 0.0
    elo1: float = 20.0
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        if not -2000 <= self.elo0 < self.elo1 <= 2000:
            raise ReversiError(
                f"SPRT between {quoted(self.elo0)} and {quoted(self.elo1)} Elo: expected two numbers, the first one smaller"
            )
        for name in ("alpha", "beta"):
            if not 0 < getattr(self, name) < 0.5:
                raise ReversiError(f"{name}={quoted(getattr(self, name))}: expected a probability below 0.5")

    @property
    def bounds(self) -> tuple[float, float]:
        """Log-likelihood ratios at which H0 and H1 are accepted (Wald)."""
        return log(self.beta / (1 - self.alpha)), log((1 - self.beta) / self.alpha)

    def llr(self, counts: Sequence[float] | np.ndarray) -> float:
        """Return the log-likelihood ratio of H1 to H0; *counts*: pairs with 0, ½, 1, 1½, 2 points for A."""
        import numpy as np

        return float(self.llrs(np.asarray(counts)[None])[0])

    def llrs(self, counts: np.ndarray) -> np.ndarray:
        """Return the log-likelihood ratios of several tests, (n, 5) counts."""
        import numpy as np

        seen = np.maximum(counts, PSEUDO_COUNT)
        frequencies = seen / seen.sum(axis=1, keepdims=True)
        logs = [np.log(_likeliest(frequencies, expected_score(elo))) for elo in (self.elo0, self.elo1)]
        ratios: np.ndarray = (seen * (logs[1] - logs[0])).sum(axis=1)
        return np.where(counts.any(axis=1), ratios, 0.0)

    def verdict(self, counts: Sequence[float] | np.ndarray) -> Verdict | None:
        """Return the hypothesis that is accepted after these pairs, None if the test continues."""
        ratio, (low, high) = self.llr(counts), self.bounds
        return "H1" if ratio >= high else "H0" if ratio <= low else None


def pair_counts(points: Sequence[float]) -> np.ndarray:
    """Return the numbers of pairs with 0, ½, 1, 1½ and 2 points, from the points of every pair.

    >>> pair_counts([1, 1, 2, 0.5]).tolist()
    [0, 1, 2, 0, 1]
    """
    import numpy as np

    return np.bincount(np.rint(2 * np.asarray(points, np.float64)).astype(np.int64), minlength=5)


def _likeliest(frequencies: np.ndarray, mean: float) -> np.ndarray:
    """Return the distributions over `PAIR_SCORES` with that mean under which *frequencies*, (n, 5), are likeliest."""
    import numpy as np

    deviations = np.array(PAIR_SCORES) - mean
    # Between these bounds of θ all probabilities are positive, and the sum over the terms falls from +inf to -inf.
    low, high = (np.full((len(frequencies), 1), -1 / end) for end in (deviations.max(), deviations.min()))
    theta = (low + high) / 2
    for _ in range(100):  # Newton's method, halving where it would leave the interval that holds the root
        terms = deviations / (1 + theta * deviations)
        value = (frequencies * terms).sum(axis=1, keepdims=True)
        low, high = np.where(value > 0, theta, low), np.where(value > 0, high, theta)
        after = theta + value / (frequencies * terms**2).sum(axis=1, keepdims=True)
        after = np.where((after > low) & (after < high), after, (low + high) / 2)
        is_last, theta = np.abs(after - theta).max(initial=0) < PRECISION, after
        if is_last:
            break
    probabilities: np.ndarray = frequencies / (1 + theta * deviations)
    return probabilities


#: Number of rates that are bet against, less one; the ends of the interval are refuted rates.
GRID_STEPS = 2000
#: Maximum stake as a share of the capital.
MAX_BET = 0.5


class ConfidenceSequence:
    """An interval for the mean of independent numbers from 0 to 1 that holds at all times with probability *confidence*."""

    def __init__(self, confidence: float = 0.95) -> None:
        if not 0 < confidence < 1:
            raise ReversiError(f"confidence {quoted(confidence)}: expected a probability between 0 and 1")
        import numpy as np

        self.count, self.total = 0, 0.0
        self._threshold = log(2 / (1 - confidence))  # half of the capital bets on "more", half on "less"
        self._rates = np.linspace(0, 1, GRID_STEPS + 1)
        self._log_more, self._log_less = np.zeros(GRID_STEPS + 1), np.zeros(GRID_STEPS + 1)
        self._low, self._high = 0, GRID_STEPS  # indices of the rates at the ends
        self._squared_deviations = 0.25  # sum so far, with one worst case at the start

    @property
    def mean(self) -> float:
        """The mean so far; 0.5 before the first observation."""
        return self.total / self.count if self.count else 0.5

    @property
    def interval(self) -> tuple[float, float]:
        """The largest rate that was refuted as too small, or 0, and the smallest that was refuted as too large, or 1."""
        return float(self._rates[self._low]), float(self._rates[self._high])

    def add(self, value: float) -> None:
        """Add an observation; raise if all rates are refuted, as after a change of the mean."""
        if not 0 <= value <= 1:
            raise ReversiError(f"observation {quoted(value)}: expected a number from 0 to 1")
        import numpy as np

        # The stake depends on earlier observations only: otherwise the bet would not be fair.
        variance, number = self._squared_deviations / (self.count + 1), self.count + 1
        stake = sqrt(2 * self._threshold / (variance * number * log(number + 1)))
        with np.errstate(divide="ignore"):
            more = np.minimum(stake, MAX_BET / self._rates)
            less = np.minimum(stake, MAX_BET / (1 - self._rates))
        self._log_more += np.log1p(more * (value - self._rates))
        self._log_less += np.log1p(-less * (value - self._rates))
        # The capital of "more" falls with the rate, that of "less" rises.
        self._low = max(self._low, int((self._log_more >= self._threshold).sum()) - 1)
        self._high = min(self._high, GRID_STEPS + 1 - int((self._log_less >= self._threshold).sum()))
        if self._low >= self._high:
            raise ReversiError(
                f"all rates are refuted after {number} observations: expected independent ones with the same mean"
            )
        self.count, self.total = number, self.total + value
        guess = (0.5 + self.total) / (self.count + 1)
        self._squared_deviations += (value - guess) ** 2
