"""`PatternNetwork`: the base of networks over patterns, with the rows of a position as features."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from models.kernels.accumulator import digit_table
from models.kernels.linear import COUNTS
from models.kernels.patterns import patterns_of
from models.kernels.rows import write_rows
from models.patterns.network import Network
from reversi_env import Rules

if TYPE_CHECKING:
    import torch
    from torch import Tensor

#: Positions per job of a thread.
CHUNK = 1 << 14


@dataclass(frozen=True)
class PatternNetwork(Network):
    """A network whose features are row numbers within a phase.

    The rows of patterns come first, then those of the numbers of moves of both sides, and of the number of empty squares if the
    kind has ``empties_rows``.
    """

    empties_rows: ClassVar[int] = 0

    @classmethod
    def row(cls, size: int) -> int:
        return patterns_of(size).weight_count + 2 * COUNTS + cls.empties_rows

    def search_record(self, dtype: np.dtype) -> np.ndarray:
        record = super().search_record(dtype)
        record["states"], record["square_count"] = patterns_of(self.rules.size).state_count, self.rules.square_count
        return record

    def untied(self, tied: np.ndarray) -> np.ndarray:
        """Return the rows of every phase with one row for every state of a pattern, where equivalent states shared one."""
        patterns = patterns_of(self.rules.size)
        return np.take(tied, np.r_[patterns.search_weight_index, patterns.weight_count : tied.shape[1]], axis=1)

    def summary(self) -> str:
        patterns = patterns_of(self.rules.size)
        return f"{self.architecture}: {len(patterns.patterns)} patterns in {len(patterns.instances)} places"

    @classmethod
    def features(cls, size: int, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``(n, features)`` row numbers within a phase, int32, and the numbers of empty squares."""
        import torch

        from models.bitboards import bit_counts, legal_moves, planes

        offsets, digit_weights, tied = _tables(size, own.device)
        own_planes, opp_planes = planes(own), planes(opp)
        digits = (own_planes + 2 * opp_planes).to(torch.float32)
        # Exact in single precision, because all numbers are below 2**24, but not in lower precision.
        with torch.autocast(own.device.type, enabled=False):
            states = (digits @ digit_weights).to(torch.int64)
        playable, first = Rules(size).playable, patterns_of(size).weight_count
        own_moves, opp_moves = (bit_counts(legal_moves(*sides, playable)) for sides in ((own, opp), (opp, own)))
        empties = size**2 - own_planes.sum(-1) - opp_planes.sum(-1)
        counts = [own_moves + first, opp_moves + (first + COUNTS)]
        counts += [empties + (first + 2 * COUNTS)] * bool(cls.empties_rows)
        rows = torch.cat([tied[states + offsets], torch.stack(counts, dim=-1).to(torch.int32)], dim=-1)
        return rows, empties

    @classmethod
    def feature_array(
        cls, size: int, own: np.ndarray, opp: np.ndarray, device: torch.device, threads: int
    ) -> np.ndarray | Tensor:
        if device.type != "cpu":
            return super().feature_array(size, own, opp, device, threads)
        rules, patterns = Rules(size), patterns_of(size)
        instances = len(patterns.instances)
        rows = np.empty((len(own), instances + 2 + bool(cls.empties_rows)), np.int32)

        def run(start: int) -> None:
            some = slice(start, start + CHUNK)
            write_rows(
                *(rules.square_count, np.uint64(rules.playable), own[some], opp[some]),
                *(digit_table(size), patterns.search_weight_index, patterns.weight_count, instances, rows[some]),
            )

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(run, range(0, len(own), CHUNK)))
        return rows


@lru_cache
def _tables(size: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Return on the device: the first state of each instance, the weights of digits in states, and the row of each state."""
    import torch

    patterns = patterns_of(size)
    offsets = np.array([patterns.offsets[pattern] for pattern, _ in patterns.instances], np.int64)
    first, digit_weights, tied = (
        torch.from_numpy(table).to(device) for table in (offsets, patterns.digit_weights, patterns.weight_index)
    )
    return first, digit_weights, tied
