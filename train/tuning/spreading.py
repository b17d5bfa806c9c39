"""An objective whose candidates are judged by other processes or machines: one candidate, one job.

A candidate's loss depends on the candidate, the objective and the round alone, so it does not matter who else is judged with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules
from search import evaluators
from search.formulas import Formula
from train.cluster import Executor, WorkerPool, in_order
from train.tuning.objectives import LabelError, Objective, WinRate

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


class SpreadObjective:
    """An objective, judged by a pool for as long as *stack* is open."""

    def __init__(self, plain: WinRate | LabelError, executor: Executor, threads: int, stack: ExitStack) -> None:
        self.plain = plain
        self._executor, self._threads, self._stack = executor, threads, stack
        self._pool: WorkerPool | None = None

    @property
    def rules(self) -> Rules:
        """The game."""
        return self.plain.rules

    def losses(self, candidates: Sequence[Formula], number: int = 0) -> NDArray[np.float64]:
        """One loss a candidate, in the round of that number."""
        jobs = ((place, number, packed(candidate)) for place, candidate in enumerate(candidates))
        return np.array(list(in_order(self._hired().results(jobs))), np.float64)

    def checked(self) -> SpreadObjective:
        """The same on games or positions of its own."""
        return SpreadObjective(self.plain.checked(), self._executor, self._threads, self._stack)

    def described(self) -> dict[str, Any]:
        """What decides the losses, as JSON has it."""
        return self.plain.described()

    def _hired(self) -> WorkerPool:
        if self._pool is None:
            if isinstance(self.plain, LabelError):
                self.plain.truth()  # solved once and sent along, not once in every worker
            objective = replace(self.plain, threads=self._threads)
            self._pool = self._stack.enter_context(self._executor.workers(Judge, objective, cpus=self._threads))
        return self._pool


@contextmanager
def spread(
    objective: WinRate | LabelError, executor: Executor | None, threads: int | None = None
) -> Iterator[WinRate | LabelError | SpreadObjective]:
    """The objective, judged by an executor's workers with so many threads each, by default one; without one, as it is."""
    if executor is None:
        yield objective
        return
    with ExitStack() as stack:
        yield SpreadObjective(objective, executor, threads or 1, stack)
