"""`Trainable`: a network as a torch module, which `train.fitting.fit` fits."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.patterns import NETWORKS, Network, checked_network
from reversi_env import Rules
from reversi_env.errors import extra_libraries

with extra_libraries():
    import torch
    from torch import Tensor, nn


class StraightThrough(torch.autograd.Function):
    """A tensor's place taken by its rounded form, with the tensor's gradient: no difference of the two is ever computed."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, rounded: Tensor) -> Tensor:
        return rounded.view_as(rounded)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output, None


class Trainable(nn.Module):
    """Positions to values in discs for the side to move, in two steps: features, which a fit computes once, and a value.

    *network* is the name of a kind (`models.patterns.NETWORKS`), *size* that of the board, *seed* that of the parameters at the
    beginning. ``span``: empty squares that share one phase; ``phases``: how many phases there are. The parameters have the
    names and the shapes of the arrays in a weight file.
    """

    def __init__(self, network: str, size: int = 8, seed: int = 0) -> None:
        super().__init__()
        self.kind, self.size = NETWORKS[checked_network(network)], size
        self.span, self.phases = self.kind.span(size), self.kind.phases(size)
        for name, tensor in self.kind.initial(size, seed).items():
            self.register_parameter(name, nn.Parameter(tensor))

    @classmethod
    def of(cls, network: Network) -> Trainable:
        """The module with the weights of a file."""
        net = cls(network.name, network.rules.size)
        net.load(network)
        return net

    def forward(self, own: Tensor, opp: Tensor) -> Tensor:
        """Values in discs for the side to move; boards are int64 tensors (`models.bitboards.board_tensor`)."""
        features, empties = self.features(own, opp)
        return self.value(features, empties, self.phases_at(empties))

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def arrays(self) -> dict[str, Tensor]:
        """The parameters by name, as views that no gradient follows."""
        return {name: parameter.data for name, parameter in self.named_parameters()}

    def features(self, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """``(n, features)`` whole numbers, and the numbers of empty squares."""
        return self.kind.features(self.size, own, opp)

    def feature_array(self, own: np.ndarray, opp: np.ndarray, threads: int = 1) -> np.ndarray | Tensor:
        """The same of arrays of boards; on a GPU they stay there."""
        return self.kind.feature_array(self.size, own, opp, self.device, threads)

    def value(
        self, features: Tensor, empties: Tensor, phases: Tensor, parameters: dict[str, Tensor] | None = None
    ) -> Tensor:
        """Values in discs from `features`; *phases* may differ from those of the empties while training.

        *parameters* stand in for the network's own, such as those of `fake_quantised`.
        """
        own = dict(self.named_parameters()) if parameters is None else parameters
        return self.kind.value(own, features, empties, phases)

    def fake_quantised(self) -> dict[str, Tensor]:
        """The parameters rounded as the search will have them; gradients pass as if they were not.

        So a fit learns around the rounding. That matters most where positions have much in common: near the start, where rows of
        empty corners and edges are counted eight times, rounding after the fit shifted all values of a phase by up to two discs.
        """
        with torch.no_grad():
            arrays = self.kind.arrays(Rules(self.size))
            quantised = {name: array.fake_quantise(self.arrays[name]) for name, array in arrays.items()}
        return {name: StraightThrough.apply(tensor, quantised[name]) for name, tensor in self.named_parameters()}

    def phases_at(self, empties: Tensor) -> Tensor:
        """The phase for each number of empty squares, which need not be whole."""
        return torch.floor(empties / self.span).long().clamp(0, self.phases - 1)

    def by_phase(self) -> tuple[Tensor, ...]:
        """The parameters that each phase has of its own, as views whose first dimension is the phase."""
        return tuple(self.arrays[name] for name in self.kind.per_phase)

    def by_empties(self) -> Tensor:
        """The parameters that each number of empty squares has of its own, as a view whose first dimension is that number."""
        found = self.kind.by_empties(self.arrays)
        return torch.zeros(0) if found is None else found

    def to_network(self, rules: Rules, record: dict[str, Any] | None = None) -> Network:
        """The parameters, rounded as a weight file has them, for the game *rules*."""
        return self.kind.quantised(rules, {name: array.cpu().numpy() for name, array in self.arrays.items()}, record)

    def quantise(self) -> None:
        """Make the parameters what a weight file of them will have."""
        for name, array in self.kind.arrays(Rules(self.size)).items():
            self.arrays[name].copy_(array.fake_quantise(self.arrays[name]))

    def load(self, saved: Network) -> None:
        """Take the parameters of a weight file."""
        for name, array in saved.parameters().items():
            self.arrays[name].copy_(torch.from_numpy(array))
