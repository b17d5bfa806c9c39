"""`FileAgent`: the base of agents that play by the network in a file, or by the packaged one of the game."""

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from models.files import check_game
from models.torch_evaluator import TorchAgent, TorchEvaluator
from reversi_env import Rules
from reversi_env.storage.checksummed import file_hash, read_cached
from search.agents.base import Agent
from search.evaluators.base import file_name


class HasRules(Protocol):
    """The content of a file for one game."""

    @property
    def rules(self) -> Rules: ...


Saved = TypeVar("Saved", bound=HasRules)


class FileAgent(Agent, Generic[Saved]):
    """Plays by the content of the file *weights*, or by the packaged file of the game; messages call it a ``kind``.

    `alpha_beta` searches *depth* plies over the values of the network, with exact play from *exact* empty squares on.
    """

    kind: ClassVar[str]

    def __init__(self, weights: str | None, *, depth: int = 0, exact: int = 0, seed: int | None = None) -> None:
        self._weights = weights
        self.depth, self.exact, self.seed = depth, exact, seed
        self._searchers: dict[tuple[int, str], TorchAgent] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_searchers": {}}

    @abstractmethod
    def path(self, rules: Rules) -> Path:
        """Return the given file, or the packaged one of the game."""

    @staticmethod
    @abstractmethod
    def read(path: Path) -> Saved:
        """Return the content of a file."""

    def load(self, rules: Rules) -> Saved:
        """Return the content of the file, which is read once, or raise an error if it is of another game."""
        path = self.path(rules)
        saved = read_cached(path, self.read)
        check_game(f"{self.kind} {str(path)!r}", saved.rules, rules)
        return saved

    def check(self, rules: Rules) -> None:
        self.load(rules)

    prepare = check

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        return {file_name(self.kind, self._weights) if self._weights else self.kind: file_hash(self.path(rules))}

    def evaluator(self, rules: Rules) -> TorchEvaluator:
        raise NotImplementedError

    def alpha_beta(self, rules: Rules) -> TorchAgent:
        """Return the search over the network's values, one for each game."""
        key = (rules.size, rules.variant)
        if key not in self._searchers:
            self._searchers[key] = TorchAgent(self.evaluator(rules), self.depth, exact=self.exact, seed=self.seed)
        return self._searchers[key]
