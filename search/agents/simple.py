"""Agents without an alpha-beta search: random, greedy, and perfect play near the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reversi_env import Position, ReversiError, Rules, batch
from reversi_env.rules import PASS_NAME
from search import evaluators
from search.agents.base import Agent
from search.agents.book import Book, book_for, packaged_book

if TYPE_CHECKING:
    from search.engine.solver import Solver

INVINCIBLE_EMPTIES = 12
#: Board size on which the solver needs no book, evaluator or limit.
SMALL_SIZE = 4


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

    #: Name of the evaluator that orders the solver's moves.
    _order: str | None = None

    def __init__(self, fallback: Agent, exact: int = INVINCIBLE_EMPTIES, threads: int = 1, table: float = 64) -> None:
        self._fallback, self.exact = fallback, exact
        self.threads, self._table = threads, table
        self._solvers: dict[tuple[int, str], Solver] = {}

    def choose(self, position: Position) -> int:
        if position.empties > self.exact or position.must_pass():
            return self._fallback.choose(position)
        return position.rules.action_from_name(self._solved_move(position) or PASS_NAME)

    def _solved_move(self, position: Position) -> str | None:
        return self.solver(position.rules).solve(position).move

    def solver(self, rules: Rules) -> Solver:
        """Return the solver for that game; the first call makes it and loads its kernels."""
        from search.engine.solver import Solver
        from search.engine.table import TranspositionTable

        key = (rules.size, rules.variant)
        if key not in self._solvers:
            table = TranspositionTable(self._table)
            order = self._order if rules.size > SMALL_SIZE else None  # no network has weights for 4x4
            self._solvers[key] = Solver(rules, threads=self.threads, table=table, evaluator=order)
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


class PerfectAgent(ExactAgent):
    """Plays perfectly from the first move on 4x4 and 6x6: from a solved book, then by the solver.

    *book* is a file of `reversi book solve`; by default the packaged one of the game, if there is one. A position at the end
    of the book has a known score, which shortens the search. *seed* decides between equally good moves of the book.
    """

    _order = "network"

    def __init__(self, seed: int = 0, threads: int = 1, table: float = 64, book: str | None = None) -> None:
        super().__init__(RandomAgent(seed), 36, threads, table)
        self._generator, self._book = np.random.default_rng(seed), book

    def choose(self, position: Position) -> int:
        book = self.solved_book(position.rules)
        if book is not None and (move := book.choose(position, generator=self._generator)):
            return position.rules.action_from_name(move.move)
        return super().choose(position)

    def _solved_move(self, position: Position) -> str | None:
        book = self.solved_book(position.rules)
        entry = None if book is None else book.find(position)
        return self.solver(position.rules).best_move(position, None if entry is None else round(entry.value))

    def solved_book(self, rules: Rules) -> Book | None:
        """Return the book for that game, or raise a ReversiError if its scores are not exact or the board is too large."""
        self.check(rules)
        book = packaged_book(rules) if self._book is None else book_for(self._book, rules)
        if book is not None and not book.is_solved:
            raise ReversiError(f"book {self._book!r}: expected a solved one, made by `reversi book solve`")
        return book

    def prepare(self, rules: Rules) -> None:
        self.solved_book(rules)
        super().prepare(rules)

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        book = self.solved_book(rules)
        return {} if book is None else {"book": book.sha256}

    def check(self, rules: Rules) -> None:
        if rules.size > 6:
            raise ReversiError(
                f"perfect on {rules.size}x{rules.size}: expected 4x4 or 6x6; exact:exact=20 plays perfectly "
                "from 20 empty squares on"
            )


def greedy_invincible_agent(*, evaluator: str = "sixteen-weight", seed: int = 0, **options: Any) -> ExactAgent:
    """Return the agent ``greedy-invincible`` of report 002."""
    return ExactAgent(GreedyAgent(seed, evaluator), **options)


def exact_agent(*, exact: int = 16, seed: int = 0, **options: Any) -> ExactAgent:
    return ExactAgent(RandomAgent(seed), exact, **options)
