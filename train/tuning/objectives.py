"""Objectives: what a candidate is judged by. The lower the loss, the better; in one round, the same candidate gets the same.

All candidates of a round play the same openings with the same random numbers, or are held against the same labels: a
difference between two losses is a difference between candidates. The next round has other games. With the same ones in
all rounds, candidates learnt them by heart: 95 % won there, 92 % elsewhere. What the best one is worth is measured on
games or positions that no candidate was chosen by.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules, batch
from reversi_env.errors import TrainError
from reversi_env.options import derive_seed
from reversi_env.rules import Variant
from search import evaluators
from search.evaluators.formula import Formula
from train.arena.batch import BatchPlayer, EvaluatorPlayer, RandomPlayer, play_games
from train.arena.openings import Openings
from train.evaluation.exact_set import Errors, ExactSet
from train.labels import LabelOptions
from train.labels.sampling import sample_block

#: Stream of the seed of what a result is measured on.
CHECK_STREAM = 0
#: Spread in discs that a candidate's values are brought to before it plays: only their order matters, and numbers that the
#: board's range would cut off have none.
SPREAD = 10.0
_SPREAD_POSITIONS = 512
#: A scale that leaves no value to be cut off at the board's range.
_TINY = 1e-15


@dataclass(frozen=True)
class Objective(ABC):
    """What candidates are judged by, in one game; ``described`` has its ``kind`` and the fields that are ``described_fields``."""

    kind: ClassVar[str]
    described_fields: ClassVar[tuple[str, ...]]
    size: int = 8
    variant: Variant = "normal"
    threads: int | None = field(default=None, compare=False, kw_only=True)

    @property
    def rules(self) -> Rules:
        """The game."""
        return Rules(self.size, self.variant)

    @abstractmethod
    def losses(self, candidates: Sequence[Formula], number: int = 0) -> NDArray[np.float64]:
        """One loss a candidate, in the round of that number; they are of one formula."""

    @abstractmethod
    def held_out(self) -> Objective:
        """The same on games or positions of its own, to measure a result on."""

    def described(self) -> dict[str, Any]:
        """What decides the losses, as JSON has it."""
        values = {name: getattr(self, name) for name in self.described_fields}
        return {"kind": self.kind} | {
            name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
        }

    def content_hashes(self) -> dict[str, str]:
        """Hashes of what else decides the losses: weights that ``described`` only names."""
        return {}


def rescaled(candidates: Sequence[Formula], rules: Rules) -> list[Formula]:
    """The candidates with scales that bring their values to a spread of `SPREAD` discs over positions of random play."""
    plies = np.arange(_SPREAD_POSITIONS) % (rules.square_count - 10) + 2
    own, opp = batch.random_positions(_SPREAD_POSITIONS, plies, rules, seed=0)
    scaled = []
    for candidate in candidates:
        deviation = float(replace(candidate, scale=_TINY).static_values(own, opp, rules).std()) / _TINY
        scaled.append(replace(candidate, scale=SPREAD / max(deviation, 1e-9)))
    return scaled


# --- games ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WinRate(Objective):
    """One minus the mean points a game (a draw is half a point) against every opponent of a panel.

    The candidate and the opponents that are evaluators choose their moves by a search of ``depth`` plies; with ``exact``, the
    candidate plays the last so many squares perfectly. ``games`` are played against each opponent, every opening, of
    ``openings`` random plies, from both sides.
    """

    kind = "win rate"
    described_fields = ("panel", "size", "variant", "games", "depth", "exact", "openings", "seed")

    variant: Variant = "reversed"
    panel: tuple[str, ...] = ("random",)
    games: int = 1000
    depth: int = 1
    exact: int = 0
    openings: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.panel:
            raise TrainError("an empty panel: expected one opponent or more")
        if self.games < 2 or self.games % 2:
            raise TrainError(
                f"games={self.games}: expected an even number, since every opening is played from both sides"
            )

    def losses(self, candidates: Sequence[Formula], number: int = 0) -> NDArray[np.float64]:
        """Shares of the points that the candidates did not get."""
        rules = self.rules
        players = rescaled(candidates, rules)
        how: dict[str, Any] = {"exact": self.exact, "threads": self.threads, "games_per_evaluator": self.games}
        player = EvaluatorPlayer(players, rules, self.depth, **how)
        points = np.zeros(len(candidates))
        for member, name in enumerate(self.panel):
            seed = derive_seed(self.seed, number, member)
            openings = Openings.random(rules, self.games // 2, self.openings, seed=seed).repeated(len(candidates))
            results = play_games(player, self._opponent(name), openings, rules, seed=seed)
            points += results.points.reshape(len(candidates), -1).mean(axis=1)
        return 1 - points / len(self.panel)

    def held_out(self) -> WinRate:
        """Other games, and so many that a hundredth shows."""
        return replace(self, seed=derive_seed(self.seed, CHECK_STREAM), games=max(self.games, 10_000))

    def content_hashes(self) -> dict[str, str]:
        """Hashes of the opponents' weights."""
        return {name: evaluators.get_evaluator(name).sha256(self.rules) for name in self.panel if name != "random"}

    def _opponent(self, name: str) -> BatchPlayer:
        if name == "random":
            return RandomPlayer(self.rules)
        return EvaluatorPlayer(name, self.rules, self.depth, threads=self.threads)


# --- labels ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelError(Objective):
    """The mean absolute error in discs against exact scores, of the candidate's values times the number that suits them best.

    Positions are those of noisy games (`train.labels`) with ``empties`` from lowest to highest.
    """

    kind = "label error"
    described_fields = ("empties", "size", "variant", "positions", "seed")

    positions: int = 4000
    empties: tuple[int, int] = (8, 12)
    seed: int = 0
    #: Positions of these objectives, and their mirror images, are left out.
    excluded: tuple[LabelError, ...] = ()
    _cache: dict[str, ExactSet] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._options()  # refuses what makes no data

    def losses(self, candidates: Sequence[Formula], number: int = 0) -> NDArray[np.float64]:
        """Errors in discs, the same in every round."""
        return np.array([self._errors(candidate).mean for candidate in candidates])

    def scale(self, candidate: Formula) -> float:
        """Discs for one unit of the candidate's formula, by least squares."""
        return self._errors(candidate).scale

    def held_out(self) -> LabelError:
        """Positions of other games, without those that were met before."""
        return replace(self, seed=derive_seed(self.seed, CHECK_STREAM), excluded=(*self.excluded, self), _cache={})

    def truth(self) -> ExactSet:
        """The positions with their scores; solved once."""
        if "truth" not in self._cache:
            own, opp = sample_block(self._options(), 0)
            known = [batch.image_hash(other.truth().own, other.truth().opp) for other in self.excluded]
            new = ~np.isin(batch.image_hash(own, opp), np.concatenate(known)) if known else np.ones(own.size, np.bool_)
            self._cache["truth"] = ExactSet.scored(own[new], opp[new], self.rules, self.threads)
        return self._cache["truth"]

    def _options(self) -> LabelOptions:
        return LabelOptions(self.size, self.variant, self.positions, self.empties, self.seed, play_depth=1)

    def _errors(self, candidate: Formula) -> Errors:
        """Of the formula's values as they come, not cut off at the board's range."""
        truth, tiny = self.truth(), replace(candidate, scale=_TINY)
        return truth.compare(tiny.static_values(truth.own, truth.opp, truth.rules) / _TINY, scaled=True)
