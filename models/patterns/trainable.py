"""`PatternModule`: a network as a torch module, for `train.fitting.fit`."""

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
    """The rounded form of a tensor with the tensor's gradient (straight-through estimator)."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, rounded: Tensor) -> Tensor:
        return rounded.view_as(rounded)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output, None


class PatternModule(nn.Module):
    """Maps positions to values in discs for the side to move, in two steps: features, which a fit computes once, and a value.

    *network* is the name of a kind (`models.patterns.NETWORKS`), *size* the board size, *seed* that of the initial parameters.
    ``span``: numbers of empty squares that share a phase; ``phases``: number of phases. The parameters have the names and shapes of
    the arrays in a weight file.
    """

    def __init__(self, network: str, size: int = 8, seed: int = 0) -> None:
        super().__init__()
        self.kind, self.size = NETWORKS[checked_network(network)], size
        self.span, self.phases = self.kind.span(size), self.kind.phases(size)
        for name, tensor in self.kind.initial(size, seed).items():
            self.register_parameter(name, nn.Parameter(tensor))

    @classmethod
    def of(cls, network: Network) -> PatternModule:
        """Return the module with the weights of a network."""
        net = cls(network.name, network.rules.size)
        net.load(network)
        return net

    def forward(self, own: Tensor, opp: Tensor) -> Tensor:
        """Return values in discs for the side to move; boards are int64 tensors (`models.bitboards.board_tensor`)."""
        features, empties = self.features(own, opp)
        return self.value(features, empties, self.phases_at(empties))

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def arrays(self) -> dict[str, Tensor]:
        """The parameters by name, as views without gradients."""
        return {name: parameter.data for name, parameter in self.named_parameters()}

    def features(self, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        return self.kind.features(self.size, own, opp)

    def feature_array(self, own: np.ndarray, opp: np.ndarray, threads: int = 1) -> np.ndarray | Tensor:
        return self.kind.feature_array(self.size, own, opp, self.device, threads)

    def value(
        self, features: Tensor, empties: Tensor, phases: Tensor, parameters: dict[str, Tensor] | None = None
    ) -> Tensor:
        """Return values in discs from `features`; *phases* may differ from those of the empties in training.

        *parameters* replace those of the network, such as by `fake_quantised`.
        """
        return self.kind.value(parameters or dict(self.named_parameters()), features, empties, phases)

    def fake_quantised(self) -> dict[str, Tensor]:
        """Return the quantised parameters, with straight-through gradients (quantisation-aware training).

        Near the start, the same rows of empty corners and edges are added up to eight times, so that quantisation after the fit
        shifted values by up to two discs.
        """
        with torch.no_grad():
            arrays = self.kind.arrays(Rules(self.size))
            quantised = {name: array.fake_quantise(self.arrays[name]) for name, array in arrays.items()}
        return {name: StraightThrough.apply(tensor, quantised[name]) for name, tensor in self.named_parameters()}

    def phases_at(self, empties: Tensor) -> Tensor:
        """Return the phase of each number of empty squares, which need not be an integer."""
        return torch.floor(empties / self.span).long().clamp(0, self.phases - 1)

    def by_phase(self) -> tuple[Tensor, ...]:
        """Return the parameters of each phase, as views whose first dimension is the phase."""
        return tuple(self.arrays[name] for name in self.kind.per_phase)

    def by_empties(self) -> Tensor:
        view = self.kind.by_empties(self.arrays)
        return torch.zeros(0) if view is None else view

    def to_network(self, rules: Rules, record: dict[str, Any] | None = None) -> Network:
        """Return the network with the quantised parameters, for the game *rules*."""
        return self.kind.quantised(rules, {name: array.cpu().numpy() for name, array in self.arrays.items()}, record)

    def quantise(self) -> None:
        """Quantise the parameters in place."""
        for name, array in self.kind.arrays(Rules(self.size)).items():
            self.arrays[name].copy_(array.fake_quantise(self.arrays[name]))

    def load(self, saved: Network) -> None:
        for name, array in saved.parameters().items():
            self.arrays[name].copy_(torch.from_numpy(array))
