"""Networks as the search wants them: a record with whole-number weights, kept alive by the object that made it."""

from __future__ import annotations

import numpy as np

from models.core import pattern_value
from models.core.pattern_value import MOST_INSTANCES, MOST_PATTERNS, UNITS, packing_steps
from models.patterns import EMPTIES_A_PHASE, SYMMETRIES, PatternSet, patterns_of
from reversi_env import Rules

LARGEST = np.iinfo(np.int16).max


def quantised(weights: np.ndarray) -> np.ndarray:
    """Weights in discs as whole `UNITS`, at most 255 discs each."""
    return np.clip(np.rint(weights * UNITS), -LARGEST, LARGEST).astype(np.int16)


class CompiledPatternNet:
    """A linear pattern network for the search of one game.

    *weights* are ``(phases, all states + counts)`` and *constants* one for each number of empties, both in `UNITS`
    (int16): `PatternNet.expanded` and `PatternNet.constants`, quantised.
    """

    def __init__(self, rules: Rules, weights: np.ndarray, constants: np.ndarray) -> None:
        patterns = patterns_of(rules.size)
        self.rules = rules
        self._row = weights.shape[1]
        self._memory = np.concatenate([weights.ravel(), constants, np.zeros(self._row, np.int16)])
        self._record = _record(rules, patterns, self._memory, self._row)

    def record(self, rules: Rules) -> np.ndarray:
        """The compiled evaluator's data: an array of one record, valid while this object lives."""
        return self._record


def _record(rules: Rules, patterns: PatternSet, memory: np.ndarray, row: int) -> np.ndarray:
    net = np.zeros(1, pattern_value.PATTERN_NET)
    net["pattern_weights"] = memory.ctypes.data
    net["row"], net["states"], net["phases"] = row, patterns.states, patterns.phases
    net["empties_a_phase"] = EMPTIES_A_PHASE[rules.size]
    net["squares"], net["playable"] = rules.square_count, rules.playable
    net["limit"] = rules.square_count - 0.5
    symmetries = np.array([symmetry for _, symmetry in patterns.instances])
    net["first_instance"] = np.searchsorted(symmetries, np.arange(SYMMETRIES + 1))
    _fill(net["instance_pattern"], [pattern for pattern, _ in patterns.instances], MOST_INSTANCES)
    _fill(net["pattern_mask"], [pattern.mask for pattern in patterns.patterns], MOST_PATTERNS)
    _fill(net["pattern_offset"], patterns.offsets[:-1].tolist(), MOST_PATTERNS)
    for number, pattern in enumerate(patterns.patterns):
        net["pattern_steps"][0, number] = packing_steps(pattern.mask)
    return net


def _fill(field: np.ndarray, values: list[int], room: int) -> None:
    assert len(values) <= room, f"{len(values)} patterns or instances: expected at most {room}"
    field[0, : len(values)] = values
