"""What can be wrong with a training."""

from __future__ import annotations

from reversi_env import ReversiError


class TrainError(ReversiError):
    """Options that make no training, data that do not fit them, or a folder that holds another training."""
