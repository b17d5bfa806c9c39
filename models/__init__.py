"""Evaluation networks: architectures, forward passes compiled into the search, and trained weights.

* Searching with a trained network: `load_network`, `NetworkEvaluator`; torch is not needed.
* Kinds of networks and their weight files: `NETWORKS`, `Network`, `PatternNet`, `DeepPatternNet`, `read_weights`,
  `WeightsError`; `PatternModule`, one of them as a torch module.
* Fixed neural baselines by name: `baseline`, `baselines`.
* Alpha-beta with any torch module: `TorchEvaluator`, `TorchAgent`; AlphaZero's tree search in many games at once: `TreeSearch`.
"""

import lazy_loader

# The names of __init__.pyi, imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
