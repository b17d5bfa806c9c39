"""`ExactSet`: endgame positions with the exact value of every move, on which evaluators and players are measured.

The solver computes the values of all moves once (`train.evaluation.endgames`); the moves of a player are then looked up.

>>> from search import agents, evaluators
>>> from train.evaluation.endgames import noisy_endgames
>>> from train.evaluation.options import EndgameOptions
>>> exact_set = noisy_endgames(EndgameOptions(size=6, positions=20, empties=(4, 6)))  # doctest: +SKIP
>>> exact_set.regret(agents.make_agent("greedy")).overall.regret  # discs per move  # doctest: +SKIP
4.27
>>> exact_set.errors(evaluators.get_evaluator("network")).mean  # discs  # doctest: +SKIP
1.93
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env import Position, Rules, batch
from reversi_env.errors import TrainError
from search import evaluators
from search.agents.base import Agent
from search.agents.spec import AgentSpec
from search.engine.solver import solve_batch
from search.evaluators.base import Evaluator
from search.evaluators.formula import Formula
from train.arena.batch import BatchPlayer
from train.evaluation.means import Interval, Sample, plain

#: Value of a square where no move is legal: below every score.
ILLEGAL = -128

Boards = NDArray[np.uint64]


@dataclass(frozen=True)
class RegretStatistics:
    """Results of one player on the positions with some number of empties; None: on all, every number with the same weight.

    ``regret``: mean loss in discs. ``optimal``: share of moves without loss. ``spoilt``: share of moves after which perfect play
    leads to a worse result, such as a draw instead of a win. ``…_standard_error``: clustered by game; nan if all positions are of
    one game. ``…_interval``: 95 % confidence intervals (`train.evaluation.means`).
    """

    empties: int | None
    positions: int
    regret: float
    regret_standard_error: float
    regret_interval: Interval
    optimal: float
    optimal_standard_error: float
    optimal_interval: Interval
    spoilt: float
    spoilt_interval: Interval


@dataclass(frozen=True)
class Judgement:
    """A player's statistics for each number of empties, lowest first, and ``overall``."""

    by_empties: tuple[RegretStatistics, ...]
    overall: RegretStatistics

    def as_dict(self) -> dict[str, Any]:
        return plain(asdict(self.overall)) | {"by_empties": [plain(asdict(part)) for part in self.by_empties]}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> Judgement:
        """Return the judgement of an `as_dict`; other entries are ignored."""

        def part(row: Mapping[str, Any]) -> RegretStatistics:
            values = {field.name: row[field.name] for field in fields(RegretStatistics)}
            for name, value in values.items():
                if name.endswith("_interval"):
                    values[name] = (math.nan, math.nan) if value is None else tuple(value)
                elif value is None and name != "empties":
                    values[name] = math.nan
            return RegretStatistics(**values)

        return cls(tuple(map(part, entries["by_empties"])), part(entries))


@dataclass(frozen=True, eq=False)
class Errors:
    """An evaluator's static values in discs, times ``scale`` and clipped to the board's range, and the exact scores."""

    values: NDArray[np.float64]
    scores: NDArray[np.int64]
    scale: float
    correlation: float  #: between values and scores

    @cached_property
    def absolute(self) -> NDArray[np.float64]:
        return np.abs(self.values - self.scores)

    @property
    def mean(self) -> float:
        return float(self.absolute.mean())

    @property
    def bias(self) -> float:
        """Mean of values minus scores, in discs; positive if positions are overestimated for the side to move."""
        return float((self.values - self.scores).mean())


def least_squares_scale(values: NDArray[Any], scores: NDArray[Any]) -> float:
    """Return the factor of *values* that fits *scores* best.

    >>> least_squares_scale(np.array([10.0, -20.0]), np.array([1.0, -2.0]))
    0.1
    """
    return float(values @ scores / max(values @ values, np.finfo(float).tiny))


