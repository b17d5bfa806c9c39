"""Objectives of a tuning run: losses of candidates, equal for equal candidates of one generation.

All candidates of a generation play the same openings with the same random numbers, or are compared with the same labels. Every
generation has other games: with the same ones, candidates overfit (95 % won there, 92 % elsewhere). The result is measured on
games or positions that were not used to choose a candidate.
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

#: Stream of the seed of held-out games and positions.
CHECK_STREAM = 0
#: Standard deviation in discs of a candidate's values when it plays, small enough that few values are clipped to the board's range.
DEVIATION, DEVIATION_POSITIONS = 10.0, 512
#: A scale with which no value is clipped to the board's range.
_TINY = 1e-15


@dataclass(frozen=True)
class Objective(ABC):
    """A loss of candidates in one game; ``described`` has its ``kind`` and its ``described_fields``."""

    kind: ClassVar[str]
    described_fields: ClassVar[tuple[str, ...]]
    size: int = 8
    variant: Variant = "normal"
    threads: int | None = field(default=None, compare=False, kw_only=True)

    @property
    def rules(self) -> Rules:
        return Rules(self.size, self.variant)

    @abstractmethod
    def losses(self, candidates: Sequence[Formula], number: int = 0) -> NDArray[np.float64]:
        """Return the loss of each candidate, all of one formula, in generation *number*."""

    @abstractmethod
    def held_out(self) -> Objective:
        """Return the objective on other games or positions, to measure a result on."""

    def described(self) -> dict[str, Any]:
        """Return the fields that decide the losses, for JSON."""
        values = ((name, getattr(self, name)) for name in self.described_fields)
        return {"kind": self.kind, **{name: list(v) if isinstance(v, tuple) else v for name, v in values}}

    def content_hashes(self) -> dict[str, str]:
        """Return the hashes of the weights that ``described`` only names."""
        return {}


def rescaled(candidates: Sequence[Formula], rules: Rules) -> list[Formula]:
    """Return the candidates with scales such that their values have the standard deviation `DEVIATION` on random positions."""
    plies = np.arange(DEVIATION_POSITIONS) % (rules.square_count - 10) + 2
    own, opp = batch.random_positions(DEVIATION_POSITIONS, plies, rules, seed=0)
    scaled = []
    for candidate in candidates:
        deviation = float(replace(candidate, scale=_TINY).static_values(own, opp, rules).std()) / _TINY
        scaled.append(replace(candidate, scale=DEVIATION / max(deviation, 1e-9)))
    return scaled


@dataclass(frozen=True)
class WinRate(Objective):
    """One minus the mean points per game (a draw is half a point) against every opponent of a panel.

    Candidates and opponents search to ``depth`` plies; with ``exact``, candidates play the last squares perfectly. ``games`` are
    played against each opponent, from both sides of openings of ``openings`` random plies.
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
        rules = self.rules
        players = rescaled(candidates, rules)
        player = EvaluatorPlayer(
            players, rules, self.depth, exact=self.exact, threads=self.threads, games_per_evaluator=self.games
        )
        points = np.zeros(len(candidates))
        for member, name in enumerate(self.panel):
            seed = derive_seed(self.seed, number, member)
            openings = Openings.random(rules, self.games // 2, self.openings, seed=seed).repeated(len(candidates))
            results = play_games(player, self._opponent(name), openings, rules, seed=seed)
            points += results.points.reshape(len(candidates), -1).mean(axis=1)
        return 1 - points / len(self.panel)

    def held_out(self) -> WinRate:
        return replace(self, seed=derive_seed(self.seed, CHECK_STREAM), games=max(self.games, 10_000))

    def content_hashes(self) -> dict[str, str]:
        return {name: evaluators.get_evaluator(name).sha256(self.rules) for name in self.panel if name != "random"}

    def _opponent(self, name: str) -> BatchPlayer:
        if name == "random":
            return RandomPlayer(self.rules)
        return EvaluatorPlayer(name, self.rules, self.depth, threads=self.threads)


@dataclass(frozen=True)
class LabelError(Objective):
    """The mean absolute error in discs of a candidate's values, with the best scale, on positions of noisy games."""

    kind = "label error"
    described_fields = ("empties", "size", "variant", "positions", "seed")

    positions: int = 4000
    empties: tuple[int, int] = (8, 12)
    seed: int = 0
    #: Positions of these objectives, and their symmetric images, are excluded.
    excluded: tuple[LabelError, ...] = ()
    _cache: dict[str, ExactSet] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._options()  # raises for wrong options

    def losses(self, candidates: Sequence[Formula], number: int = 0) -> NDArray[np.float64]:
        """Return errors in discs, the same in every generation."""
        return np.array([self._errors(candidate).mean for candidate in candidates])

    def scale(self, candidate: Formula) -> float:
        """Return discs per unit of the candidate's formula, by least squares."""
        return self._errors(candidate).scale

    def held_out(self) -> LabelError:
        return replace(self, seed=derive_seed(self.seed, CHECK_STREAM), excluded=(*self.excluded, self), _cache={})

    def truth(self) -> ExactSet:
        """Return the positions with their scores, solved once."""
        if "truth" not in self._cache:
            own, opp = sample_block(self._options(), 0)
            hashes = [batch.image_hash(other.truth().own, other.truth().opp) for other in self.excluded]
            new = ~np.isin(batch.image_hash(own, opp), np.concatenate([np.zeros(0, np.uint64), *hashes]))
            self._cache["truth"] = ExactSet.scored(own[new], opp[new], self.rules, self.threads)
        return self._cache["truth"]

    def _options(self) -> LabelOptions:
        return LabelOptions(self.size, self.variant, self.positions, self.empties, self.seed, play_depth=1)

    def _errors(self, candidate: Formula) -> Errors:
        """Return the errors of the formula's values, without clipping."""
        truth, unclipped = self.truth(), replace(candidate, scale=_TINY)
        return truth.compare(unclipped.static_values(truth.own, truth.opp, truth.rules) / _TINY, scaled=True)
