"""`DenseNet`: discs and moves through one hidden layer, the plain small value network, to compare others with.

In the search it is `models.core.dense_value`: the same sums in single precision, in another order.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from models.boards import legal_moves, planes
from models.core.dense_value import HIDDEN, INPUTS
from models.files import DenseWeights
from reversi_env import Rules


class DenseNet(nn.Module):
    """Positions to values in discs for the side to move.

    ``forward(own, opp)`` takes int64 tensors of boards (`models.boards.board_tensor`). The inputs are own discs,
    opponent's discs, own legal moves and the opponent's, each a bit for every square of the 8x8 frame; the hidden units
    are cut off below 0 and above 1.
    """

    def __init__(self, size: int = 8) -> None:
        super().__init__()
        self.rules = Rules(size)
        self.first = nn.Parameter(torch.randn(INPUTS, HIDDEN) * 0.1)
        self.first_bias = nn.Parameter(torch.full((HIDDEN,), 0.5))
        self.second = nn.Parameter(torch.randn(HIDDEN))
        self.second_bias = nn.Parameter(torch.zeros(1))

    def features(self, own: Tensor, opp: Tensor) -> Tensor:
        """``(n, INPUTS)`` of 0 and 1, float32."""
        playable = self.rules.playable
        boards = own, opp, legal_moves(own, opp, playable), legal_moves(opp, own, playable)
        return torch.cat([planes(board) for board in boards], dim=-1).to(torch.float32)

    def forward(self, own: Tensor, opp: Tensor) -> Tensor:
        """Values in discs."""
        hidden = (self.features(own, opp) @ self.first + self.first_bias).clamp(0, 1)
        return hidden @ self.second + self.second_bias

    def weights(self, rules: Rules, record: dict[str, Any] | None = None) -> DenseWeights:
        """The parameters as a weight file has them, for the game *rules*."""
        arrays = {name: tensor.detach().cpu().numpy().copy() for name, tensor in self.named_parameters()}
        return DenseWeights(rules=rules, record=record or {}, **arrays)