@dataclass(frozen=True, eq=False)
class ExactSet:
    """Positions from the view of the side to move, none of them a pass, with exact scores in discs under the rules' objective.

    ``values``: int8 (n, squares), the value of every action, `ILLEGAL` if it is illegal; None if only the positions are solved,
    which is enough for evaluators. ``scores``: int64 (n,), the value of the best move. ``games``: the game of each position, by
    which standard errors are clustered; None: every position is of a game of its own.
    """

    rules: Rules
    own: Boards
    opp: Boards
    scores: NDArray[np.int64]
    values: NDArray[np.int8] | None = None
    games: NDArray[np.int64] | None = None

    @classmethod
    def of_values(
        cls, rules: Rules, own: Boards, opp: Boards, values: NDArray[np.int8], games: NDArray[np.int64] | None = None
    ) -> ExactSet:
        return cls(rules, own, opp, values.max(axis=1, initial=ILLEGAL).astype(np.int64), values, games)

    @classmethod
    def scored(cls, own: Boards, opp: Boards, rules: Rules, threads: int | None = None) -> ExactSet:
        """Return the set of positions, solved here, without values of moves."""
        return cls(rules, own, opp, solve_batch(own, opp, rules, threads=threads).astype(np.int64))

    def __len__(self) -> int:
        return len(self.own)

    def rows(self, index: NDArray[Any] | slice) -> ExactSet:
        """Return some of the positions, by index or mask."""
        values = None if self.values is None else self.values[index]
        games = None if self.games is None else self.games[index]
        return ExactSet(self.rules, self.own[index], self.opp[index], self.scores[index], values, games)

    @cached_property
    def empties(self) -> NDArray[np.int64]:
        """Empty squares of each position."""
        return self.rules.square_count - np.bitwise_count(self.own | self.opp).astype(np.int64)

    @cached_property
    def sample(self) -> Sample:
        """The positions by their empties and games, for means with standard errors and intervals."""
        return Sample(self.empties, self.games)

    @cached_property
    def masks(self) -> NDArray[np.bool_]:
        """Action masks (n, squares + 1) as in the environments; the pass is never legal here."""
        return np.concatenate([self._values != ILLEGAL, np.zeros((len(self), 1), np.bool_)], axis=1)

    @cached_property
    def observations(self) -> NDArray[np.uint8]:
        """Observations of the environments: (n, 2, size, size), own discs and the opponent's."""
        return batch.planes(self.own, self.opp, self.rules)

    @cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits that identify the positions and their values."""
        parts = (np.ascontiguousarray(array).tobytes() for array in (self.own, self.opp, self._values))
        return hashlib.sha256(str(self.rules).encode() + b"".join(parts)).hexdigest()[:12]

    @property
    def _values(self) -> NDArray[np.int8]:
        if self.values is None:
            raise TrainError("only the positions are solved: expected a set with the values of all moves")
        return self.values

    # --- evaluators -------------------------------------------------------------------------------

    def errors(self, evaluator: Evaluator | str) -> Errors:
        """Return the errors of an evaluator's static values; a formula, which has no unit, is scaled to fit best."""
        evaluator = evaluators.get_evaluator(evaluator)
        values = evaluator.static_values(self.own, self.opp, self.rules)
        return self.compare(values, scaled=isinstance(evaluator, Formula))

    def compare(self, values: NDArray[np.float64], *, scaled: bool) -> Errors:
        """Return the errors of values of the positions; *scaled*: times the factor that fits best, by least squares."""
        scale = least_squares_scale(values, self.scores.astype(float)) if scaled else 1.0
        limit, varies = self.rules.square_count, np.ptp(values) and np.ptp(self.scores)
        correlation = float(np.corrcoef(values, self.scores)[0, 1]) if varies else 0.0
        return Errors(np.clip(scale * values, -limit, limit), self.scores, scale, correlation)

    def one_ply_actions(self, evaluator: Evaluator) -> NDArray[np.int64]:
        """Return the moves with the best static value one ply ahead, or final score; of equal ones the first."""
        children = batch.expand(self.own, self.opp, self.rules)
        values = evaluator.static_values(children.own, children.opp, self.rules)
        over = batch.is_over(children.own, children.opp, self.rules)
        values[over] = batch.final_scores(children.own[over], children.opp[over], self.rules)
        order = np.lexsort((children.square, values, children.parent))  # lowest value for the opponent first
        best = order[np.searchsorted(children.parent[order], np.arange(len(self)))]
        return batch.action_table(self.rules)[children.square[best]]

    # --- players ----------------------------------------------------------------------------------

    def regret(self, agent: Agent | str, progress: Callable[[int, int], None] = lambda done, total: None) -> Judgement:
        """Judge *agent*, or the agent of a spec, which chooses a move in one position after the other."""
        if isinstance(agent, str):
            with AgentSpec.parse(agent).make() as opened:
                return self.regret(opened, progress)
        actions = np.empty(len(self), np.int64)
        for i, boards in enumerate(zip(self.own.tolist(), self.opp.tolist(), strict=True)):
            position = Position(self.rules, *boards)
            actions[i] = agent.choose_after(position, (), position)
            progress(i + 1, len(self))
        return self.judge(actions)

    def batch_regret(self, player: BatchPlayer) -> Judgement:
        """Judge a player of many games at once."""
        rows = np.arange(len(self))
        return self.judge(
            batch.action_table(self.rules)[player.choose(self.own, self.opp, rows, rows.astype(np.uint64))]
        )

    def judge(self, actions: ArrayLike) -> Judgement:
        values = self.chosen_values(actions)
        return self._judgement(self.scores - values, values == self.scores, np.sign(values) < np.sign(self.scores))

    def judge_probabilities(self, probabilities: ArrayLike) -> Judgement:
        """Return the expected statistics of a stochastic player, (n, actions); illegal moves are ignored."""
        squares, values = self.rules.square_count, self._values.astype(np.int64)
        weights = np.where(self.masks[:, :squares], np.asarray(probabilities, float)[:, :squares], 0.0)
        total = weights.sum(axis=1, keepdims=True)
        if weights.shape != values.shape or not np.isfinite(total).all() or not (total > 0).all():
            raise TrainError(
                f"probabilities of shape {np.shape(probabilities)}: expected a legal move with more than 0 in each of "
                f"{len(self)} positions"
            )
        weights /= total
        best = self.scores[:, None]
        parts = (best - values, values == best, np.sign(values) < np.sign(best))
        return self._judgement(*((weights * part).sum(axis=1) for part in parts))

    def random_play(self) -> Judgement:
        return self.judge_probabilities(self.masks)

    def chosen_values(self, actions: ArrayLike) -> NDArray[np.int64]:
        """Return the values of actions; an illegal one raises a `TrainError` that names its position."""
        indices = np.asarray(actions)
        if indices.shape != (len(self),) or indices.dtype.kind not in "ui":
            raise TrainError(
                f"actions of {indices.dtype} and shape {indices.shape}: expected {len(self)} integers, one per position"
            )
        indices = indices.astype(np.int64)
        inside = (indices >= 0) & (indices < self.rules.square_count)
        values = self._values[np.arange(len(self)), np.where(inside, indices, 0)].astype(np.int64)
        legal = inside & (values != ILLEGAL)
        if not legal.all():
            first = int(np.argmin(legal))
            raise TrainError(
                f"action {indices[first]} is illegal in position {first} (own {self.own[first]:#x}, opp "
                f"{self.opp[first]:#x}): expected one of {np.flatnonzero(self.masks[first]).tolist()}"
            )
        return values

    def _judgement(self, *parts: NDArray[Any]) -> Judgement:
        worst = self.scores - np.where(self._values == ILLEGAL, 127, self._values).min(axis=1)

        def statistics(empties: int | None) -> RegretStatistics:
            rows = slice(None) if empties is None else self.empties == empties
            sample = self.sample if empties is None else self.rows(rows).sample
            regret = sample.loss(parts[0][rows], worst[rows])
            optimal, spoilt = (sample.share(part[rows]) for part in parts[1:])
            return RegretStatistics(
                *(empties, len(sample.strata), regret.mean, regret.standard_error, regret.interval),
                *(optimal.mean, optimal.standard_error, optimal.interval, spoilt.mean, spoilt.interval),
            )

        return Judgement(tuple(statistics(int(empties)) for empties in np.unique(self.empties)), statistics(None))


def move_values(own: Boards, opp: Boards, rules: Rules, *, threads: int | None = None) -> NDArray[np.int8]:
    """Return the exact value of every move, as in `ExactSet.values`."""
    children = batch.expand(own, opp, rules)
    scores = solve_batch(children.own, children.opp, rules, threads=threads)
    return batch.by_action(children, -scores.astype(np.int8), len(own), rules, ILLEGAL)
