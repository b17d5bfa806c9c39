"""`PatternNet`: the value of a position as a sum over its patterns.

Every instance of a pattern adds one weight, by the state of its squares and the phase of the game; the numbers of moves of both
sides and the number of empty squares add one each. This is the classical linear evaluation of Othello programs. It is an embedding
bag in torch, and an integer table look-up in the search (`models.kernels.linear`).
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
    """A linear network over patterns; its integers (int16) are in units, `UNITS` per disc.

    ``weights``: (phases, tied pattern weights, then weights for the numbers of own and of the opponent's moves);
    ``constants``: a constant for each number of empty squares.
    """

    name = "linear"
    architecture = "linear patterns"
    spans: ClassVar[dict[int, int]] = {8: 3, 6: 2, 4: 2}
    per_phase = ("weights",)
    stage_presets: ClassVar[dict[str, dict[str, Any]]] = {
        "searched": {"epochs": 12},
        "joint": {"epochs": 10, "learning_rate": 0.01, "phase_jitter": 1.0},
    }

    weights: np.ndarray
    constants: np.ndarray

    @classmethod
    def arrays(cls, rules: Rules) -> dict[str, ArraySpec]:
        return {
            "weights": ArraySpec(np.int16, (cls.phases(rules.size), cls.row(rules.size)), UNITS),
            "constants": ArraySpec(np.int16, (rules.square_count + 1,), UNITS),
        }

    @classmethod
    def preset(cls, size: int) -> dict[str, Any]:
        return {"epochs": 40, "learning_rate": 0.05, "patience": 15} if size == 4 else {}

    def compiled(self) -> CompiledNetwork:
        """Return the network for the search: one weight for every state of every pattern, then those of the counts."""
        weights, digits = self.untied(self.weights), digit_table(self.rules.size)
        memory = np.concatenate([weights.ravel(), self.constants])
        net = self.search_record(PATTERN_NET)
        net["pattern_weights"], net["digits"] = memory.ctypes.data, digits.ctypes.data
        net["phases"], net["row"] = weights.shape
        net["empties_per_phase"] = self.span(self.rules.size)
        return CompiledNetwork(net, (memory, digits))

    def summary(self) -> str:
        count, span = self.weights.shape[1], self.span(self.rules.size)
        return f"{super().summary()}, {count:,} weights for every {span} empty squares, int16"

    @classmethod
    def value(cls, parameters: Mapping[str, Tensor], features: Tensor, empties: Tensor, phases: Tensor) -> Tensor:
        from torch.nn.functional import embedding, embedding_bag

        weights, constants = parameters["weights"], parameters["constants"]
        rows = features + (phases * weights.shape[1]).unsqueeze(-1)
        total = embedding_bag(rows, weights.view(-1, 1), mode="sum")
        return (total + embedding(empties, constants.view(-1, 1))).squeeze(-1)

    @classmethod
    def by_empties(cls, parameters: Mapping[str, Tensor]) -> Tensor:
        return parameters["constants"]
