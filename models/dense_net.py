"""`DenseNet`: discs and moves through one hidden layer, the plain small value network, to compare others with.

In the search it is `models.core.dense_value`: the same sums in single precision, in another order.
"""

from __future__ import annotations

from typing import Any

from models.boards import bit_counts, legal_moves, planes, turned
from models.core.dense_value import HIDDEN, INPUTS, PLANES
from models.files import DenseWeights, Weights
from models.trainable import Trainable
from reversi_env import Rules
from reversi_env.extras import extra_libraries

with extra_libraries():
    import torch
    from torch import Tensor, nn


class DenseNet(Trainable):
    """Positions to values in discs for the side to move.

    ``forward(own, opp)`` takes int64 tensors of boards (`models.boards.board_tensor`). The inputs are own discs,
    opponent's discs, own legal moves and the opponent's, each a bit for every square of the 8x8 frame; the hidden units
    are cut off below 0 and above 1. Nothing is shared by the eight images of a position: a fit has to show them.
    """

    symmetric = False

    def __init__(self, size: int = 8, seed: int = 0) -> None:
        super().__init__()
        self.size, self.rules = size, Rules(size)
        self.span, self.phases = size * size + 1, 1  # the same at all times
        generator = torch.Generator().manual_seed(seed)
        self.first = nn.Parameter(torch.randn(INPUTS, HIDDEN, generator=generator) * 0.1)
        self.first_bias = nn.Parameter(torch.full((HIDDEN,), 0.5))
        self.second = nn.Parameter(torch.randn(HIDDEN, generator=generator))
        self.second_bias = nn.Parameter(torch.zeros(1))

    @property
    def feature_count(self) -> int:
        """Four boards."""
        return PLANES

    def features(self, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """``(n, 4)`` boards – own discs, opponent's, own moves, opponent's – and the numbers of empty squares."""
        playable = self.rules.playable
        boards = own, opp, legal_moves(own, opp, playable), legal_moves(opp, own, playable)
        return torch.stack(boards, dim=-1), self.size**2 - bit_counts(own) - bit_counts(opp)

    def turned(self, features: Tensor, symmetries: Tensor) -> Tensor:
        """The boards under symmetries 0-7, one for each position: moves turn with the discs."""
        return turned(features, symmetries.unsqueeze(-1))

    def value(self, features: Tensor, empties: Tensor, phases: Tensor) -> Tensor:
        """Values in discs from `features`; a dense network has one phase and does not count empty squares."""
        inputs = torch.cat([planes(board) for board in features.unbind(-1)], dim=-1).to(torch.float32)
        hidden = (inputs @ self.first + self.first_bias).clamp(0, 1)
        return hidden @ self.second + self.second_bias

    def weights(self, rules: Rules, record: dict[str, Any] | None = None) -> DenseWeights:
        """The parameters as a weight file has them, for the game *rules*."""
        arrays = {name: tensor.detach().cpu().numpy().copy() for name, tensor in self.named_parameters()}
        return DenseWeights(rules=rules, record=record or {}, **arrays)

    def load_weights(self, saved: Weights) -> None:
        """Take the parameters of a weight file."""
        assert isinstance(saved, DenseWeights)
        for name, parameter in self.named_parameters():
            parameter.data = torch.from_numpy(getattr(saved, name).copy())
