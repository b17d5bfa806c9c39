"""Optimisers over the cube from -1 to 1, with the interface ask and tell.

They depend on the seed and the losses alone, so that a run is resumed by repeating it on the losses of its log, without the state
of a library. (DEAP's operators use Python's global random generator; pymoo's do not.)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env.errors import extra_libraries

Points = NDArray[np.float64]
#: Initial standard deviation of CMA-ES.
FIRST_STEP = 0.5


class Optimiser(ABC):
    """Searches for the point with the smallest loss."""

    @abstractmethod
    def ask(self) -> Points:
        """Return the next points to evaluate, one per row."""

    @abstractmethod
    def tell(self, losses: NDArray[np.float64]) -> None:
        """Take the losses of these points."""

    def favourite(self) -> Points | None:
        """Return a point that may be better than the best evaluated one, None if there is none."""
        return None


class Genetic(Optimiser):
    """The elitist genetic algorithm of report 002, by pymoo: simulated binary crossover, polynomial mutation."""

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
        self._asked = self._algorithm.ask()
        return np.array(self._asked.get("X"), np.float64)

    def tell(self, losses: NDArray[np.float64]) -> None:
        """Select the next parents among parents and offspring."""
        from pymoo.core.evaluator import Evaluator
        from pymoo.problems.static import StaticProblem

        Evaluator().eval(StaticProblem(self._problem, F=losses[:, None]), self._asked)
        self._algorithm.tell(infills=self._asked)


class CmaEs(Optimiser):
    """Covariance matrix adaptation evolution strategy, by the library `cma`."""

    def __init__(self, size: int, population: int, seed: int, start: Points | None = None) -> None:
        with extra_libraries():
            import cma
        self._has_dummy = size == 1  # the library needs two dimensions or more: the second one has no effect
        first = start if start is not None else np.random.default_rng((seed, 1)).uniform(-1, 1, size)
        first = np.append(first, 0.0) if self._has_dummy else first
        # By default, the library uses numpy's global generator.
        randn = np.random.RandomState((seed + 1) % (1 << 32)).randn
        options = {"bounds": [-1, 1], "seed": np.nan, "randn": randn, "popsize": population}
        self._strategy = cma.CMAEvolutionStrategy(first, FIRST_STEP, options | {"verbose": -9, "verb_log": 0})
        self._asked: list[Points] = []

    def ask(self) -> Points:
        self._asked = self._strategy.ask()
        return self._without_dummy(np.array(self._asked, np.float64))

    def tell(self, losses: NDArray[np.float64]) -> None:
        self._strategy.tell(self._asked, losses.tolist())

    def favourite(self) -> Points | None:
        """Return the mean of the distribution, which a single sample hardly changes."""
        return self._without_dummy(np.array(self._strategy.result.xfavorite, np.float64))

    def _without_dummy(self, points: Points) -> Points:
        return points[..., :1] if self._has_dummy else points


#: Optimisers by name, made from the numbers of dimensions and candidates, a seed, and the start point, None for a random one.
OPTIMISERS: Mapping[str, Callable[..., Optimiser]] = {"genetic": Genetic, "cma": CmaEs}
