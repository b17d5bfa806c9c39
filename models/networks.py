"""The networks that can be trained, by name."""

from __future__ import annotations

from models.deep_net import DeepPatternNet
from models.files import DeepWeights, PatternWeights, Weights, WeightsError
from models.pattern_features import PatternFeatures
from models.pattern_net import PatternNet
from reversi_env.errors import shown

#: Name to torch module: one number a pattern, or a vector a pattern and a small head.
NETWORKS: dict[str, type[PatternNet] | type[DeepPatternNet]] = {"linear": PatternNet, "deep": DeepPatternNet}


def checked_network(name: str) -> str:
    """The name, if it is one of a network."""
    if name not in NETWORKS:
        raise WeightsError(f"network {shown(name)}: expected one of {', '.join(NETWORKS)}")
    return name


def network_of(saved: Weights) -> PatternFeatures:
    """The torch module with the weights of a file."""
    kinds = {PatternWeights: PatternNet, DeepWeights: DeepPatternNet}
    if type(saved) not in kinds:
        raise WeightsError(f"weights of architecture {saved.architecture}: expected those of a network over patterns")
    net = kinds[type(saved)](saved.rules.size)
    net.load_weights(saved)
    return net
