"""`FitOptions`: all options of a fit, and presets for each board and network."""

import math
from dataclasses import dataclass
from typing import Any

from reversi_env.options import Options, option

#: The default batch size is a power of two with about this many steps per epoch, within these limits.
STEPS_PER_EPOCH, MIN_BATCH, MAX_BATCH = 100, 1 << 8, 1 << 14


@dataclass(frozen=True)
class FitOptions(Options):
    """How a network is fitted to its labels.

    Phase jitter: during training each position is assigned to a phase up to ``phase_jitter`` empties away, drawn again every
    epoch, so that neighbouring phases share data.
    """

    epochs: int = option(20, "Maximum number of epochs.", low=1, high=10_000)
    batch_size: int | None = option(
        None, "Batch size (default: a hundredth of the positions, 256 to 16384).", low=1, high=1 << 24
    )
    learning_rate: float = option(0.03, "Initial learning rate of AdamW; cosine decay to 0.", low=1e-9, high=10.0)
    weight_decay: float = option(0.01, "Decoupled weight decay (AdamW).", low=0.0, high=100.0)
    phase_jitter: float = option(
        2.0, "Maximum random shift, in empty squares, when a position is assigned to a phase.", low=0.0, high=30.0
    )
    jitter_share: float = option(0.7, "Share of the epochs, from the first on, with phase jitter.", low=0.0, high=1.0)
    huber_delta: float = option(8.0, "Huber delta in discs: larger errors count linearly.", low=1e-3, high=1e3)
    held_out: float = option(0.05, "Share of the positions held out for validation.", low=0.0, high=0.5)
    patience: int = option(
        6, "Early stopping: epochs without improvement; the best weights are kept.", low=1, high=10_000
    )
    seed: int = option(0, "Random seed of the batch order and the phase jitter.", low=0, high=2**53)

    def batch_size_for(self, positions: int) -> int:
        if self.batch_size is not None:
            return self.batch_size
        size = 2 ** round(math.log2(max(1, positions / STEPS_PER_EPOCH)))
        return min(max(size, MIN_BATCH), MAX_BATCH)

    def learning_rate_at(self, step: int, steps: int) -> float:
        return self.learning_rate * (1 + math.cos(math.pi * step / steps)) / 2

    def jitter_at(self, epoch: int) -> float:
        """Return the phase jitter in empties of an epoch, counted from 1."""
        return self.phase_jitter if epoch <= self.jitter_share * self.epochs else 0.0


def preset(size: int, network: str = "linear", **changes: Any) -> FitOptions:
    """Return the options for a board of that *size*, for both variants, with *changes*."""
    from models.patterns import NETWORKS  # imported late, since the help of a command reads this file

    return FitOptions(**{**NETWORKS[network].preset(size), **changes})
