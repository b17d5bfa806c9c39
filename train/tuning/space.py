"""`Space`: the weights of a formula that are tuned, and their bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env.errors import TrainError, did_you_mean, quoted
from search import evaluators
from search.evaluators.base import WEIGHTS_SEPARATOR
from search.evaluators.formula import Formula

#: The weights that the reports chose by hand or by search, with their bounds: the table of 002 is normalised, γ is a share, and
#: other weights may have either sign.
PUBLISHED: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "position-stability": {"gamma": (0.0, 1.0)},
    "six-factor": {
        "table_weight": (-100.0, 100.0),
        "piece_weight": (-1000.0, 1000.0),
        "frontier_weight": (-1000.0, 1000.0),
        "corner_weight": (-1000.0, 1000.0),
        "closeness_weight": (-1000.0, 1000.0),
        "mobility_weight": (-1000.0, 1000.0),
    },
    "ten-weight": {"table": (-1.0, 1.0)},
    "sixteen-weight": {"table": (-1.0, 1.0), "early": (-1.0, 1.0), "late": (-1.0, 1.0)},
    "four-attribute": {
        "ply": (1.0, 16.0),
        "mobility_weight": (-100.0, 100.0),
        "corner_weight": (-1000.0, 1000.0),
        "stability_weight": (-20.0, 20.0),
    },
    "cell-utility": {"utility_weight": (-1.0, 1.0), "parity_weight": (-50.0, 50.0), "mobility_weight": (-50.0, 50.0)},
}
#: Bound of other weights, as a multiple of the largest of their group.
BOUND_FACTOR = 2.0


@dataclass(frozen=True, eq=False)
class Space:
    """A formula, the names of the tuned weights, their indices in its vector, and the bounds of each number.

    Optimisers work in the cube from -1 to 1: `evaluator` makes a formula from a point.
    """

    formula: Formula
    varied: tuple[str, ...]
    places: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def size(self) -> int:
        return self.low.size

    def evaluator(self, point: ArrayLike) -> Formula:
        """Return the formula with the weights of a point, which is clipped to the cube."""
        vector, share = self.formula.weight_vector(), (np.clip(np.asarray(point, np.float64), -1, 1) + 1) / 2
        vector[self.places] = self.low + share * (self.high - self.low)
        return self.formula.with_weight_vector(vector)

    def point(self, evaluator: Formula) -> NDArray[np.float64]:
        """Return the point of the cube with an evaluator's weights, or the nearest one."""
        weights = evaluator.weight_vector()[self.places]
        return np.clip(2 * (weights - self.low) / (self.high - self.low) - 1, -1, 1)


def space_of(formula: str, varied: Sequence[str] | None = None) -> Space:
    """Return the space of the weights *varied*, by default those of the report."""
    if formula.partition(WEIGHTS_SEPARATOR)[0] not in evaluators.formulas():
        raise TrainError(
            f"evaluator {quoted(formula)}: expected a formula with weights, {', '.join(evaluators.formulas())}"
        )
    evaluator = evaluators.get_formula(formula)
    published = PUBLISHED.get(evaluator.family, {})
    chosen = tuple(varied) if varied is not None else tuple(published) or tuple(evaluator.weights)
    if not chosen:
        raise TrainError(f"no weights of {formula} to vary: expected some of {', '.join(evaluator.weights)}")
    ends = np.cumsum([np.size(weight) for weight in evaluator.weights.values()])
    last = dict(zip(evaluator.weights, ends.tolist(), strict=True))
    places: list[int] = []
    low, high = [], []
    for name in chosen:
        if chosen.count(name) > 1:
            raise TrainError(f"weight {quoted(name)} of {formula} is named {chosen.count(name)} times: expected once")
        if name not in evaluator.weights:
            raise TrainError(
                f"weight {quoted(name)} of {formula} cannot vary{did_you_mean(name, evaluator.weights)}: "
                f"expected some of {', '.join(evaluator.weights)}"
            )
        values = np.atleast_1d(evaluator.weights[name])
        bound = BOUND_FACTOR * max(float(np.abs(values).max()), 0.5)
        bottom, top = published.get(name, (-bound, bound))
        places += range(last[name] - values.size, last[name])
        low += [bottom] * values.size
        high += [top] * values.size
    return Space(evaluator, chosen, np.array(places), np.array(low), np.array(high))
