"""Metrics of a run for other programs: the numbers of a row by name, and a line of text."""

import re
from collections.abc import Mapping
from typing import Any

from train.alphazero.options import SelfPlayOptions


def scalars(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a row of metrics, points against baselines as ``points/network-depth-2``; None is left out.

    >>> scalars({"error": 3.5, "elo": None, "points": {"network:depth=2": 0.5}})
    {'error': 3.5, 'points/network-depth-2': 0.5}
    """
    points = {f"points/{re.sub('[^0-9a-z]+', '-', name)}": value for name, value in row.get("points", {}).items()}
    return {name: value for name, value in {**row, **points}.items() if isinstance(value, (int, float))}


def line(metrics: Mapping[str, float], options: SelfPlayOptions) -> str:
    """Return the metrics of a row as a line of a log, by their names in ``log.csv``."""
    values = dict(metrics)
    if "generation" in values:
        stage = f"generation {values.pop('generation') + 1}/{options.generations}"
    else:
        stage = f"final steps {values.pop('last_steps')}/{options.final_steps}"
    return f"{stage}: " + ", ".join(f"{name} {value:g}" for name, value in values.items())
