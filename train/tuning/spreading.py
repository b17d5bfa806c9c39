"""Candidates that are judged by other processes or machines: one candidate, one job.

A candidate's loss depends on the candidate, the objective and the round alone, so it does not matter who else is judged with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from search import evaluators
from search.formulas import Formula
from train.cluster import Executor, WorkerPool, in_order
from train.tuning.objectives import LabelError, Losses, Objective, losses_here

#: A formula by name, its weights, and what one unit is worth in discs: what travels of a candidate.
Candidate = tuple[str, dict[str, Any], Any]
#: Number of the job, number of the round, who is judged.
Job = tuple[int, int, Candidate]


class Judge:
    """Judges candidates in a worker."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective

    def __call__(self, job: Job) -> tuple[int, float]:
        """The number of the job, and the loss."""
        number, turn, candidate = job
        return number, float(self._objective.losses([unpacked(candidate)], turn)[0])


def packed(evaluator: Formula) -> Candidate:
    """A candidate as it travels; its name does not matter to a loss, its formula's does."""
    scale = evaluator.scale if isinstance(evaluator.scale, (int, float)) else dict(evaluator.scale)
    return evaluator.family, dict(evaluator.weights), scale


def unpacked(candidate: Candidate) -> Formula:
    """A candidate that arrived."""
    name, weights, scale = candidate
    return replace(evaluators.formula(name).with_weights(**weights), scale=scale)


@contextmanager
def spread(executor: Executor | None, threads: int | None = None) -> Iterator[Losses]:
    """What finds losses by an executor's workers with so many threads each, by default one; without one, in this process."""
    if executor is None:
        yield losses_here
        return
    threads, pools = threads or 1, dict[Objective, WorkerPool]()
    with ExitStack() as stack:

        def losses(objective: Objective, candidates: Sequence[Formula], number: int = 0) -> NDArray[np.float64]:
            if objective not in pools:
                if isinstance(objective, LabelError):
                    objective.truth()  # solved once and sent along, not once in every worker
                workers = executor.workers(Judge, replace(objective, threads=threads), cpus=threads)
                pools[objective] = stack.enter_context(workers)
            jobs = ((place, number, packed(candidate)) for place, candidate in enumerate(candidates))
            return np.array(list(in_order(pools[objective].results(jobs))), np.float64)

        yield losses
