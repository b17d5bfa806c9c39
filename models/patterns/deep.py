"""`DeepPatternNet`: the sum of a vector for every pattern, and a small non-linear head.

The head can represent interactions between patterns, such as a corner that is less valuable if the edge beside it is lost. Rows and
head depend on the phase of the game. The rows are an embedding bag in torch, and integer vectors in the search
(`models.kernels.deep`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from models.kernels.accumulator import digit_table
from models.kernels.deep import (
    DEEP_NET,
    EMPTIES,
    QUANTISED_MAX,
    QUANTISED_ONE,
    SHAPE,
    Shape,
    heads_for_search,
    quantised_heads,
)
from models.patterns.features import PatternNetwork
from models.patterns.network import ArraySpec, CompiledNetwork
from reversi_env import Rules

if TYPE_CHECKING:
    from torch import Tensor

#: Initial values: discs per unit of the first sum, standard deviations of the rows and of the head's second layer.
SUM_DISCS, ROW_SPREAD, SECOND_SPREAD = 20.0, 0.01, 2.0


@dataclass(frozen=True)
class DeepPatternNet(PatternNetwork):
    """A deep network over patterns: quantised rows (int8, `QUANTISED_ONE` stands for 1) and heads (float32).

    ``rows``: (phases, tied pattern rows, counts and numbers of empty squares, width), ``heads``: (phases, parameters). Those of the
    heads' units are quantised (`models.kernels.deep.quantised_heads`). If a training does not reach the first moves, their phases
    equal the last one that it reached, which is stored once.
    """

    name = "deep"
    shape: ClassVar[Shape] = SHAPE
    search: ClassVar[np.dtype] = DEEP_NET
    architecture = "deep patterns"
    spans: ClassVar[dict[int, int]] = {8: 6, 6: 4, 4: 4}
    empties_rows = EMPTIES
    per_phase = ("rows", "heads")
    no_weight_decay = ("heads",)
    max_magnitude: ClassVar[dict[str, float]] = {"rows": 127 / QUANTISED_ONE}  # the range of int8
    curriculum = "opening"
    stage_presets: ClassVar[dict[str, dict[str, Any]]] = {"searched": {"epochs": 6}}

    rows: np.ndarray
    heads: np.ndarray

    @classmethod
    def arrays(cls, rules: Rules) -> dict[str, ArraySpec]:
        phases = cls.phases(rules.size)
        return {
            "rows": ArraySpec(np.int8, (phases, cls.row(rules.size), cls.shape.width), QUANTISED_ONE),
            "heads": ArraySpec(np.float32, (phases, cls.shape.head), project=partial(quantised_heads, cls.shape)),
        }

    @classmethod
    def preset(cls, size: int) -> dict[str, Any]:
        preset = {"epochs": 8, "learning_rate": 0.005, "weight_decay": 0.3, "phase_jitter": 2.0, "huber_delta": 12.0}
        return preset | ({"epochs": 40, "patience": 15, "weight_decay": 0.1} if size == 4 else {})

    def tensors(self) -> dict[str, np.ndarray]:
        """Return the arrays by name, without the last phases if they equal the one before."""
        phases = len(self.rows)
        while phases > 1 and all((array[phases - 1] == array[phases - 2]).all() for array in (self.rows, self.heads)):
            phases -= 1
        return {name: array[:phases] for name, array in super().tensors().items()}

    @classmethod
    def restored(cls, rules: Rules, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the arrays from those of a file, whose last phase is repeated for the first moves."""
        arrays, phases = super().restored(rules, tensors), cls.phases(rules.size)
        stored = {array.shape[0] if array.ndim else 0 for array in arrays.values()}
        if len(stored) > 1 or not 0 < min(stored) < phases:
            return arrays  # complete, or wrong
        each = np.minimum(np.arange(phases), min(stored) - 1)
        return {name: array[each] for name, array in arrays.items()}

    def compiled(self) -> CompiledNetwork:
        """Return the network for the search: one row for every state of every pattern, then the others."""
        rows, heads = np.ascontiguousarray(self.untied(self.rows)), heads_for_search(self.shape, self.heads)
        digits, net = digit_table(self.rules.size), self.search_record(self.search)
        # boards with more empties than the start use its phase
        phase = np.minimum(np.arange(EMPTIES) // self.span(self.rules.size), len(rows) - 1)
        net["deep_rows"] = rows.ctypes.data + phase * rows.strides[0]
        net["heads"] = heads.ctypes.data + phase * heads.strides[0]
        net["digits"] = digits.ctypes.data
        return CompiledNetwork(net, (rows, heads, digits))

    def summary(self) -> str:
        _, count, width = self.rows.shape
        every = f"for every {self.span(self.rules.size)} empty squares"
        return f"{super().summary()}, {count:,} rows of {width} numbers and a head of {self.shape.units} units {every}, int8"

    @classmethod
    def initial(cls, size: int, seed: int) -> dict[str, Tensor]:
        """Return the same random rows and head for every phase; the initial value is that of the first sum."""
        import torch

        generator, phases, shape = torch.Generator().manual_seed(seed), cls.phases(size), cls.shape
        rows = torch.randn(cls.row(size), shape.width, generator=generator) * ROW_SPREAD
        rows[:, 0] = 0
        heads = torch.zeros(phases, shape.head)
        heads[:, 0] = SUM_DISCS
        heads[:, shape.first : shape.bias] = (
            torch.randn(shape.inputs * shape.units, generator=generator) / shape.inputs**0.5
        )
        heads[:, shape.bias : shape.second] = 0.1
        spread = SECOND_SPREAD * (SHAPE.units / shape.units) ** 0.5
        heads[:, shape.second : shape.constant] = torch.randn(shape.units, generator=generator) * spread
        return {"heads": heads, "rows": rows.repeat(phases, 1, 1)}

    @classmethod
    def value(cls, parameters: Mapping[str, Tensor], features: Tensor, empties: Tensor, phases: Tensor) -> Tensor:
        import torch
        from torch.nn.functional import embedding_bag, one_hot

        rows, all_heads, shape = parameters["rows"], parameters["heads"], cls.shape
        features = features + (phases * rows.shape[1]).unsqueeze(-1)
        sums = embedding_bag(features, rows.view(-1, shape.width), mode="sum")
        # a product instead of a look-up, whose gradient would be a slow scatter
        heads = one_hot(phases, len(all_heads)).to(all_heads.dtype) @ all_heads
        inputs = torch.cat(
            [sums.clamp(0, QUANTISED_MAX / QUANTISED_ONE), (-sums).clamp(0, QUANTISED_MAX / QUANTISED_ONE)], dim=-1
        )
        first = heads[:, shape.first : shape.bias].view(-1, shape.inputs, shape.units)
        units = torch.relu(torch.bmm(inputs.unsqueeze(1), first).squeeze(1) + heads[:, shape.bias : shape.second])
        non_linear = (units * heads[:, shape.second : shape.constant]).sum(-1)
        return (sums * heads[:, : shape.first]).sum(-1) + non_linear + heads[:, shape.constant]

    @classmethod
    def by_empties(cls, parameters: Mapping[str, Tensor]) -> Tensor:
        return parameters["rows"][:, -EMPTIES:].transpose(0, 1)
