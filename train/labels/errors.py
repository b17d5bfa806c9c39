"""What can be wrong with labels."""

from __future__ import annotations

from reversi_env import ReversiError


class LabelError(ReversiError):
    """Options that make no data set, or a folder that does not hold the data set that it should."""
