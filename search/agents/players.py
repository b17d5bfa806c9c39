"""The agents of this package: random, greedy, perfect near the end, alpha-beta and Double-Alpha Maximax with any evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reversi_env import Position, Rules
from search import evaluators
from search.agents.base import Agent
from search.engine.limits import Limits, SearchResult

if TYPE_CHECKING:
    from search.agents.book import Book
    from search.agents.double_alpha import DoubleAlpha
    from search.engine.engine import Engine
    from search.engine.solver import Solver

INVINCIBLE_EMPTIES = 12


class RandomAgent(Agent):
    """Plays a uniformly random legal move."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def choose(self, position: Position) -> int:
        """A legal action, each equally likely."""
        actions = position.legal_actions()
        return actions[int(self._generator.integers(len(actions)))]


class GreedyAgent(Agent):
    """Takes the move that is best right after it: by an *evaluator*, or else in discs. Ties are broken at random.

    Most discs are best, or fewest in the reversed game. To an evaluator's player a finished game is worth its score.
    """

    def __init__(self, seed: int = 0, evaluator: str | None = None) -> None:
        self._generator = np.random.default_rng(seed)
        self._evaluator = evaluator and evaluators.get_evaluator(evaluator).name

    def choose(self, position: Position) -> int:
        """An action with the best value after one ply."""
        actions = position.legal_actions()
        values = -self._values([position.play(action) for action in actions])
        best = np.flatnonzero(values == values.max())
        return actions[int(best[self._generator.integers(best.size)])]

    def _values(self, positions: Sequence[Position]) -> np.ndarray:
        """Their values for their sides to move."""
        rules = positions[0].rules
        if self._evaluator is None:
            return np.array([rules.sign * position.disc_difference() for position in positions])
        own, opp = (np.array(boards, np.uint64) for boards in zip(*((p.own, p.opp) for p in positions), strict=True))
        values = evaluators.get_evaluator(self._evaluator).static_values(own, opp, rules)
        over = [i for i, position in enumerate(positions) if position.is_over()]
        values[over] = [positions[i].score() for i in over]
        return values

    def check(self, rules: Rules) -> None:
        """Raise a ReversiError if the evaluator does not know that game."""
        if self._evaluator is not None:
            evaluators.get_evaluator(self._evaluator).record(rules)

    def prepare(self, rules: Rules) -> None:
        """Have the evaluator's kernel ready."""
        self._values([Position.initial(rules)])

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        """The evaluator's weights."""
        return (
            {}
            if self._evaluator is None
            else {self._evaluator: evaluators.get_evaluator(self._evaluator).sha256(rules)}
        )


class ExactAgent(Agent):
    """Plays perfectly once at most *exact* squares are empty, and leaves the moves before that to another agent."""

    def __init__(self, fallback: Agent, exact: int = INVINCIBLE_EMPTIES, threads: int = 1, table: float = 64) -> None:
        self._fallback, self.exact = fallback, exact
        self.threads, self._table = threads, table
        self._solvers: dict[tuple[int, str], Solver] = {}

    def choose(self, position: Position) -> int:
        """A best action, or the other agent's."""
        if position.empties > self.exact or position.must_pass():
            return self._fallback.choose(position)
        move = self.solver(position.rules).solve(position).move
        return position.rules.action_from_name(move or "pass")

    def solver(self, rules: Rules) -> Solver:
        """The solver for that game; made at the first call, which is when its kernels are loaded or compiled."""
        from search.engine.solver import Solver
        from search.engine.table import TranspositionTable

        key = (rules.size, rules.variant)
        if key not in self._solvers:
            self._solvers[key] = Solver(rules, threads=self.threads, table=TranspositionTable(self._table))
            self._solvers[key].load_kernels()
        return self._solvers[key]

    def check(self, rules: Rules) -> None:
        """Raise a ReversiError if the other agent cannot play that game."""
        self._fallback.check(rules)

    def prepare(self, rules: Rules) -> None:
        """Have the solver for that game ready, and what the other agent needs."""
        self._fallback.prepare(rules)
        self.solver(rules)

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        """Those of the other agent."""
        return self._fallback.content_hashes(rules)

    def stop(self) -> None:
        """Stop the solvers."""
        for solver in list(self._solvers.values()):
            solver.stop()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_solvers": {}}  # a copy makes its own when it first needs them


