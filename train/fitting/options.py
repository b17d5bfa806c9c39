"""`FitOptions`: everything that decides how a network is fitted to its labels, and good values for each game."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from reversi_env.errors import shown
from reversi_env.rules import Variant
from train.errors import TrainError

Loss = Literal["plain", "structural"]
LOSSES = ("plain", "structural")
#: A batch that is not given is a power of two: so many steps an epoch, within these sizes.
STEPS, SMALLEST, LARGEST = 100, 1 << 8, 1 << 14


@dataclass(frozen=True)
class FitOptions:
    """How to fit.

    * ``epochs``, ``batch``: times that every position is seen, and positions a step (None: about a hundredth of them,
      from 256 to 16384).
    * ``rate``: Adam's step in discs at the beginning; it falls to zero along a cosine.
    * ``decay``: decoupled weight decay a step, as a multiple of the rate.
    * ``blur``: while training, a position counts for the phases of up to so many more or fewer empties, drawn anew every
      epoch, so that neighbouring phases learn from each other. It ends with the first ``blurred`` share of the epochs.
    * ``bend``: errors beyond so many discs count linearly, not squared (Huber).
    * ``held_out``: share of the positions that is kept for validation.
    * ``patience``: epochs without a better validation error after which to stop; the best weights are kept.
    * ``seed``: order of the positions, the blur and the symmetries.
    * ``loss``: ``plain`` counts the error of each labelled position. ``structural`` counts the errors of all nodes of the
      tree of ``plies`` below it too, and how far each node is from its best child.
    * ``ply_weight``: in the structural loss, the error of a node counts so many times that of a node one ply above.
    * ``consistency``: in the structural loss, the distance of an inner node from its best child counts so many times
      the error at the root.
    * ``augment``: a network that is not symmetric by itself, as `DenseNet`, sees every position under one of the eight
      symmetries, drawn anew every epoch. To a network over patterns it makes no difference: the weights of a pattern are
      shared by all its images (`models.core.patterns`), so that a position and its images are one and the same.
    """

    epochs: int = 20
    batch: int | None = None
    rate: float = 0.03
    decay: float = 0.01
    blur: float = 2.0
    blurred: float = 0.7
    bend: float = 8.0
    held_out: float = 0.05
    patience: int = 6
    seed: int = 0
    loss: Loss = "plain"
    plies: int = 1
    ply_weight: float = 1.0
    consistency: float = 0.5
    augment: bool = True

    def __post_init__(self) -> None:
        for name, least, most in _WHOLE:
            value = getattr(self, name)
            if name == "batch" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise TrainError(f"{name}={shown(value)}: expected a whole number from {least} to {most}")
        for name, least_number, most_number in _NUMBERS:
            value = getattr(self, name)
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            if not is_number or not least_number <= value <= most_number:
                raise TrainError(f"{name}={shown(value)}: expected a number from {least_number:g} to {most_number:g}")
        if not isinstance(self.augment, bool):
            raise TrainError(f"augment={shown(self.augment)}: expected True or False")
        if self.loss not in LOSSES:
            raise TrainError(f"loss={shown(self.loss)}: expected one of {', '.join(LOSSES)}")

    def batch_of(self, positions: int) -> int:
        """Positions a step, for so many of them."""
        if self.batch is not None:
            return self.batch
        wanted = 2 ** round(math.log2(max(1, positions / STEPS)))
        return min(max(wanted, SMALLEST), LARGEST)

    def rate_at(self, step: int, steps: int) -> float:
        """Adam's step at *step* of *steps*, counted from 0."""
        return self.rate * (1 + math.cos(math.pi * step / steps)) / 2

    def blur_of(self, epoch: int) -> float:
        """The blur in empties of an epoch, counted from 1."""
        return self.blur if epoch <= self.blurred * self.epochs else 0.0

    def as_dict(self) -> dict[str, Any]:
        """The options as JSON has them."""
        return asdict(self)


_WHOLE = (("epochs", 1, 10_000), ("batch", 1, 1 << 24), ("patience", 1, 10_000), ("seed", 0, 2**53), ("plies", 1, 3))
_NUMBERS = (
    *(("rate", 1e-9, 10.0), ("decay", 0.0, 100.0), ("blur", 0.0, 30.0), ("blurred", 0.0, 1.0), ("bend", 1e-3, 1e3)),
    *(("held_out", 0.0, 0.5), ("ply_weight", 0.0, 100.0), ("consistency", 0.0, 100.0)),
)


def preset(size: int, variant: Variant = "normal", network: str = "linear", **changes: Any) -> FitOptions:
    """Options that did well for a game, with *changes*. Both variants like the same: the patterns are the same."""
    known: dict[str, Any] = {"epochs": 40, "rate": 0.05, "patience": 15} if size == 4 else {}
    if network == "dense":
        known = {"epochs": 30, "batch": 1 << 10, "decay": 0.001}
    if network == "deep":
        known = {"epochs": 8, "rate": 0.005, "decay": 0.3, "blur": 2.0, "bend": 12.0}
        if size == 4:
            known |= {"epochs": 40, "patience": 15, "decay": 0.1}
    return FitOptions(**{**known, **changes})
