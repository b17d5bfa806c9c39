"""The ladder: how good a policy is against fixed players, in points a game and in Elo.

All games are from paired random openings, every opening from both sides, thousands in step. The rungs play each other as well,
once, so that the Elo of a policy means the same over a whole training and in another one: it is counted from ``random``, which
has 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import isfinite
from typing import Any

import numpy as np

from models.evaluator import strongest_evaluator
from reversi_env import ReversiError, Rules
from reversi_env.options import derive_seed
from train.arena.batch import BatchPlayer, compiled_player, play_games
from train.arena.openings import Openings
from train.arena.ratings import fit_ratings, interval_text
from train.arena.results import Results

RUNGS = ("random", "greedy", "cell-utility:depth=2", "six-factor:depth=2")
#: The strongest rung, where the package has a network for the game.
NETWORK = "network:depth=2"


@dataclass(frozen=True)
class Standing:
    """A policy's scores against every rung, and its Elo above ``zero`` with the ends of the 95 % interval.

    Elo is that of Davidson's model; an end is infinite if the results put no limit to it, and ``elo`` then means nothing
    (`train.arena.ratings.Rating`).
    """

    scores: dict[str, Results]
    elo: float
    low: float
    high: float

    @property
    def zero(self) -> str:
        """What Elo is counted from: ``random`` if it is a rung, else the mean of all players, the policy among them."""
        return "random" if "random" in self.scores else "the mean of these players"

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it: an open end of the interval is None, and so is Elo then."""
        low, high = (end if isfinite(end) else None for end in (self.low, self.high))
        elo = None if low is None or high is None else self.elo
        told = ("points", "interval", "wins", "draws", "losses", "discs")
        rungs = {name: {key: results.as_dict()[key] for key in told} for name, results in self.scores.items()}
        return {"elo": elo, "elo_low": low, "elo_high": high, "rungs": rungs}


class Ladder:
    """The rungs of a game and their results against each other; *games* (an even number) between any two players."""

    def __init__(self, rules: Rules, games: int = 400, seed: int = 0, rungs: tuple[str, ...] | None = None) -> None:
        self.rules, self._seed = rules, seed
        self.rungs = rungs_of(rules) if rungs is None else rungs
        self.players: list[BatchPlayer] = []
        for spec in self.rungs:
            player = compiled_player(spec, rules)
            if player is None:
                raise ReversiError(f"rung {spec!r}: expected random, greedy, or an evaluator with a depth")
            self.players.append(player)
        plies = 6 if rules.size > 4 else 2
        self._openings = Openings.random(rules, games // 2, plies, seed)
        self._wins, self._draws = np.zeros((2, len(self.rungs) + 1, len(self.rungs) + 1))
        for (a, first), (b, second) in combinations(enumerate(self.players, start=1), 2):
            self._note(a, b, self._games(a, first, b, second))

    def measure(self, player: BatchPlayer) -> Standing:
        """How good *player* is."""
        scores = {}
        for number, (spec, rung) in enumerate(zip(self.rungs, self.players, strict=True), start=1):
            scores[spec] = self._games(0, player, number, rung)
            self._note(0, number, scores[spec])
        anchor = 1 + self.rungs.index("random") if "random" in self.rungs else None
        own = fit_ratings(self._wins, self._draws, anchor).players[0]
        return Standing(scores, own.elo, own.low, own.high)

    def _games(self, a: int, first: BatchPlayer, b: int, second: BatchPlayer) -> Results:
        # With one seed for all pairings, a policy that plays like a rung would repeat the games of that rung.
        return play_games(first, second, self._openings, self.rules, seed=derive_seed(self._seed, a, b))

    def _note(self, a: int, b: int, results: Results) -> None:
        self._wins[a, b], self._wins[b, a] = results.wins, results.losses
        self._draws[a, b] = self._draws[b, a] = results.draws


def elo_text(evaluation: Mapping[str, Any]) -> str:
    """Elo of an evaluation with `Standing.as_dict` in it, for a progress line; the bound if Elo is not determined."""
    elo, low, high = (evaluation[key] for key in ("elo", "elo_low", "elo_high"))
    return f"{interval_text(low, high) if elo is None else f'{elo:+.0f}'} Elo"


def flat_row(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """A line of a table: an evaluation with `Standing.as_dict` in it, the points against each rung in columns of their own."""
    points = {name: round(rung["points"], 4) for name, rung in evaluation["rungs"].items()}
    return {key: value for key, value in evaluation.items() if key != "rungs"} | points


def rungs_of(rules: Rules) -> tuple[str, ...]:
    """The rungs that there are for a game, the weakest first."""
    return (*RUNGS, NETWORK) if strongest_evaluator(rules) == "network" else RUNGS
