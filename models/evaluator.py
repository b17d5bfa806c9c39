"""The evaluator ``network``: the packaged weights of each game, or those of a file."""

from pathlib import Path
from typing import Any

import numpy as np

from models.files import check_game, packaged_file
from models.patterns import Network, read_weights
from models.patterns.network import CompiledNetwork
from reversi_env import ReversiError, Rules
from search.evaluators.base import Evaluator, file_name

#: The packaged weights.
FOLDER = Path(__file__).parent / "weights"
#: The evaluator for games that no network has been trained for.
FALLBACK_EVALUATOR = "six-factor"


class NetworkEvaluator(Evaluator):
    """The packaged weights of every game, or those of one file for its game; files are read on first use.

    Values are in discs for the side to move under the rules' objective.
    """

    orders_endgames = True

    def __init__(self, path: str | None = None) -> None:
        self.name = "network" if path is None else file_name("network", path)
        self._path = path
        self._loaded: dict[tuple[int, str], tuple[Network, CompiledNetwork]] = {}

    def __reduce__(self) -> tuple[type, tuple[str | None]]:
        return NetworkEvaluator, (self._path,)

    def weights(self, rules: Rules) -> Network:
        """Return the weights for a game, with the record of their training."""
        return self._load(rules)[0]

    def record(self, rules: Rules) -> np.ndarray:
        return self._load(rules)[1].record

    def probcut(self, rules: Rules) -> dict[str, Any] | None:
        return self.weights(rules).record.get("probcut")

    def identity(self, rules: Rules) -> bytes:
        return self.file(rules).read_bytes()

    def file(self, rules: Rules) -> Path:
        if self._path is not None:
            return Path(self._path)
        return packaged_file(FOLDER, "", rules, "reversi train fit")

    def _load(self, rules: Rules) -> tuple[Network, CompiledNetwork]:
        key = (rules.size, rules.variant)
        if key not in self._loaded:
            path = self.file(rules)
            weights = read_weights(path)
            check_game(f"weight file {str(path)!r}", weights.rules, rules)
            # If two threads load at once, the first weights stay, because their record may be in use.
            self._loaded.setdefault(key, (weights, weights.compiled()))
        return self._loaded[key]


def load_network(path: str | Path | None = None) -> NetworkEvaluator:
    """Return the packaged networks, or the network of the weight file *path*, as an evaluator for `search.Engine`.

    >>> from reversi_env import Position
    >>> -64 < load_network().static_value(Position.initial()) < 64
    True
    """
    network = NetworkEvaluator(None if path is None else str(path))
    if path is not None:
        network.weights(read_weights(Path(path)).rules)
    return network


def strongest_evaluator(rules: Rules) -> str:
    """Return the name of the strongest evaluator for that game: the network, if the package has one."""
    try:
        NetworkEvaluator().file(rules)
    except ReversiError:
        return FALLBACK_EVALUATOR
    return "network"
