"""`SearchAgent`: alpha-beta with any evaluator, with an opening book."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reversi_env import Position, Rules
from reversi_env.rules import PASS_NAME
from search import evaluators
from search.agents.base import TimedAgent
from search.engine.limits import Limits, SearchResult
from search.evaluators.base import file_name

if TYPE_CHECKING:
    from search.agents.book import Book
    from search.engine.engine import Engine

#: Depth of the search if the spec sets no limit.
DEFAULT_DEPTH = 4


class SearchAgent(TimedAgent):
    """Alpha-beta with an evaluator under fixed *limits*, with one engine per game.

    *table* in MiB; *seed* chooses between equally good moves; *probcut* is the margin of selective search in standard deviations, 0
    for none, None for the engine's default. *book* is ``yes`` for the packaged one or a file, whose moves are played without a
    search: the best, or a random one of those at most *variety* discs worse.
    """

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
        self._evaluator_or_name = evaluator
        self.evaluator, self.limits = evaluators.get_evaluator(evaluator), limits
        self.threads, self.time = threads, limits.time
        self._table, self._probcut = table, probcut
        self._tie_rng = None if seed is None else np.random.default_rng(seed)
        self._book, self._variety = book, variety
        self._book_rng = np.random.default_rng(seed or 0) if variety else None
        self._engines: dict[tuple[int, str], Engine] = {}

    def choose(self, position: Position) -> int:
        return position.rules.action_from_name(self.search(position).move or PASS_NAME)

    def search(
        self,
        position: Position,
        limits: Limits | None = None,
        *,
        multi_pv: int = 1,
        rng: np.random.Generator | None = None,
    ) -> SearchResult:
        """Return the book's move, or the result of the engine within *limits*; *rng* replaces the agent's own generator."""
        if multi_pv == 1 and (book_move := self.book_move(position, rng)) is not None:
            return book_move
        engine = self.engine(position.rules)
        return engine.search(position, limits or self.limits, tie_rng=rng or self._tie_rng, multi_pv=multi_pv)

    def book(self, rules: Rules) -> Book | None:
        from search.agents.book import book_for

        return None if self._book is None else book_for(self._book, rules)

    def book_move(self, position: Position, rng: np.random.Generator | None = None) -> SearchResult | None:
        """Return the book's move, if there is one; *rng* replaces the agent's own generator."""
        book = self.book(position.rules)
        if book is None or (move := book.choose(position, self._variety, rng or self._book_rng)) is None:
            return None
        line = (move.move, *book.line(position.play(move.move)))
        end = book.find(position.play_all(line))
        depth, confidence = len(line) + (end.depth if end else 0), 100 if book.is_solved else 0
        return SearchResult(move.move, move.value, depth, confidence, line, 0, 0.0)

    def engine(self, rules: Rules) -> Engine:
        """Return the engine for that game; the first call makes it and loads its kernels."""
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
        self.evaluator.record(rules)
        self.book(rules)

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        hashes = {self.evaluator.name: self.evaluator.sha256(rules)}
        if (book := self.book(rules)) is not None:
            hashes[f"book={self._book}"] = book.sha256
        return hashes

    def prepare(self, rules: Rules) -> None:
        self.engine(rules)

    def stop(self) -> None:
        for engine in list(self._engines.values()):
            engine.stop()

    def __getstate__(self) -> dict[str, Any]:
        # an evaluator that has a name is looked up again, without a copy of its weights
        return self.__dict__ | {"_engines": {}, "evaluator": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"evaluator": evaluators.get_evaluator(state["_evaluator_or_name"])})


def search_agent(
    evaluator: evaluators.Evaluator | str,
    *,
    depth: int | None = None,
    time: float | None = None,
    nodes: int | None = None,
    exact: int | None = None,
    weights: str | None = None,
    **options: Any,
) -> SearchAgent:
    if weights is not None:
        evaluator = file_name(str(evaluator), weights)
    if depth is None and time is None and nodes is None:
        depth = DEFAULT_DEPTH
    return SearchAgent(evaluator, Limits(time=time, depth=depth, nodes=nodes, empties_exact=exact), **options)
