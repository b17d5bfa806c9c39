"""What makes values in units of their own comparable with discs: heuristics count in points, and are compared in discs."""

from __future__ import annotations

import numpy as np


def least_squares_scale(values: np.ndarray, scores: np.ndarray) -> float:
    """The number that, times *values*, comes nearest to *scores*.

    >>> least_squares_scale(np.array([10.0, -20.0]), np.array([1.0, -2.0]))
    0.1
    """
    return float(values @ scores / max(values @ values, np.finfo(float).tiny))
