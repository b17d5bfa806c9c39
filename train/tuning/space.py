"""`Space`: which weights of a formula vary, and the box in which they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env.errors import TrainError, did_you_mean, quoted
from search import evaluators
from search.evaluators.base import WEIGHTS_SEPARATOR
from search.evaluators.formula import Formula

#: What the reports chose by hand or by search, and the range of every such weight: the table of 002 is normalised, so that
#: only proportions count; γ is a share; the signs of the other weights are part of what is to be found.
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
#: Other weights vary between plus and minus so many times the largest of their group.
SPREAD = 2.0


@dataclass(frozen=True, eq=False)
class Space:
    """A formula, the names of its weights that vary, and where they are in its vector; the lowest and highest value of each number.

    Optimisers see the cube from -1 to 1: `evaluator` makes a formula of one of its points.
    """

    formula: Formula
    varied: tuple[str, ...]
    places: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def size(self) -> int:
        """Numbers that vary."""
        return self.low.size

    def evaluator(self, point: ArrayLike) -> Formula:
        """The formula with the weights of a point; beyond the cube's faces those at the face."""
        numbers, share = self.formula.weight_vector(), (np.clip(np.asarray(point, np.float64), -1, 1) + 1) / 2
        numbers[self.places] = self.low + share * (self.high - self.low)
        return self.formula.with_weight_vector(numbers)

    def point(self, evaluator: Formula) -> NDArray[np.float64]:
        """The point of the cube that has an evaluator's weights, or is nearest to it."""
        numbers = evaluator.weight_vector()[self.places]
        return np.clip(2 * (numbers - self.low) / (self.high - self.low) - 1, -1, 1)


def space_of(formula: str, varied: Sequence[str] | None = None) -> Space:
    """The space of the weights named *varied*, by default those that the report chose."""
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
            raise TrainError(f"weight {quoted(name)} of {formula} is to vary {chosen.count(name)} times: expected once")
        if name not in evaluator.weights:
            raise TrainError(
                f"weight {quoted(name)} of {formula} cannot vary{did_you_mean(name, evaluator.weights)}: "
                f"expected some of {', '.join(evaluator.weights)}"
            )
        values = np.atleast_1d(evaluator.weights[name])
        most = SPREAD * max(float(np.abs(values).max()), 0.5)
        bottom, top = published.get(name, (-most, most))
        places += range(last[name] - values.size, last[name])
        low += [bottom] * values.size
        high += [top] * values.size
    return Space(evaluator, chosen, np.array(places), np.array(low), np.array(high))