class SearchAgent(Agent):
    """Alpha-beta with an evaluator, by name or as it is, under fixed *limits*; each game it meets gets an engine with tables.

    *threads* search together; *table* in MiB; with *seed* one of equally good moves is drawn by lot; *probcut*: standard deviations
    of safety of the selective search, 0 for none, None for the engine's own choice. *book*: ``yes`` for the package's own or the
    file of one, whose moves are played without a search; of those at most *variety* discs worse than the best, one by lot.
    """

    #: Whether what a search finds out helps the next one, so that searching on the opponent's time is of use.
    ponders = True

    def __init__(
        self,
        evaluator: evaluators.Evaluator | str,
        limits: Limits,
        threads: int = 1,
        table: float = 64,
        seed: int | None = None,
        probcut: float | None = None,
        book: str | None = None,
        variety: float = 0.0,
    ) -> None:
        self._given = evaluator
        self.evaluator, self.limits = evaluators.get_evaluator(evaluator), limits
        self.threads, self.time = threads, limits.time
        self._table, self._probcut = table, probcut
        self._ties = None if seed is None else np.random.default_rng(seed)
        self._book, self._variety = book, variety
        self._drawn = np.random.default_rng(seed or 0) if variety else None
        self._engines: dict[tuple[int, str], Engine] = {}

    def choose(self, position: Position) -> int:
        """The engine's best action, or the book's."""
        move = self.search(position).move
        return position.rules.action_from_name(move or "pass")

    def search(
        self,
        position: Position,
        limits: Limits | None = None,
        *,
        multi_pv: int = 1,
        draws: np.random.Generator | None = None,
    ) -> SearchResult:
        """All that the engine finds out, within *limits* and with *draws* in place of the agent's own; see `Engine.search`.

        Where a book has a move, and not several are to be valued, that is the answer.
        """
        if multi_pv == 1 and (known := self.book_move(position, draws)) is not None:
            return known
        searcher = self._searcher(position.rules)
        return searcher.search(position, limits or self.limits, tie_rng=draws or self._ties, multi_pv=multi_pv)

    def _searcher(self, rules: Rules) -> Engine | DoubleAlpha:
        """Return what searches for its moves."""
        return self.engine(rules)

    def book(self, rules: Rules) -> Book | None:
        """The book of that game; None if it plays without one."""
        from search.agents.book import book_for

        return None if self._book is None else book_for(self._book, rules)

    def book_move(self, position: Position, draws: np.random.Generator | None = None) -> SearchResult | None:
        """What the book says of a position, if it has a move there; *draws* in place of the agent's own lot."""
        book = self.book(position.rules)
        if book is None or (move := book.choose(position, self._variety, draws or self._drawn)) is None:
            return None
        line = (move.move, *book.line(position.play(move.move)))
        end = book.find(position.play_all(line))
        return SearchResult(move.move, move.value, len(line) + (end.depth if end else 0), 0, line, 0, 0.0)

    def engine(self, rules: Rules) -> Engine:
        """The engine for that game; made at the first call, which is when its kernels are loaded or compiled."""
        from search.engine.engine import Engine

        key = (rules.size, rules.variant)
        if key not in self._engines:
            engine = Engine(
                self.evaluator, rules, threads=self.threads, megabytes=self._table, selective=self._probcut != 0
            )
            if self._probcut is not None:
                engine.set_probcut(self._probcut)
            self._engines[key] = engine
        return self._engines[key]

    def check(self, rules: Rules) -> None:
        """Raise a ReversiError if the evaluator does not know that game, or the book is of another one."""
        self.evaluator.record(rules)
        self.book(rules)

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        """The evaluator's weights, and the book."""
        hashes = {self.evaluator.name: self.evaluator.sha256(rules)}
        if (book := self.book(rules)) is not None:
            hashes[f"book={self._book}"] = book.sha256
        return hashes

    def prepare(self, rules: Rules) -> None:
        """Have the engine for that game ready."""
        self.engine(rules)

    def stop(self) -> None:
        """Stop the engines: the best move so far is played."""
        for engine in list(self._engines.values()):
            engine.stop()

    def __getstate__(self) -> dict[str, Any]:
        # An evaluator that has a name is looked up again: its weights stay where they are.
        return self.__dict__ | {"_engines": {}, "evaluator": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"evaluator": evaluators.get_evaluator(state["_given"])})


class DoubleAlphaAgent(SearchAgent):
    """Double-Alpha Maximax with an evaluator, under the time control of report 002; its table of values takes at most *table* MiB.

    `engine` is an ordinary one with the same evaluator: for analysis, not for its moves.
    """

    ponders = False

    def __init__(self, evaluator: str, limits: Limits, table: float = 64, **options: Any) -> None:
        super().__init__(evaluator, limits, table=table, **options)
        self._searchers: dict[tuple[int, str], DoubleAlpha] = {}

    def _searcher(self, rules: Rules) -> DoubleAlpha:
        from search.agents.double_alpha import DoubleAlpha, capacity_within

        key = (rules.size, rules.variant)
        if key not in self._searchers:
            self._searchers[key] = DoubleAlpha(self.evaluator, rules, capacity=capacity_within(self._table))
        return self._searchers[key]

    def prepare(self, rules: Rules) -> None:
        """Have the search for that game ready."""
        self._searcher(rules)

    def stop(self) -> None:
        """Stop the searches: the move of the last finished iteration is played."""
        super().stop()
        for searcher in list(self._searchers.values()):
            searcher.stop()

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_searchers": {}}
