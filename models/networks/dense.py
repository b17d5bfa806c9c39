"""`DenseNet`: discs and moves through one hidden layer, the plain small value network, to compare others with.

In the search it is `models.core.dense_value`: the same sums in single precision, in another order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from models.core.dense_value import DENSE_NET, HIDDEN, INPUTS
from models.networks.base import Array, Compiled, Network
from reversi_env import Rules

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class DenseNet(Network):
    """A dense network in single precision.

    The inputs are own discs, opponent's discs, own legal moves and the opponent's, each a bit for every square of the 8x8 frame;
    the hidden units are cut off below 0 and above 1. Nothing is shared by the eight images of a position: a fit has to show
    them.
    """

    name = "dense"
    architecture = "dense"
    symmetric = False

    first: np.ndarray
    first_bias: np.ndarray
    second: np.ndarray
    second_bias: np.ndarray

    @classmethod
    def arrays(cls, rules: Rules) -> dict[str, Array]:
        """The arrays of a weight file, the same for every game."""
        shapes = {"first": (INPUTS, HIDDEN), "first_bias": (HIDDEN,), "second": (HIDDEN,), "second_bias": (1,)}
        return {name: Array(np.float32, shape) for name, shape in shapes.items()}

    @classmethod
    def preset(cls, size: int) -> dict[str, Any]:
        """Options of a fit that did well."""
        return {"epochs": 30, "batch_size": 1 << 10, "weight_decay": 0.001}

    def compiled(self) -> Compiled:
        """The network as the search wants it."""
        memory = np.concatenate([self.first.ravel(), self.first_bias, self.second, self.second_bias])
        net = self.search_record(DENSE_NET)
        net["dense_weights"] = memory.ctypes.data
        return Compiled(net, (memory,))

    @classmethod
    def initial(cls, size: int, seed: int) -> dict[str, Tensor]:
        """Random parameters."""
        import torch

        generator = torch.Generator().manual_seed(seed)
        return {
            "first": torch.randn(INPUTS, HIDDEN, generator=generator) * 0.1,
            "first_bias": torch.full((HIDDEN,), 0.5),
            "second": torch.randn(HIDDEN, generator=generator),
            "second_bias": torch.zeros(1),
        }

    @classmethod
    def features(cls, size: int, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """``(n, 4)`` boards – own discs, opponent's, own moves, opponent's – and the numbers of empty squares."""
        import torch

        from models.boards import bit_counts, legal_moves

        playable = Rules(size).playable
        boards = own, opp, legal_moves(own, opp, playable), legal_moves(opp, own, playable)
        return torch.stack(boards, dim=-1), size**2 - bit_counts(own) - bit_counts(opp)

    @classmethod
    def turned(cls, features: Tensor, symmetries: Tensor) -> Tensor:
        """The boards under symmetries 0-7, one for each position: moves turn with the discs."""
        from models.boards import turned

        return turned(features, symmetries.unsqueeze(-1))

    @classmethod
    def value(cls, parameters: Mapping[str, Tensor], features: Tensor, empties: Tensor, phases: Tensor) -> Tensor:
        """Values in discs for the side to move; a dense network has one phase and does not count empty squares."""
        import torch

        from models.boards import planes

        inputs = torch.cat([planes(board) for board in features.unbind(-1)], dim=-1).to(torch.float32)
        hidden = (inputs @ parameters["first"] + parameters["first_bias"]).clamp(0, 1)
        return hidden @ parameters["second"] + parameters["second_bias"]
