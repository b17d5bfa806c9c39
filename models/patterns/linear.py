"""`PatternNet`: the value of a position as a sum over its patterns.

Every instance of a pattern adds one weight, chosen by the state of its squares and by the phase of the game; the numbers
of moves of both sides and the number of empty squares add one each. That is the classical linear evaluation of strong
Othello programs; in torch it is an embedding bag, in the search an integer table look-up (`models.kernels.linear`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from models.kernels.accumulator import digit_table
from models.kernels.linear import PATTERN_NET, UNITS
from models.patterns.features import PatternNetwork
from models.patterns.network import ArraySpec, CompiledNetwork
from reversi_env import Rules

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class PatternNet(PatternNetwork):
    """A linear network over patterns; whole numbers are in `UNITS` of a disc (int16).

    ``weights``: (phases, tied pattern weights, then weights for the numbers of own and of the opponent's moves);
    ``constants``: one for each number of empty squares.
    """

    name = "linear"
    architecture = "linear patterns"
    spans: ClassVar[dict[int, int]] = {8: 3, 6: 2, 4: 2}  # fewer where there are fewer positions to tell apart
    per_phase = ("weights",)
    stage_presets: ClassVar[dict[str, dict[str, Any]]] = {
        "searched": {"epochs": 12},
        "joint": {"epochs": 10, "learning_rate": 0.01, "blur": 1.0},
    }

    weights: np.ndarray
    constants: np.ndarray

    @classmethod
    def arrays(cls, rules: Rules) -> dict[str, ArraySpec]:
        """The arrays of a weight file for a game."""
        return {
            "weights": ArraySpec(np.int16, (cls.phases(rules.size), cls.row(rules.size)), UNITS),
            "constants": ArraySpec(np.int16, (rules.square_count + 1,), UNITS),
        }

    @classmethod
    def preset(cls, size: int) -> dict[str, Any]:
        """Options of a fit that did well for a board."""
        return {"epochs": 40, "learning_rate": 0.05, "patience": 15} if size == 4 else {}

    def compiled(self) -> CompiledNetwork:
        """The network as the search wants it: one weight for every state of every pattern, then the counts."""
        weights, digits = self.untied(self.weights), digit_table(self.rules.size)
        memory = np.concatenate([weights.ravel(), self.constants])
        net = self.search_record(PATTERN_NET)
        net["pattern_weights"], net["digits"] = memory.ctypes.data, digits.ctypes.data
        net["phases"], net["row"] = weights.shape
        net["empties_a_phase"] = self.span(self.rules.size)
        return CompiledNetwork(net, (memory, digits))

    def summary(self) -> str:
        """The architecture in a line, for people."""
        count, span = self.weights.shape[1], self.span(self.rules.size)
        return f"{super().summary()}, {count:,} weights for every {span} empty squares, int16"

    @classmethod
    def value(cls, parameters: Mapping[str, Tensor], features: Tensor, empties: Tensor, phases: Tensor) -> Tensor:
        """Values in discs for the side to move; *phases* may differ from those of the empties while training."""
        from torch.nn.functional import embedding, embedding_bag

        weights, constants = parameters["weights"], parameters["constants"]
        rows = features + (phases * weights.shape[1]).unsqueeze(-1)
        total = embedding_bag(rows, weights.view(-1, 1), mode="sum")
        return (total + embedding(empties, constants.view(-1, 1))).squeeze(-1)

    @classmethod
    def by_empties(cls, parameters: Mapping[str, Tensor]) -> Tensor:
        return parameters["constants"]
