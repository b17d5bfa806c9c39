"""What networks over patterns have in common: which rows of their tables a position has, and in which phase it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from models.boards import bit_counts, legal_moves, planes
from models.core.pattern_rows import write_rows
from models.core.pattern_states import digit_table
from models.core.pattern_value import COUNTS
from models.core.patterns import PatternSet, patterns_of
from models.trainable import Trainable
from reversi_env import Rules
from reversi_env.extras import extra_libraries

with extra_libraries():
    import torch
    from torch import Tensor

#: Positions that a thread looks at at a time.
CHUNK = 1 << 14


class PatternFeatures(Trainable):
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

    def rows_of(self, own: np.ndarray, opp: np.ndarray, threads: int = 1) -> np.ndarray:
        """The same features of arrays of boards, by a compiled kernel."""
        found = np.empty((len(own), self.feature_count), np.int32)

        def run(start: int) -> None:
            piece = slice(start, start + CHUNK)
            write_rows(
                *(self.rules.square_count, np.uint64(self.rules.playable), own[piece], opp[piece]),
                *(digit_table(self.size), self.patterns.tied, self.patterns.weights, len(self.patterns.instances)),
                found[piece],
            )

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(run, range(0, len(own), CHUNK)))
        return found
