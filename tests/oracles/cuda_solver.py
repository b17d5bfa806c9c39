"""Run on numba's CUDA simulator: the GPU's solver against the CPU's, and against plain minimax where that is quick.

``python -m tests.oracles.cuda_solver SIZE,VARIANT,EMPTIES,COUNT[,guesses|,tired] …`` prints a line for each: how many
scores differ, and how many positions the card left to the CPU. ``guesses`` gives a narrow first window around wrong
guesses; ``tired`` lets the card give up after a few turns.
"""

import sys

import numpy as np
import pytest

from reversi_env import ReversiError, Rules
from reversi_env.batch import random_positions
from reversi_env.gpu.driver import SIMULATED
from search.engine.solver import solve_batch
from search.gpu import endgame, solver

if SIMULATED:
    import tests.oracles.cuda_repairs  # noqa: F401 - repairs the simulator


def check_that_too_many_empties_are_refused() -> None:
    board = np.array([1], np.uint64)
    with pytest.raises(ReversiError, match="position 0 has 62 empties: expected at most 16 on a GPU"):
        solver.solve_batch_cuda(board, 2 * board)


def main(jobs: list[str]) -> None:
    check_that_too_many_empties_are_refused()
    for job in jobs:
        size, variant, empties, count, *mode = job.split(",")
        rules = Rules(int(size), variant)
        own, opp = random_positions(int(count), rules.square_count - 4 - int(empties), rules, seed=7)
        solver.TURNS_AT_TWELVE = 60 if "tired" in mode else 10**9
        guesses = (np.arange(own.size) % 41 - 20).astype(np.int8) if "guesses" in mode else None
        left_over: list[int] = []
        launch = solver._Job.launch

        def counting(self, *arguments, launch=launch, left_over=left_over):
            scores = launch(self, *arguments)
            left_over.append(int((scores == endgame.UNSOLVED).sum()))
            return scores

        solver._Job.launch = counting
        done: list[int] = []
        half_width = None if guesses is None else 5
        scores = solver.solve_batch_cuda(own, opp, rules, guesses=guesses, half_width=half_width, progress=done.append)
        solver._Job.launch = launch
        assert done[-1] == own.size
        print(int((scores != solve_batch(own, opp, rules)).sum()), sum(left_over))


if __name__ == "__main__":
    main(sys.argv[1:])
