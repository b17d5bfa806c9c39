"""Value networks: kinds of networks, their forward pass compiled into the search, and trained weights.

* Searching with a trained network: `load_network`, `NetworkEvaluator`; torch is not needed.
* Kinds of networks and their weight files: `NETWORKS`, `Network`, `PatternNet`, `DeepPatternNet`, `read_weights`,
  `WeightsError`; `Trainable`, one of them as a torch module.
* Any torch module in a search: `TorchEvaluator`, `TorchAgent`; AlphaZero's tree search in many games at once: `TreeSearch`.

What is named here is imported when it is first used.
"""

from typing import TYPE_CHECKING

from reversi_env.lazy import lazy_names

if TYPE_CHECKING:
    from models.files import WeightsError
    from models.network import NetworkEvaluator, load_network
    from models.networks import NETWORKS, DeepPatternNet, Network, PatternNet, read_weights
    from models.torch_evaluator import TorchAgent, TorchEvaluator
    from models.trainable import Trainable
    from models.tree_search import TreeSearch

_HOMES = {
    "NETWORKS": "models.networks",
    "DeepPatternNet": "models.networks",
    "Network": "models.networks",
    "NetworkEvaluator": "models.network",
    "PatternNet": "models.networks",
    "TorchAgent": "models.torch_evaluator",
    "TorchEvaluator": "models.torch_evaluator",
    "Trainable": "models.trainable",
    "TreeSearch": "models.tree_search",
    "WeightsError": "models.files",
    "load_network": "models.network",
    "read_weights": "models.networks",
}
__all__ = [
    "NETWORKS",
    "DeepPatternNet",
    "Network",
    "NetworkEvaluator",
    "PatternNet",
    "TorchAgent",
    "TorchEvaluator",
    "Trainable",
    "TreeSearch",
    "WeightsError",
    "load_network",
    "read_weights",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
