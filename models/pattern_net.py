"""`PatternNet`: the value of a position as a sum over its patterns.

Every instance of a pattern adds one weight, chosen by the state of its squares and by the phase of the game; the numbers
of moves of both sides and the number of empty squares add one each. That is the classical linear evaluation of strong
Othello programs; in torch it is an `EmbeddingBag`, in the search an integer table look-up (`models.core.pattern_value`).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from models.boards import bit_counts, legal_moves, planes
from models.core.pattern_value import COUNTS
from models.core.patterns import EMPTIES_A_PHASE, PatternSet, patterns_of
from reversi_env import Rules


class PatternNet(nn.Module):
    """Positions to values in discs for the side to move.

    ``forward(own, opp)`` takes int64 tensors of boards (`models.boards.board_tensor`). The weights of a phase are the
    pattern weights followed by `COUNTS` for the own and `COUNTS` for the opponent's number of moves.
    """

    offsets: Tensor
    digit_weights: Tensor
    tied: Tensor

    def __init__(self, size: int = 8) -> None:
        super().__init__()
        self.size = size
        self.rules = Rules(size)
        self.patterns: PatternSet = patterns_of(size)
        self.row = self.patterns.weights + 2 * COUNTS
        self.table = nn.EmbeddingBag(self.patterns.phases * self.row, 1, mode="sum")
        self.constant = nn.Embedding(size * size + 1, 1)
        nn.init.zeros_(self.table.weight)
        nn.init.zeros_(self.constant.weight)
        offsets = [int(self.patterns.offsets[pattern]) for pattern, _ in self.patterns.instances]
        self.register_buffer("offsets", torch.tensor(offsets), persistent=False)
        self.register_buffer("digit_weights", torch.from_numpy(self.patterns.digit_weights), persistent=False)
        self.register_buffer("tied", torch.from_numpy(self.patterns.tied), persistent=False)

    def forward(self, own: Tensor, opp: Tensor) -> Tensor:
        """Values in discs."""
        features, empties = self.features(own, opp)
        phases = (empties // EMPTIES_A_PHASE[self.size]).clamp(max=self.patterns.phases - 1)
        return self.value(features, empties, phases)

    def features(self, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """``(n, instances + 2)`` numbers of weights within a phase, and the numbers of empty squares."""
        own_planes, opp_planes = planes(own), planes(opp)
        digits = (own_planes + 2 * opp_planes).to(torch.float32)
        # Exact in single precision: all numbers are below 2**24. (Reduced precision would not be.)
        with torch.autocast(own.device.type, enabled=False):
            states = (digits @ self.digit_weights).to(torch.int64)
        weights = self.tied[states + self.offsets].to(torch.int64)
        playable = self.rules.playable
        moves = [bit_counts(legal_moves(own, opp, playable)), bit_counts(legal_moves(opp, own, playable))]
        counts = torch.stack([moves[0], moves[1] + COUNTS], dim=-1) + self.patterns.weights
        empties = self.size**2 - own_planes.sum(-1) - opp_planes.sum(-1)
        return torch.cat([weights, counts], dim=-1), empties

    def value(self, features: Tensor, empties: Tensor, phases: Tensor) -> Tensor:
        """Values in discs from `features`; *phases* may differ from those of the empties while training."""
        rows = features + (phases * self.row).unsqueeze(-1)
        return (self.table(rows) + self.constant(empties)).squeeze(-1)

    def phase_weights(self) -> Tensor:
        """The weights as ``(phases, row)``, a view."""
        return self.table.weight.data.view(self.patterns.phases, self.row)

    def expanded(self) -> np.ndarray:
        """The weights as the search wants them: ``(phases, all states + 2 * COUNTS)``, in discs."""
        weights = self.phase_weights().cpu().numpy()
        split = self.patterns.weights
        return np.concatenate([weights[:, :split][:, self.patterns.tied], weights[:, split:]], axis=1)

    def constants(self) -> np.ndarray:
        """The constant for each number of empty squares, in discs."""
        return self.constant.weight.detach().cpu().numpy()[:, 0]
