"""The networks that can be trained, by name."""

from __future__ import annotations

from models.deep_net import DeepPatternNet
from models.dense_net import DenseNet
from models.files import DeepWeights, DenseWeights, PatternWeights, Weights, WeightsError
from models.pattern_net import PatternNet
from models.trainable import Trainable
from reversi_env.errors import shown

Kind = type[PatternNet] | type[DeepPatternNet] | type[DenseNet]
#: Name to torch module: one number a pattern; a vector a pattern and a small head; and discs and moves without patterns.
NETWORKS: dict[str, Kind] = {"linear": PatternNet, "deep": DeepPatternNet, "dense": DenseNet}
_MODULES: dict[type[Weights], Kind] = {PatternWeights: PatternNet, DeepWeights: DeepPatternNet, DenseWeights: DenseNet}


def checked_network(name: str) -> str:
    """The name, if it is one of a network."""
    if name not in NETWORKS:
        raise WeightsError(f"network {shown(name)}: expected one of {', '.join(NETWORKS)}")
    return name


def network_of(saved: Weights) -> Trainable:
    """The torch module with the weights of a file."""
    net = _MODULES[type(saved)](saved.rules.size)
    net.load_weights(saved)
    return net
