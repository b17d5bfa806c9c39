"""`FileAgent`: the base of agents that play by the residual network of a file, or by the packaged one of the game."""

from pathlib import Path
from typing import Any, ClassVar

from models.evaluator import FOLDER
from models.files import check_game, packaged_file
from models.residual.net import SavedResidual, ValueFromBoards, read_residual
from models.torch_evaluator import TorchAgent, TorchEvaluator
from reversi_env import Rules
from reversi_env.storage.checksummed import file_hash, read_cached
from search.agents.base import Agent
from search.evaluators.base import file_name

#: The packaged networks, one for each game: ``PREFIX-SIZExSIZE-VARIANT-HASH.safetensors``.
PACKAGED_FOLDER = FOLDER / "residual"


class FileAgent(Agent):
    """Plays by the network in the file *weights*, or by the packaged one of the game; ``kind`` is its name in messages.

    `alpha_beta` searches *depth* plies over the values of the network, with exact play from *exact* empty squares on.
    """

    kind: ClassVar[str]
    #: How the names of packaged files begin, and the command that makes such files.
    prefix: ClassVar[str]
    training: ClassVar[str]
    #: Whether values are the means over the eight symmetric images of a position.
    has_symmetric_values: ClassVar[bool] = False
    device: str = "cpu"

    def __init__(self, weights: str | None, *, depth: int = 0, exact: int = 0, seed: int | None = None) -> None:
        self._weights = weights
        self.depth, self.exact, self.seed = depth, exact, seed
        self._searchers: dict[tuple[int, str], TorchAgent] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_searchers": {}}

    def path(self, rules: Rules) -> Path:
        """Return the given file, or the packaged one of the game."""
        if self._weights is not None:
            return Path(self._weights)
        return packaged_file(PACKAGED_FOLDER, f"{self.prefix}-", rules, self.training)

    def load(self, rules: Rules) -> SavedResidual:
        """Return the content of the file, cached until it changes; a file for another game raises a `WeightsError`."""
        path = self.path(rules)
        saved = read_cached(path, read_residual)
        check_game(f"{self.kind} {str(path)!r}", saved.rules, rules)
        return saved

    def check(self, rules: Rules) -> None:
        self.load(rules)

    prepare = check

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        return {file_name(self.kind, self._weights) if self._weights else self.kind: file_hash(self.path(rules))}

    def evaluator(self, rules: Rules, device: str | None = None) -> TorchEvaluator:
        """Return an evaluator with the network's values in discs."""
        value = ValueFromBoards(self.load(rules).net, symmetric=self.has_symmetric_values)
        return TorchEvaluator(value, rules, inputs="boards", device=device or self.device, name=self.kind)

    def alpha_beta(self, rules: Rules) -> TorchAgent:
        """Return the search over the network's values, one for each game."""
        key = (rules.size, rules.variant)
        if key not in self._searchers:
            self._searchers[key] = TorchAgent(self.evaluator(rules), self.depth, exact=self.exact, seed=self.seed)
        return self._searchers[key]
