"""`ExactSet`: positions near the end with the exact value of every move, the truth that evaluators and players are held against.

The solver values all moves once; the result is kept in a file, so that judging a player afterwards is nothing but looking up the
moves that it chooses. Where the positions come from is told in `train.evaluation.endgames`. Nothing here imports torch.

>>> from search import agents, evaluators
>>> from train.evaluation.endgames import EndgameOptions, noisy_endgames
>>> truth = noisy_endgames(EndgameOptions(size=6, positions=20, empties=(4, 6)))  # doctest: +SKIP
>>> truth.regret(agents.make_agent("greedy")).overall.regret  # discs a move  # doctest: +SKIP
4.27
>>> truth.errors(evaluators.get_evaluator("network")).mean  # discs  # doctest: +SKIP
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
from reversi_env.kernels.bitboard import PASS_SQUARE
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


# --- what there is to say of a player or an evaluator ---------------------------------------------


@dataclass(frozen=True)
class RegretStatistics:
    """What one player did on the positions with some number of empty squares; None: on all, every number counting alike.

    ``regret``: mean discs given away. ``optimal``: share of moves that gave away nothing. ``spoilt``: share of moves after which
    the game, perfectly played on, has a worse result: a draw or a loss instead of a win, a loss instead of a draw.

    ``…_standard_error``: clustered by game; nan if the positions are of one game. ``…_interval``: 95 % confidence intervals that
    do not assume a normal distribution (`train.evaluation.means`).
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
    """One player's figures for each number of empties, lowest first, and ``overall``, where each number counts alike."""

    by_empties: tuple[RegretStatistics, ...]
    overall: RegretStatistics

    def as_dict(self) -> dict[str, Any]:
        """The figures as JSON has them."""
        return plain(asdict(self.overall)) | {"by_empties": [plain(asdict(part)) for part in self.by_empties]}

    @classmethod
    def from_dict(cls, figures: Mapping[str, Any]) -> Judgement:
        """The judgement of what `as_dict` gave; other entries are left out."""

        def part(given: Mapping[str, Any]) -> RegretStatistics:
            values = {one.name: given[one.name] for one in fields(RegretStatistics)}
            for name, value in values.items():
                if name.endswith("_interval"):
                    values[name] = (math.nan, math.nan) if value is None else tuple(value)
                elif value is None and name != "empties":
                    values[name] = math.nan
            return RegretStatistics(**values)

        return cls(tuple(part(one) for one in figures["by_empties"]), part(figures))


@dataclass(frozen=True, eq=False)
class Errors:
    """An evaluator's static values in discs, times ``scale`` and within the board's range, beside the exact scores."""

    values: NDArray[np.float64]
    scores: NDArray[np.int64]
    scale: float
    correlation: float  #: between values and scores

    @cached_property
    def absolute(self) -> NDArray[np.float64]:
        """How far each value is from the score."""
        return np.abs(self.values - self.scores)

    @property
    def mean(self) -> float:
        """Mean absolute error in discs."""
        return float(self.absolute.mean())

    @property
    def bias(self) -> float:
        """Mean of values minus scores, in discs: above 0 where the side to move is taken for better off than it is."""
        return float((self.values - self.scores).mean())


def least_squares_scale(values: NDArray[Any], scores: NDArray[Any]) -> float:
    """The number that, times *values* in units of their own, comes nearest to *scores*.

    >>> least_squares_scale(np.array([10.0, -20.0]), np.array([1.0, -2.0]))
    0.1
    """
    return float(values @ scores / max(values @ values, np.finfo(float).tiny))


