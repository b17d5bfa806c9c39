"""Optimisers that ask for candidates and are told their losses, all over the cube from -1 to 1.

Both are seeded and otherwise decided by the losses alone, so that a run can be repeated from its log of losses: that is how
it is resumed, with no state of a library written to a file. (DEAP's operators draw from Python's one global generator, which
anybody may use in between; pymoo's do not.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env.errors import extra_libraries

Points = NDArray[np.float64]
#: Step at the beginning, as a share of half the cube's edge.
FIRST_STEP = 0.5


class Optimiser(ABC):
    """Looks for the point with the least loss."""

    @abstractmethod
    def ask(self) -> Points:
        """The next points to be judged, one a row."""

    @abstractmethod
    def tell(self, losses: NDArray[np.float64]) -> None:
        """Their losses."""

    def favourite(self) -> Points | None:
        """A point that it believes in more than in the best one judged; None without such a belief."""
        return None


class Genetic(Optimiser):
    """A genetic algorithm that keeps its elite, by pymoo: parents and offspring compete for the next generation together.

    That is what report 002 calls a strengthened elitist genetic algorithm. Simulated binary crossover, polynomial mutation.
    """

    def __init__(self, size: int, population: int, seed: int, start: Points | None = None) -> None:
        with extra_libraries():
            from pymoo.algorithms.soo.nonconvex.ga import GA
            from pymoo.core.problem import Problem
            from pymoo.core.termination import NoTermination
        first = np.random.default_rng((seed, 1)).uniform(-1, 1, (population, size))
        if start is not None:
            first[0] = start
        self._problem = Problem(n_var=size, n_obj=1, xl=-1.0, xu=1.0)
        self._algorithm = GA(pop_size=population, sampling=first)
        self._algorithm.setup(self._problem, termination=NoTermination(), seed=seed, verbose=False)
        self._asked: Any = None

    def ask(self) -> Points:
        """The next generation."""
        self._asked = self._algorithm.ask()
        return np.array(self._asked.get("X"), np.float64)

    def tell(self, losses: NDArray[np.float64]) -> None:
        """Let the fittest survive."""
        from pymoo.core.evaluator import Evaluator
        from pymoo.problems.static import StaticProblem

        Evaluator().eval(StaticProblem(self._problem, F=losses[:, None]), self._asked)
        self._algorithm.tell(infills=self._asked)


class CmaEs(Optimiser):
    """Covariance matrix adaptation, by the library `cma`: a cloud of candidates that learns its own shape."""

    def __init__(self, size: int, population: int, seed: int, start: Points | None = None) -> None:
        with extra_libraries():
            import cma
        self._lone = size == 1  # the library wants two dimensions or more: a second one that nothing depends on
        begin = start if start is not None else np.random.default_rng((seed, 1)).uniform(-1, 1, size)
        begin = np.append(begin, 0.0) if self._lone else begin
        # The library would seed numpy's global generator and draw from that, as anybody may in between.
        draws = np.random.RandomState((seed + 1) % (1 << 32)).randn
        options = {
            "bounds": [-1, 1],
            "seed": np.nan,
            "randn": draws,
            "popsize": population,
            "verbose": -9,
            "verb_log": 0,
        }
        self._strategy = cma.CMAEvolutionStrategy(begin, FIRST_STEP, options)
        self._asked: list[Points] = []

    def ask(self) -> Points:
        """Draws from the cloud."""
        self._asked = self._strategy.ask()
        return self._seen(np.array(self._asked, np.float64))

    def tell(self, losses: NDArray[np.float64]) -> None:
        """Move and reshape the cloud."""
        self._strategy.tell(self._asked, losses.tolist())

    def favourite(self) -> Points | None:
        """The middle of the cloud, which no single lucky draw can move far."""
        return self._seen(np.array(self._strategy.result.xfavorite, np.float64))

    def _seen(self, points: Points) -> Points:
        return points[..., :1] if self._lone else points


#: Made of the number of dimensions, of candidates, a seed and, where the first ones are not random, the point about which they lie.
OPTIMISERS: Mapping[str, Callable[..., Optimiser]] = {"genetic": Genetic, "cma": CmaEs}
