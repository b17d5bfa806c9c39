"""Exact labels per second by the CPU and the GPU on the same positions, and equality of their scores."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from reversi_env import Rules
from reversi_env.rules import Variant
from search.engine.solver import solve_batch
from train.labels import LabelOptions
from train.labels.sampling import sample_block

Boards = tuple[np.ndarray, np.ndarray]
Solve = Callable[[np.ndarray, np.ndarray, Rules], np.ndarray]
#: Positions that each solver is timed on, by empties: a few seconds of work.
CPU_POSITIONS = {10: 100_000, 12: 40_000, 14: 6_000, 16: 800}
GPU_POSITIONS = {10: 1_000_000, 12: 1_000_000, 14: 300_000, 16: 30_000}
#: Empties of the positions that are compared one by one.
COMPARED_EMPTIES = 10


def positions(empties: int, count: int, variant: Variant = "normal") -> Boards:
    """Return positions as `reversi label` samples them: random openings, then noisy play, without duplicates."""
    return sample_block(LabelOptions(variant=variant, count=count, empties=(empties, empties), play_depth=1), 0)


def labels_per_second(solve: Solve, counts: dict[int, int]) -> dict[int, float]:
    """Return labels per second by number of empties, 8x8 normal, without compilation."""
    rates = {}
    for empties, count in counts.items():
        own, opp = positions(empties, count)
        solve(own[:64], opp[:64], Rules())
        began = perf_counter()
        solve(own, opp, Rules())
        rates[empties] = count / (perf_counter() - began)
    return rates


def compare(solve: Solve, count: int) -> dict[str, Any]:
    """Return the number of different scores of *solve* and the CPU's solver in *count* positions of each variant."""
    differing = {}
    for variant in ("normal", "reversed"):
        own, opp = positions(COMPARED_EMPTIES, count, variant)
        rules = Rules(8, variant)
        differing[variant] = int((solve(own, opp, rules) != solve_batch(own, opp, rules)).sum())
    return {"positions": count, "empties": COMPARED_EMPTIES, "differing": differing}