# --- positions ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ExactSet:
    """Positions seen by the side to move, none of them a pass, with exact scores in discs under the rules' objective.

    ``values``: int8 (N, squares), by action, what each move is worth, `ILLEGAL` where there is none; None if only the positions
    are solved, which is enough to judge evaluators. ``scores``: int64 (N,), the value of the best move. ``games``: the game that
    each position is of, by which standard errors are clustered; None: every position is of another game.
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
        """Positions with the values of all moves."""
        return cls(rules, own, opp, values.max(axis=1, initial=ILLEGAL).astype(np.int64), values, games)

    @classmethod
    def scored(cls, own: Boards, opp: Boards, rules: Rules, threads: int | None = None) -> ExactSet:
        """Solve positions, but not their moves."""
        return cls(rules, own, opp, solve_batch(own, opp, rules, threads=threads).astype(np.int64))

    def __len__(self) -> int:
        return len(self.own)

    def rows(self, chosen: NDArray[Any] | slice) -> ExactSet:
        """Some of the positions, by index or mask."""
        values = None if self.values is None else self.values[chosen]
        games = None if self.games is None else self.games[chosen]
        return ExactSet(self.rules, self.own[chosen], self.opp[chosen], self.scores[chosen], values, games)

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
        """Legal actions (N, squares + 1) as the environments tell them; the last, the pass, never is one here."""
        return np.concatenate([self._values != ILLEGAL, np.zeros((len(self), 1), np.bool_)], axis=1)

    @cached_property
    def observations(self) -> NDArray[np.uint8]:
        """What the environments show of each position: (N, 2, size, size), own discs and the opponent's."""
        return batch.planes(self.own, self.opp, self.rules)

    @cached_property
    def digest(self) -> str:
        """Twelve digits that tell two sets of positions apart."""
        parts = (np.ascontiguousarray(array).tobytes() for array in (self.own, self.opp, self._values))
        return hashlib.sha256(str(self.rules).encode() + b"".join(parts)).hexdigest()[:12]

    @property
    def _values(self) -> NDArray[np.int8]:
        if self.values is None:
            raise TrainError("only the positions are solved: expected a set with the values of all moves")
        return self.values

    # --- evaluators -------------------------------------------------------------------------------

    def errors(self, evaluator: Evaluator | str) -> Errors:
        """An evaluator's static values against the truth. A formula is first scaled to fit best; a network speaks of discs."""
        evaluator = evaluators.get_evaluator(evaluator)
        values = evaluator.static_values(self.own, self.opp, self.rules)
        return self.compare(values, scaled=isinstance(evaluator, Formula))

    def compare(self, values: NDArray[np.float64], *, scaled: bool) -> Errors:
        """Values of the positions against the truth; *scaled*: times the number that suits them best, by least squares."""
        scale = least_squares_scale(values, self.scores.astype(float)) if scaled else 1.0
        most, varies = self.rules.square_count, np.ptp(values) and np.ptp(self.scores)
        correlation = float(np.corrcoef(values, self.scores)[0, 1]) if varies else 0.0
        return Errors(np.clip(scale * values, -most, most), self.scores, scale, correlation)

    def one_ply_actions(self, evaluator: Evaluator) -> NDArray[np.int64]:
        """The move with the best static value one ply ahead; a game that ends there counts its score. Ties: the first move."""
        children = batch.expand(self.own, self.opp, self.rules)
        values = evaluator.static_values(children.own, children.opp, self.rules)
        over = batch.is_over(children.own, children.opp, self.rules)
        values[over] = batch.final_scores(children.own[over], children.opp[over], self.rules)
        order = np.lexsort((children.square, values, children.parent))  # the lowest for the opponent first
        chosen = order[np.searchsorted(children.parent[order], np.arange(len(self)))]
        return action_table(self.rules)[children.square[chosen]]

    # --- players ----------------------------------------------------------------------------------

    def regret(self, agent: Agent | str, progress: Callable[[int, int], None] = lambda done, total: None) -> Judgement:
        """What *agent*, or the one of a spec, gives away, asked in one position after the other.

        Another program is shown each as a start.
        """
        if isinstance(agent, str):
            with AgentSpec.parse(agent).make() as made:
                return self.regret(made, progress)
        actions = np.empty(len(self), np.int64)
        for i, boards in enumerate(zip(self.own.tolist(), self.opp.tolist(), strict=True)):
            position = Position(self.rules, *boards)
            actions[i] = agent.choose_after(position, (), position)
            progress(i + 1, len(self))
        return self.judge(actions)

    def batch_regret(self, player: BatchPlayer) -> Judgement:
        """What a player of many games at once gives away."""
        rows = np.arange(len(self))
        return self.judge(action_table(self.rules)[player.choose(self.own, self.opp, rows, rows.astype(np.uint64))])

    def judge(self, actions: ArrayLike) -> Judgement:
        """The figures of the actions chosen, one for each position."""
        values = self.chosen_values(actions)
        return self._judgement(self.scores - values, values == self.scores, np.sign(values) < np.sign(self.scores))

    def judge_probabilities(self, probabilities: ArrayLike) -> Judgement:
        """The expected figures of a player that draws its moves: (N, actions), by action; illegal moves are left out."""
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
        """What random play gives away on average: no playing is needed to know it."""
        return self.judge_probabilities(self.masks)

    def chosen_values(self, actions: ArrayLike) -> NDArray[np.int64]:
        """What the chosen actions are worth; an illegal one raises and names its position."""
        chosen = np.asarray(actions)
        if chosen.shape != (len(self),) or chosen.dtype.kind not in "ui":
            raise TrainError(
                f"actions of {chosen.dtype} and shape {chosen.shape}: expected {len(self)} whole numbers, one a position"
            )
        chosen = chosen.astype(np.int64)
        inside = (chosen >= 0) & (chosen < self.rules.square_count)
        values = self._values[np.arange(len(self)), np.where(inside, chosen, 0)].astype(np.int64)
        legal = inside & (values != ILLEGAL)
        if not legal.all():
            first = int(np.argmin(legal))
            raise TrainError(
                f"action {chosen[first]} is illegal in position {first} (own {self.own[first]:#x}, opp "
                f"{self.opp[first]:#x}): expected one of {np.flatnonzero(self.masks[first]).tolist()}"
            )
        return values

    def _judgement(self, *parts: NDArray[Any]) -> Judgement:
        """The figures by empties and of all, from regret, optimal and spoilt of every position."""
        worst = self.scores - np.where(self._values == ILLEGAL, 127, self._values).min(axis=1)

        def figures(empties: int | None) -> RegretStatistics:
            rows = slice(None) if empties is None else self.empties == empties
            sample = self.sample if empties is None else self.rows(rows).sample
            regret = sample.loss(parts[0][rows], worst[rows])
            optimal, spoilt = (sample.share(part[rows]) for part in parts[1:])
            return RegretStatistics(
                *(empties, len(sample.strata), regret.mean, regret.standard_error, regret.interval),
                *(optimal.mean, optimal.standard_error, optimal.interval, spoilt.mean, spoilt.interval),
            )

        return Judgement(tuple(figures(int(empties)) for empties in np.unique(self.empties)), figures(None))


def action_table(rules: Rules) -> NDArray[np.int64]:
    """The action of every square of the frame, -1 beyond the board; the pass at `PASS_SQUARE`."""
    table = np.full(PASS_SQUARE + 1, -1, np.int64)
    for action, square in enumerate(rules.squares()):
        table[square] = action
    table[PASS_SQUARE] = rules.pass_action
    return table


def by_action(children: batch.Children, values: NDArray[Any], count: int, rules: Rules, illegal: float) -> NDArray[Any]:
    """Values of the children of *count* positions as a table (count, squares), *illegal* where there is no move; no passes."""
    table = np.full((count, rules.square_count + 1), illegal, values.dtype)
    table[children.parent, action_table(rules)[children.square]] = values
    return table[:, :-1]


def move_values(
    own: Boards,
    opp: Boards,
    rules: Rules,
    *,
    threads: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> NDArray[np.int8]:
    """The exact value of every move, as `ExactSet.values` has it; *progress* hears of the positions after them."""
    children = batch.expand(own, opp, rules)
    scores = solve_batch(
        children.own, children.opp, rules, threads=threads, progress=lambda done: progress(done, len(children.own))
    )
    return by_action(children, -scores.astype(np.int8), len(own), rules, ILLEGAL)
