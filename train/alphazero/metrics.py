"""Metrics of a run for other programs: the numbers of a row by name, a line of text, and TensorBoard."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reversi_env.errors import is_installed
from train.alphazero.options import SelfPlayOptions


def scalars(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a row of metrics, those against baselines as ``points/network-depth-2``; what is None is left out.

    >>> scalars({"error": 3.5, "elo": None, "points": {"network:depth=2": 0.5}})
    {'error': 3.5, 'points/network-depth-2': 0.5}
    """
    points = {f"points/{re.sub('[^0-9a-z]+', '-', name)}": value for name, value in row.get("points", {}).items()}
    return {name: value for name, value in {**row, **points}.items() if isinstance(value, (int, float))}


def line(metrics: Mapping[str, float], options: SelfPlayOptions) -> str:
    """Return the metrics of a row as a line of a log, by their names in ``log.csv``."""
    values = dict(metrics)
    if "generation" in values:
        begun = f"generation {values.pop('generation') + 1}/{options.generations}"
    else:
        begun = f"final steps {values.pop('last_steps')}/{options.final_steps}"
    return f"{begun}: " + ", ".join(f"{name} {value:g}" for name, value in values.items())


class TensorBoard:
    """Writes metrics into a folder for TensorBoard, if that is installed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: Any = None

    def __call__(self, number: int, metrics: Mapping[str, float]) -> None:
        if not is_installed("tensorboard"):
            return
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            # From this row on, what a process wrote that was killed before its checkpoint is not shown.
            self._writer = SummaryWriter(str(self._folder), purge_step=number)
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, number)
        self._writer.flush()
