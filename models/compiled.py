"""Networks as the search wants them: a record with the address of the weights, kept alive by the object that made it."""

from __future__ import annotations

import numpy as np

from models.core import deep_value
from models.core.deep_value import DEEP_NET
from models.core.dense_value import DENSE_NET
from models.core.pattern_states import digit_table
from models.core.pattern_value import PATTERN_NET, UNITS
from models.core.patterns import EMPTIES_A_PHASE, patterns_of
from reversi_env import Rules

LARGEST = np.iinfo(np.int16).max


def quantised(weights: np.ndarray) -> np.ndarray:
    """Weights in discs as whole `UNITS`, at most 255 discs each."""
    return np.clip(np.rint(weights * UNITS), -LARGEST, LARGEST).astype(np.int16)


class Compiled:
    """A network for the search of one game: a record, and the arrays whose addresses it holds."""

    rules: Rules
    _record: np.ndarray

    def record(self, rules: Rules) -> np.ndarray:
        """The compiled evaluator's data: an array of one record, valid while this object lives."""
        return self._record


class CompiledPatternNet(Compiled):
    """A linear pattern network for the search of one game.

    *weights* are ``(phases, all states + counts)`` and *constants* one for each number of empties, both in `UNITS`
    (int16): `PatternWeights.expanded` and its constants.
    """

    def __init__(self, rules: Rules, weights: np.ndarray, constants: np.ndarray) -> None:
        self.rules = rules
        self._memory = np.concatenate([weights.ravel(), constants])
        self._digits = digit_table(rules.size)
        patterns, net = patterns_of(rules.size), np.zeros(1, PATTERN_NET)
        net["pattern_weights"], net["digits"] = self._memory.ctypes.data, self._digits.ctypes.data
        net["row"], net["states"], net["phases"] = weights.shape[1], patterns.states, patterns.phases
        net["empties_a_phase"] = EMPTIES_A_PHASE[rules.size]
        net["squares"], net["playable"] = rules.square_count, rules.playable
        net["limit"] = rules.square_count - 0.5
        self._record = net


class CompiledDeepNet(Compiled):
    """A deep pattern network for the search of one game.

    *rows* are ``(phases, all states + counts + numbers of empty squares, width)`` (int8), *heads* ``(phases, numbers)``
    (float32): `DeepWeights.expanded` and its heads.
    """

    def __init__(self, rules: Rules, rows: np.ndarray, heads: np.ndarray) -> None:
        self.rules = rules
        self._rows, self._heads = np.ascontiguousarray(rows), deep_value.heads_for_sums(heads)
        self._digits = digit_table(rules.size)
        # A board emptier than the start has the first rows and head.
        phase = np.minimum(np.arange(deep_value.EMPTIES) // deep_value.EMPTIES_A_PHASE[rules.size], len(rows) - 1)
        net = np.zeros(1, DEEP_NET)
        net["deep_rows"] = self._rows.ctypes.data + phase * self._rows.strides[0]
        net["heads"] = self._heads.ctypes.data + phase * self._heads.strides[0]
        net["digits"], net["states"] = self._digits.ctypes.data, patterns_of(rules.size).states
        net["squares"], net["playable"] = rules.square_count, rules.playable
        net["limit"] = rules.square_count - 0.5
        self._record = net


class CompiledDenseNet(Compiled):
    """A dense network for the search of one game; the arrays (float32) are those of `models.files.DenseWeights`."""

    def __init__(
        self, rules: Rules, first: np.ndarray, first_bias: np.ndarray, second: np.ndarray, second_bias: np.ndarray
    ) -> None:
        self.rules = rules
        self._memory = np.concatenate([first.ravel(), first_bias, second, second_bias]).astype(np.float32)
        self._record = np.zeros(1, DENSE_NET)
        self._record["dense_weights"] = self._memory.ctypes.data
        self._record["playable"], self._record["limit"] = rules.playable, rules.square_count - 0.5
