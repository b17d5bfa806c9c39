"""Agents that play by the network in a file, or by the package's own for whatever game is asked for."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from models.files import check_game
from models.torch_evaluator import TorchAgent, TorchEvaluator, single_torch_thread
from reversi_env import Position, Rules
from reversi_env.storage.checksummed import file_hash, read_cached
from search.agents.base import Agent
from search.engine.limits import SearchResult
from search.evaluators.base import file_name


class HasRules(Protocol):
    """What is read from a file."""

    @property
    def rules(self) -> Rules:
        """The game that it is for."""


Saved = TypeVar("Saved", bound=HasRules)


class FileAgent(Agent, Generic[Saved]):
    """A player with what is saved in the file *weights*, or with the package's for the game; ``kind`` is what it is called."""

    kind: ClassVar[str]

    def __init__(self, weights: str | None) -> None:
        self._weights = weights

    @abstractmethod
    def path(self, rules: Rules) -> Path:
        """The file that was given, or the package's for the game."""

    @staticmethod
    @abstractmethod
    def read(path: Path) -> Saved:
        """What is saved in a file."""

    def saved(self, rules: Rules) -> Saved:
        """What was given, if it is for that game, or what the package has for it."""
        path = self.path(rules)
        found = read_cached(path, self.read)
        check_game(f"{self.kind} {str(path)!r}", found.rules, rules)
        return found

    def check(self, rules: Rules) -> None:
        """Raise a ReversiError if the network cannot play that game."""
        self.saved(rules)

    prepare = check

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        """The file."""
        return {file_name(self.kind, self._weights) if self._weights else self.kind: file_hash(self.path(rules))}


class SearchingFileAgent(FileAgent[Saved]):
    """Alpha-beta to *depth* plies over the values of the network, and exact play from *exact* empty squares on.

    With *seed* equally good moves are drawn by lot.
    """

    def __init__(self, weights: str | None, *, depth: int, exact: int, seed: int | None) -> None:
        super().__init__(weights)
        self._depth, self._exact, self._seed = depth, exact, seed
        self._searchers: dict[tuple[int, str], TorchAgent] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_searchers": {}}

    @abstractmethod
    def evaluator(self, rules: Rules) -> TorchEvaluator:
        """The values of the network, in discs."""

    def choose(self, position: Position) -> int:
        """The best action."""
        with single_torch_thread():
            return self.searcher(position.rules).choose(position)

    def search(self, position: Position) -> SearchResult:
        """All that the search finds out; values in discs."""
        with single_torch_thread():
            return self.searcher(position.rules).search(position)

    def searcher(self, rules: Rules) -> TorchAgent:
        """The searcher for that game."""
        key = (rules.size, rules.variant)
        if key not in self._searchers:
            depth = max(1, self._depth)
            self._searchers[key] = TorchAgent(self.evaluator(rules), depth, exact=self._exact, seed=self._seed)
        return self._searchers[key]
