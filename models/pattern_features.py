"""What networks over patterns have in common: which rows of their tables a position has, and in which phase it is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.boards import bit_counts, legal_moves, planes
from models.core.pattern_value import COUNTS
from models.core.patterns import PatternSet, patterns_of
from models.files import Weights
from reversi_env import Rules


class PatternFeatures(nn.Module):
    """Positions to the numbers of their rows within a phase: those of their patterns, then of the numbers of moves of both sides.

    ``span``: empty squares that share one phase, ``phases``: how many there are, ``row``: rows of one phase.
    """

    offsets: Tensor
    digit_weights: Tensor
    tied: Tensor

    def __init__(self, size: int, span: int, more_rows: int = 0) -> None:
        super().__init__()
        self.size, self.span = size, span
        self.rules = Rules(size)
        self.patterns: PatternSet = patterns_of(size)
        self.phases = (size * size - 4) // span + 1
        self.row = self.patterns.weights + 2 * COUNTS + more_rows
        offsets = [int(self.patterns.offsets[pattern]) for pattern, _ in self.patterns.instances]
        self.register_buffer("offsets", torch.tensor(offsets), persistent=False)
        self.register_buffer("digit_weights", torch.from_numpy(self.patterns.digit_weights), persistent=False)
        self.register_buffer("tied", torch.from_numpy(self.patterns.tied), persistent=False)

    @property
    def feature_count(self) -> int:
        """Rows that a position has."""
        return len(self.patterns.instances) + 2

    def forward(self, own: Tensor, opp: Tensor) -> Tensor:
        """Values in discs for the side to move; boards are int64 tensors (`models.boards.board_tensor`)."""
        features, empties = self.features(own, opp)
        return self.value(features, empties, self.phases_at(empties))

    def phases_at(self, empties: Tensor) -> Tensor:
        """The phase for each number of empty squares, which need not be whole."""
        return torch.floor(empties / self.span).long().clamp(0, self.phases - 1)

    def features(self, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """``(n, feature_count)`` numbers of rows within a phase, and the numbers of empty squares."""
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
        raise NotImplementedError

    def by_phase(self) -> tuple[Tensor, ...]:
        """The parameters that each phase has of its own, as views whose first dimension is the phase."""
        raise NotImplementedError

    def weights(self, rules: Rules, record: dict | None = None) -> Weights:
        """The parameters, rounded as a weight file has them, for the game *rules*."""
        raise NotImplementedError

    def load_weights(self, saved: Weights) -> None:
        """Take the parameters of a weight file."""
        raise NotImplementedError
