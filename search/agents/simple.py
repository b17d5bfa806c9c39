"""Agents that do not search: random, greedy, and perfect near the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reversi_env import Position, Rules, batch
from search import evaluators
from search.agents.base import Agent

if TYPE_CHECKING:
    from search.engine.solver import Solver

INVINCIBLE_EMPTIES = 12
#: Default evaluator of the agents of report 002.
REPORT_002_EVALUATOR = "sixteen-weight"


class RandomAgent(Agent):
    """Plays a uniformly random legal move."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def choose(self, position: Position) -> int:
        actions = position.legal_actions()
        return actions[int(self._generator.integers(len(actions)))]


class GreedyAgent(Agent):
    """Plays the move with the best value after one ply: by an *evaluator*, or in discs. Ties are broken at random.

    Without an evaluator most discs are best, or fewest in the reversed game. A terminal position has its score.
    """

    def __init__(self, seed: int = 0, evaluator: str | None = None) -> None:
        self._generator = np.random.default_rng(seed)
        self._evaluator = evaluator and evaluators.get_evaluator(evaluator).name

    def choose(self, position: Position) -> int:
        actions = position.legal_actions()
        values = -self._values([position.play(action) for action in actions])
        best = np.flatnonzero(values == values.max())
        return actions[int(best[self._generator.integers(best.size)])]

    def _values(self, positions: list[Position]) -> np.ndarray:
        rules = positions[0].rules
        if self._evaluator is None:
            return np.array([rules.sign * position.disc_difference() for position in positions])
        boards = batch.from_positions(positions)
        values = evaluators.get_evaluator(self._evaluator).static_values(*boards, rules)
        over = [i for i, position in enumerate(positions) if position.is_over()]
        values[over] = [positions[i].score() for i in over]
        return values

    def check(self, rules: Rules) -> None:
        if self._evaluator is not None:
            evaluators.get_evaluator(self._evaluator).record(rules)

    def prepare(self, rules: Rules) -> None:
        self._values([Position.initial(rules)])

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        name = self._evaluator
        return {} if name is None else {name: evaluators.get_evaluator(name).sha256(rules)}


class ExactAgent(Agent):
    """Plays perfectly once at most *exact* squares are empty; the moves before that are those of another agent."""

    def __init__(self, fallback: Agent, exact: int = INVINCIBLE_EMPTIES, threads: int = 1, table: float = 64) -> None:
        self._fallback, self.exact = fallback, exact
        self.threads, self._table = threads, table
        self._solvers: dict[tuple[int, str], Solver] = {}

    def choose(self, position: Position) -> int:
        if position.empties > self.exact or position.must_pass():
            return self._fallback.choose(position)
        move = self.solver(position.rules).solve(position).move
        return position.rules.action_from_name(move or "pass")

    def solver(self, rules: Rules) -> Solver:
        """Return the solver for that game; the first call makes it and loads its kernels."""
        from search.engine.solver import Solver
        from search.engine.table import TranspositionTable

        key = (rules.size, rules.variant)
        if key not in self._solvers:
            self._solvers[key] = Solver(rules, threads=self.threads, table=TranspositionTable(self._table))
            self._solvers[key].load_kernels()
        return self._solvers[key]

    def check(self, rules: Rules) -> None:
        self._fallback.check(rules)

    def prepare(self, rules: Rules) -> None:
        self._fallback.prepare(rules)
        self.solver(rules)

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        return self._fallback.content_hashes(rules)

    def stop(self) -> None:
        for solver in list(self._solvers.values()):
            solver.stop()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_solvers": {}}  # a copy makes its own on first use


def greedy_invincible_agent(*, evaluator: str = REPORT_002_EVALUATOR, seed: int = 0, **options: Any) -> ExactAgent:
    """Return the agent ``greedy-invincible``, after report 002."""
    return ExactAgent(GreedyAgent(seed, evaluator), **options)


def exact_agent(*, exact: int = 16, seed: int = 0, **options: Any) -> ExactAgent:
    return ExactAgent(RandomAgent(seed), exact, **options)
