"""`Trainable`: what a network must be able to do so that `train.fitting.fit` can fit it and the search can use it."""

from __future__ import annotations

from typing import Any

from models.files import Weights
from reversi_env import Rules
from reversi_env.extras import extra_libraries

with extra_libraries():
    import torch
    from torch import Tensor, nn


class Trainable(nn.Module):
    """Positions to values in discs for the side to move, in two steps: features, which a fit computes once, and a value.

    ``size``: of the board; ``span``: empty squares that share one phase; ``phases``: how many phases there are;
    ``symmetric``: whether all eight images of a position have one value, whatever the parameters are.
    """

    size: int
    span: int
    phases: int
    symmetric: bool = True

    def forward(self, own: Tensor, opp: Tensor) -> Tensor:
        """Values in discs for the side to move; boards are int64 tensors (`models.boards.board_tensor`)."""
        features, empties = self.features(own, opp)
        return self.value(features, empties, self.phases_at(empties))

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.parameters()).device

    @property
    def feature_count(self) -> int:
        """Features of a position."""
        raise NotImplementedError

    def features(self, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """``(n, feature_count)`` whole numbers, and the numbers of empty squares."""
        raise NotImplementedError

    def turned(self, features: Tensor, symmetries: Tensor) -> Tensor:
        """The `features` of the images under symmetries 0-7 (`reversi_env.core.symmetry`), unless all images have the same."""
        raise NotImplementedError

    def value(self, features: Tensor, empties: Tensor, phases: Tensor) -> Tensor:
        """Values in discs from `features`; *phases* may differ from those of the empties while training."""
        raise NotImplementedError

    def phases_at(self, empties: Tensor) -> Tensor:
        """The phase for each number of empty squares, which need not be whole."""
        return torch.floor(empties / self.span).long().clamp(0, self.phases - 1)

    def by_phase(self) -> tuple[Tensor, ...]:
        """The parameters that each phase has of its own, as views whose first dimension is the phase."""
        return ()

    def by_empties(self) -> Tensor:
        """The parameters that each number of empty squares has of its own, as a view whose first dimension is that number."""
        return torch.zeros(0)

    def weights(self, rules: Rules, record: dict[str, Any] | None = None) -> Weights:
        """The parameters, rounded as a weight file has them, for the game *rules*."""
        raise NotImplementedError

    def load_weights(self, saved: Weights) -> None:
        """Take the parameters of a weight file."""
        raise NotImplementedError
