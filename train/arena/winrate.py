"""The Monte-Carlo win rate of report 002, played until it has converged, with a bound that holds whenever one stops.

The report stopped when the rate no longer moved much, which says little about the error. Watching an ordinary 95 % interval and
stopping when it pleases is no better: it is wrong more often than in 5 % of all runs. A *confidence sequence* holds for all
numbers of games at once, so that one may look after each game and stop at any. This one bets: for every rate m a gambler
bets that the mean is not m, at odds that would be fair if it were. Whoever multiplies the stake by 20 has refuted
m with 95 % confidence (Ville's inequality), and the rates not refuted are the interval (I. Waudby-Smith and A. Ramdas,
"Estimating means of bounded random variables by betting", JRSS B 86, 2024: the hedged capital process of section 4).

An observation is the mean of a pair of games, both colours of one opening: between 0 and 1, and independent of all others.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from math import log, sqrt

import numpy as np

from reversi_env import ReversiError
from reversi_env.errors import quoted
from train.arena.options import TournamentOptions
from train.arena.tournament import Tournament, missing_games
from train.jobs.processes import in_order

#: Rates that are bet against, so many and one; the interval's ends are rounded outwards to refuted ones.
STEPS = 2000
#: No gambler stakes more than this share of what can be lost.
BOLDEST = 0.5


class ConfidenceSequence:
    """An interval for the mean of independent numbers from 0 to 1 that is right at all times at once, with chance *confidence*."""

    def __init__(self, confidence: float = 0.95) -> None:
        if not 0 < confidence < 1:
            raise ReversiError(f"confidence {quoted(confidence)}: expected a chance between 0 and 1")
        self.count, self.total = 0, 0.0
        self._goal = log(2 / (1 - confidence))  # half the stake on "more", half on "less"
        self._rates = np.linspace(0, 1, STEPS + 1)
        self._log_more, self._log_less = np.zeros(STEPS + 1), np.zeros(STEPS + 1)
        self._low, self._high = 0, STEPS  # numbers of the rates at the ends
        self._spread = 0.25  # squared deviations so far, with one of the worst case to begin with

    @property
    def mean(self) -> float:
        """The mean so far; a half before the first observation."""
        return self.total / self.count if self.count else 0.5

    @property
    def interval(self) -> tuple[float, float]:
        """The largest rate that was refuted as too small, or 0, and the smallest that was refuted as too large, or 1."""
        return float(self._rates[self._low]), float(self._rates[self._high])

    def add(self, value: float) -> None:
        """Take one more observation into account; raise if all rates are refuted, as they are where the mean has changed."""
        if not 0 <= value <= 1:
            raise ReversiError(f"observation {quoted(value)}: expected a number from 0 to 1")
        # the stake depends on what was seen before, never on this value: else the bet would not be fair
        variance, turn = self._spread / (self.count + 1), self.count + 1
        stake = sqrt(2 * self._goal / (variance * turn * log(turn + 1)))
        with np.errstate(divide="ignore"):
            more = np.minimum(stake, BOLDEST / self._rates)
            less = np.minimum(stake, BOLDEST / (1 - self._rates))
        self._log_more += np.log1p(more * (value - self._rates))
        self._log_less += np.log1p(-less * (value - self._rates))
        # the capital of "more" falls with the rate, that of "less" rises
        self._low = max(self._low, int((self._log_more >= self._goal).sum()) - 1)
        self._high = min(self._high, STEPS + 1 - int((self._log_less >= self._goal).sum()))
        if self._low >= self._high:
            raise ReversiError(
                f"all rates are refuted after {self.count + 1} observations: expected independent ones with one mean"
            )
        self.count, self.total = self.count + 1, self.total + value
        guess = (0.5 + self.total) / (self.count + 1)
        self._spread += (value - guess) ** 2


@dataclass(frozen=True)
class WinRate:
    """How often an agent wins, draws counted as half: the mean, its interval, whether that is as narrow as was asked for."""

    rate: float = 0.5
    interval: tuple[float, float] = (0.0, 1.0)
    games: int = 0
    converged: bool = False

    @property
    def margin(self) -> float:
        """Distance of the rate from the farther end of the interval."""
        low, high = self.interval
        return max(self.rate - low, high - self.rate)


def estimate_win_rate(
    options: TournamentOptions,
    *,
    margin: float = 0.02,
    confidence: float = 0.95,
    workers: int = 0,
    on_pair: Callable[[WinRate], None] = lambda rate: None,
) -> WinRate:
    """Play a tournament of two until the first agent's win rate is known to within *margin*, or to its end; nothing is kept.

    The same numbers whatever the number of workers: pairs count in their order. *on_pair* hears how far it is.
    """
    if not 0 < margin < 0.5:
        raise ReversiError(f"margin {quoted(margin)}: expected a share of the games, above 0 and below 0.5")
    sequence, found = ConfidenceSequence(confidence), WinRate()
    with closing(missing_games(Tournament(options), workers)) as games:
        ordered = in_order((record.fixture.index, record.points_of(0)) for record in games)
        for first, second in zip(ordered, ordered, strict=True):
            sequence.add((first + second) / 2)
            found = WinRate(sequence.mean, sequence.interval, 2 * sequence.count)
            found = replace(found, converged=found.margin <= margin)
            on_pair(found)
            if found.converged:
                break
    return found
