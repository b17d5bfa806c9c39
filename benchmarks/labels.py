"""How many exact labels a second the CPU and the GPU make, on the same positions, and whether they agree."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.search import solved_per_second
from reversi_env import Rules
from reversi_env.rules import Variant
from search.engine.solver import solve_batch
from train.labels import LabelOptions
from train.labels.sampling import sample_block

Boards = tuple[np.ndarray, np.ndarray]
Solve = Callable[[np.ndarray, np.ndarray, Rules], np.ndarray]
#: Positions that each is timed on, by empties: a few seconds' work.
CPU_POSITIONS = {10: 100_000, 12: 40_000, 14: 6_000, 16: 800}
GPU_POSITIONS = {10: 1_000_000, 12: 1_000_000, 14: 300_000, 16: 30_000}
#: Empties of the positions that are compared one by one.
COMPARED_EMPTIES = 10


def positions(empties: int, count: int, variant: Variant = "normal") -> Boards:
    """Positions as labels are made for: random beginnings of games, then noisy play, no two alike."""
    return sample_block(LabelOptions(variant=variant, count=count, empties=(empties, empties), play_depth=1), 0)


def labels_per_second(solve: Solve, counts: dict[int, int], scale: float = 1.0) -> dict[int, float]:
    """Labels a second by number of empties, 8x8 normal; kernels are compiled before."""
    sampled = {empties: positions(empties, max(64, int(count * scale))) for empties, count in counts.items()}
    return {empties: solved_per_second(solve, *boards) for empties, boards in sampled.items()}


def compare(solve: Solve, count: int) -> dict[str, Any]:
    """Whether *solve* and the CPU's solver give the same score to *count* positions of each variant."""
    differing = {}
    for variant in ("normal", "reversed"):
        own, opp = positions(COMPARED_EMPTIES, count, variant)
        rules = Rules(8, variant)
        differing[variant] = int((solve(own, opp, rules) != solve_batch(own, opp, rules)).sum())
    return {"positions": count, "empties": COMPARED_EMPTIES, "differing": differing, "threads": os.cpu_count()}
