"""`PatternNet`: the value of a position as a sum over its patterns.

Every instance of a pattern adds one weight, chosen by the state of its squares and by the phase of the game; the numbers
of moves of both sides and the number of empty squares add one each. That is the classical linear evaluation of strong
Othello programs; in torch it is an `EmbeddingBag`, in the search an integer table look-up (`models.core.pattern_value`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models.compiled import quantised
from models.core.pattern_value import UNITS
from models.core.patterns import EMPTIES_A_PHASE
from models.files import PatternWeights, Weights
from models.pattern_features import PatternFeatures
from reversi_env import Rules
from reversi_env.extras import extra_libraries

with extra_libraries():
    import torch
    from torch import Tensor, nn


class PatternNet(PatternFeatures):
    """Positions to values in discs for the side to move.

    ``forward(own, opp)`` takes int64 tensors of boards (`models.boards.board_tensor`). The weights of a phase are the
    pattern weights followed by `COUNTS` for the own and `COUNTS` for the opponent's number of moves.
    """

    def __init__(self, size: int = 8) -> None:
        super().__init__(size, EMPTIES_A_PHASE[size])
        self.table = nn.EmbeddingBag(self.phases * self.row, 1, mode="sum")
        self.constant = nn.Embedding(size * size + 1, 1)
        nn.init.zeros_(self.table.weight)
        nn.init.zeros_(self.constant.weight)

    def value(self, features: Tensor, empties: Tensor, phases: Tensor) -> Tensor:
        """Values in discs from `features`; *phases* may differ from those of the empties while training."""
        rows = features + (phases * self.row).unsqueeze(-1)
        return (self.table(rows) + self.constant(empties)).squeeze(-1)

    def phase_weights(self) -> Tensor:
        """The weights as ``(phases, row)``, a view."""
        return self.table.weight.data.view(self.phases, self.row)

    def by_phase(self) -> tuple[Tensor, ...]:
        """The weights of each phase."""
        return (self.phase_weights(),)

    def by_empties(self) -> Tensor:
        """The constants."""
        return self.constant.weight.data

    def constants(self) -> np.ndarray:
        """The constant for each number of empty squares, in discs."""
        return self.constant.weight.detach().cpu().numpy()[:, 0]

    def weights(self, rules: Rules, record: dict[str, Any] | None = None) -> PatternWeights:
        """The parameters, rounded as a weight file has them, for the game *rules*."""
        rounded = quantised(self.phase_weights().cpu().numpy())
        return PatternWeights(rules, rounded, quantised(self.constants()), record=record or {})

    def load_weights(self, saved: Weights) -> None:
        """Take the parameters of a weight file."""
        assert isinstance(saved, PatternWeights)
        self.phase_weights()[:] = torch.from_numpy(saved.weights.astype(np.float32) / UNITS)
        self.constant.weight.data[:, 0] = torch.from_numpy(saved.constants.astype(np.float32) / UNITS)
