"""What can be wrong with labels."""

from __future__ import annotations

from train.errors import TrainError


class LabelError(TrainError):
    """Options that make no data set, or a folder that does not hold the data set that it should."""
