"""What networks over patterns have in common: which rows of their tables a position has, and how the search finds them."""

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

#: Positions that a thread looks at at a time.
CHUNK = 1 << 14


@dataclass(frozen=True)
class PatternNetwork(Network):
    """The features of a position are the numbers of its rows within a phase.

    Those of its patterns come first, then those of the numbers of moves of both sides, and of the number of empty squares if
    the kind has ``empties_rows`` for it.
    """

    empties_rows: ClassVar[int] = 0

    @classmethod
    def row(cls, size: int) -> int:
        return patterns_of(size).weight_count + 2 * COUNTS + cls.empties_rows

    def search_record(self, dtype: np.dtype) -> np.ndarray:
        """An array of one record for the search, with the fields that those of all kinds over patterns have."""
        record = super().search_record(dtype)
        record["states"], record["squares"] = patterns_of(self.rules.size).state_count, self.rules.square_count
        return record

    def untied(self, tied: np.ndarray) -> np.ndarray:
        """Rows of every phase, those of patterns first, with one for every state of a pattern where states shared one."""
        patterns = patterns_of(self.rules.size)
        return np.take(tied, np.r_[patterns.search_weight_index, patterns.weight_count : tied.shape[1]], axis=1)

    def summary(self) -> str:
        """The architecture in a line, for people."""
        patterns = patterns_of(self.rules.size)
        return f"{self.architecture}: {len(patterns.patterns)} patterns in {len(patterns.instances)} places"

    @classmethod
    def features(cls, size: int, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """``(n, features)`` numbers of rows within a phase, int32, and the numbers of empty squares."""
        import torch

        from models.bitboards import bit_counts, legal_moves, planes

        offsets, digit_weights, tied = _tables(size, own.device)
        own_planes, opp_planes = planes(own), planes(opp)
        digits = (own_planes + 2 * opp_planes).to(torch.float32)
        # Exact in single precision: all numbers are below 2**24. (Reduced precision would not be.)
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
        """The `features` of arrays of boards, computed on the device and left there; on a CPU by a compiled kernel."""
        if device.type != "cpu":
            return super().feature_array(size, own, opp, device, threads)
        rules, patterns = Rules(size), patterns_of(size)
        instances = len(patterns.instances)
        found = np.empty((len(own), instances + 2 + bool(cls.empties_rows)), np.int32)

        def run(start: int) -> None:
            piece = slice(start, start + CHUNK)
            write_rows(
                *(rules.square_count, np.uint64(rules.playable), own[piece], opp[piece]),
                *(digit_table(size), patterns.search_weight_index, patterns.weight_count, instances, found[piece]),
            )

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(run, range(0, len(own), CHUNK)))
        return found


@lru_cache
def _tables(size: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Where each instance's states begin, what a digit adds to each instance's state, and the rows of states; on the device."""
    import torch

    patterns = patterns_of(size)
    offsets = np.array([patterns.offsets[pattern] for pattern, _ in patterns.instances], np.int64)
    first, digit_weights, tied = (
        torch.from_numpy(table).to(device) for table in (offsets, patterns.digit_weights, patterns.weight_index)
    )
    return first, digit_weights, tied
