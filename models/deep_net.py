"""`DeepPatternNet`: a vector for every pattern, added up, and a small non-linear head.

What one number a pattern cannot say – that a corner is worth less where the edge beside it is lost – the head can: it sees
the sums of `WIDTH` numbers and may bend them. Rows and head depend on the phase of the game. In torch the rows are an
`EmbeddingBag`, in the search vectors of whole numbers (`models.core.deep_value`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models.core.deep_value import (
    BIAS,
    CONSTANT,
    EMPTIES,
    EMPTIES_A_PHASE,
    FIRST,
    HEAD,
    HIDDEN,
    INPUTS,
    ONE,
    SECOND,
    WIDTH,
)
from models.files import DeepWeights, Weights
from models.pattern_features import PatternFeatures
from reversi_env import Rules
from reversi_env.extras import extra_libraries

with extra_libraries():
    import torch
    from torch import Tensor, nn

#: No number of a row is larger: so much fits into its eight bits.
LARGEST = 127 / ONE
#: At the beginning: discs that the first sum counts, and the spread of the rows and of the head's second layer.
SUM_DISCS, ROW_SPREAD, SECOND_SPREAD = 20.0, 0.01, 2.0


class DeepPatternNet(PatternFeatures):
    """Positions to values in discs for the side to move.

    ``forward(own, opp)`` takes int64 tensors of boards (`models.boards.board_tensor`). The rows of a phase are those of a
    `PatternNet` followed by one for each number of empty squares.
    """

    def __init__(self, size: int = 8, seed: int = 0) -> None:
        super().__init__(size, EMPTIES_A_PHASE[size], EMPTIES)
        self.table = nn.EmbeddingBag(self.phases * self.row, WIDTH, mode="sum")
        self.heads = nn.Parameter(torch.zeros(self.phases, HEAD))
        self._begin(torch.Generator().manual_seed(seed))

    def _begin(self, generator: torch.Generator) -> None:
        """The same random rows and the same head for every phase; the first sum begins as the value itself."""
        with torch.no_grad():
            rows = torch.randn(self.row, WIDTH, generator=generator) * ROW_SPREAD
            rows[:, 0] = 0
            self.table.weight.copy_(rows.repeat(self.phases, 1))
            self.heads[:, 0] = SUM_DISCS
            self.heads[:, FIRST:BIAS] = torch.randn(INPUTS * HIDDEN, generator=generator) / INPUTS**0.5
            self.heads[:, BIAS:SECOND] = 0.1
            self.heads[:, SECOND:CONSTANT] = torch.randn(HIDDEN, generator=generator) * SECOND_SPREAD

    @property
    def feature_count(self) -> int:
        """Rows that a position has."""
        return super().feature_count + 1

    def features(self, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """``(n, feature_count)`` numbers of rows within a phase, and the numbers of empty squares."""
        features, empties = super().features(own, opp)
        last = empties.to(features.dtype) + (self.row - EMPTIES)
        return torch.cat([features, last.unsqueeze(-1)], dim=-1), empties

    def value(self, features: Tensor, empties: Tensor, phases: Tensor) -> Tensor:
        """Values in discs from `features`; *phases* may differ from those of the empties while training."""
        sums = self.table(features + (phases * self.row).unsqueeze(-1))
        # a product, not a look-up: its gradient is one too, where that of a look-up would be a slow scatter
        heads = nn.functional.one_hot(phases, self.phases).to(self.heads.dtype) @ self.heads
        inputs = torch.cat([sums.clamp(0, 1), (-sums).clamp(0, 1)], dim=-1)
        first = heads[:, FIRST:BIAS].view(-1, INPUTS, HIDDEN)
        units = torch.relu(torch.bmm(inputs.unsqueeze(1), first).squeeze(1) + heads[:, BIAS:SECOND])
        bent = (units * heads[:, SECOND:CONSTANT]).sum(-1)
        return (sums * heads[:, :FIRST]).sum(-1) + bent + heads[:, CONSTANT]

    def rows(self) -> Tensor:
        """The rows as ``(phases, row, WIDTH)``, a view."""
        return self.table.weight.data.view(self.phases, self.row, WIDTH)

    def by_phase(self) -> tuple[Tensor, ...]:
        """The rows and the head of each phase."""
        return self.rows(), self.heads.data

    def by_empties(self) -> Tensor:
        """The last rows of every phase."""
        return self.rows()[:, -EMPTIES:].transpose(0, 1)

    def weights(self, rules: Rules, record: dict[str, Any] | None = None) -> DeepWeights:
        """The parameters, rounded as a weight file has them, for the game *rules*."""
        rows = np.rint(self.rows().cpu().numpy().clip(-LARGEST, LARGEST) * ONE).astype(np.int8)
        return DeepWeights(rules, rows, self.heads.detach().cpu().numpy().copy(), record=record or {})

    def load_weights(self, saved: Weights) -> None:
        """Take the parameters of a weight file."""
        assert isinstance(saved, DeepWeights)
        self.rows()[:] = torch.from_numpy(saved.rows.astype(np.float32) / ONE)
        self.heads.data[:] = torch.from_numpy(saved.heads)
