"""The evaluator ``network``: the packaged weights of each game, or those of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from models.files import WeightsError, check_game
from models.patterns import Network, read_weights
from models.patterns.network import CompiledNetwork
from reversi_env import ReversiError, Rules
from search.evaluators.base import Evaluator, file_name

#: The package's own weights.
FOLDER = Path(__file__).parent / "weights"
#: The evaluator for games that no network has been trained for.
FALLBACK_EVALUATOR = "six-factor"


class NetworkEvaluator(Evaluator):
    """The packaged weights of every game, or one file for one game, which are read when a game first needs them.

    Values are in discs for the side to move under the rules' objective.
    """

    orders_endgames = True
    description = "a pattern network trained on solved endgames, carried back to the opening by search"

    def __init__(self, path: str | None = None) -> None:
        self.name = "network" if path is None else file_name("network", path)
        self._path = path
        self._loaded: dict[tuple[int, str], tuple[Network, CompiledNetwork]] = {}

    def __reduce__(self) -> tuple[type, tuple[str | None]]:
        return NetworkEvaluator, (self._path,)

    def weights(self, rules: Rules) -> Network:
        """The weights for a game, with the record of their training."""
        return self._load(rules)[0]

    def record(self, rules: Rules) -> np.ndarray:
        """The compiled evaluator's data for this game: an array of one record."""
        return self._load(rules)[1].record

    def probcut(self, rules: Rules) -> dict[str, Any] | None:
        """ProbCut's coefficients for these weights (`search.engine.probcut.as_table`), if they were fitted."""
        return self.weights(rules).record.get("probcut")

    def identity(self, rules: Rules) -> bytes:
        return self.file(rules).read_bytes()

    def file(self, rules: Rules) -> Path:
        if self._path is not None:
            return Path(self._path)
        paths = sorted(FOLDER.glob(f"{rules.size}x{rules.size}-{rules.variant}-*.safetensors"))
        game = f"{rules.size}x{rules.size} {rules.variant}"
        if not paths:
            raise WeightsError(
                f"network for {game}: the package has no weights for that game; "
                f"expected some that you train with `reversi train fit` and give as weights=FILE"
            )
        if len(paths) > 1:
            raise WeightsError(f"{len(paths)} weight files for {game} in {str(FOLDER)!r}: expected one")
        return paths[0]

    def _load(self, rules: Rules) -> tuple[Network, CompiledNetwork]:
        key = (rules.size, rules.variant)
        if key not in self._loaded:
            path = self.file(rules)
            weights = read_weights(path)
            check_game(f"weight file {str(path)!r}", weights.rules, rules)
            # Two threads may come here at once: the first one's stay, whose record may be in use by now.
            self._loaded.setdefault(key, (weights, weights.compiled()))
        return self._loaded[key]


def load_network(path: str | Path | None = None) -> NetworkEvaluator:
    """The package's network, or the one of a weight file, which is read at once; an evaluator for `search.Engine`.

    >>> from reversi_env import Position
    >>> -64 < load_network().static_value(Position.initial()) < 64
    True
    """
    network = NetworkEvaluator(None if path is None else str(path))
    if path is not None:
        network.weights(read_weights(Path(path)).rules)
    return network


def strongest_evaluator(rules: Rules) -> str:
    """The name of the strongest evaluator for that game: the network, where one has been trained."""
    try:
        NetworkEvaluator().file(rules)
    except ReversiError:
        return FALLBACK_EVALUATOR
    return "network"
