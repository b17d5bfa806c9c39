"""Multi-ProbCut as data: which shallow search foretells which deep one, and how well, for one evaluator and game."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any

import numpy as np

from reversi_env import ReversiError
from reversi_env.errors import shown
from search.core.midgame import ENGINE, UNIT

#: Shallowest and deepest search that is foretold.
SHALLOWEST, DEEPEST = 3, 24
#: A shallow search that a deep one follows less than this tells nothing.
LEAST_SLOPE = 0.1
#: Standard deviations of safety, and the most that make sense.
MARGIN, WIDEST_MARGIN = 1.0, 10
#: Deviations in discs that make sense; beyond the positions that were measured the formula may run away.
DEVIATIONS = (0.25, 64.0)
#: What the engine's record has of all this.
CUT_FIELDS = ("cut_depth", "cut_slope", "cut_shift", "cut_deviation")


def shallow_of(deep: int) -> int:
    """The search that foretells one *deep* plies deep: half as deep, and of equal parity.

    Evaluations swing with the side that moved last.
    """
    half = deep // 2
    return half - (deep - half) % 2


@dataclass(frozen=True)
class Pair:
    """deep value = slope * shallow value + shift, on average over so many positions; values in discs."""

    deep: int
    shallow: int
    slope: float
    shift: float
    positions: int


@dataclass(frozen=True)
class Spread:
    """How far a deep value lies from what a shallow one foretells: one standard deviation in discs, as an exponential.

    It grows with the plies between the two and towards the end of the game, where every disc is at stake.
    """

    constant: float
    deep: float
    shallow: float
    empties: float
    empties_squared: float

    def deviation(self, deep: int, shallow: int, empties: Any) -> Any:
        """One standard deviation in discs; of an array of empties, an array."""
        exponent = spread_terms(deep, shallow, empties) @ np.array(astuple(self))
        return np.clip(np.exp(np.minimum(exponent, 10.0)), *DEVIATIONS)


def spread_terms(deep: int, shallow: int, empties: Any) -> np.ndarray:
    """What `Spread`'s numbers are multiplied by: ``(…, 5)`` for an array of empties."""
    e = np.asarray(empties, np.float64)
    return np.stack([np.ones_like(e), np.full_like(e, deep), np.full_like(e, shallow), e, e * e], axis=-1)


@dataclass(frozen=True)
class Cuts:
    """All that ProbCut knows about an evaluator in a game; ``empties``: fewest and most of the positions measured."""

    pairs: tuple[Pair, ...]
    spread: Spread
    empties: tuple[int, int]

    def deviation(self, pair: Pair, empties: Any) -> Any:
        """How far the deep search of *pair* lies from the foretold value, one standard deviation in discs; also for arrays."""
        return self.spread.deviation(pair.deep, pair.shallow, np.clip(empties, *self.empties))


def coefficients(cuts: Cuts) -> np.ndarray:
    """The engine's record fields, for `Engine.set_probcut`."""
    record = np.zeros((), ENGINE)
    record["cut_slope"] = 1.0
    for pair in (*cuts.pairs, *_beyond(cuts.pairs)):
        record["cut_depth"][pair.deep] = pair.shallow
        record["cut_slope"][pair.deep] = pair.slope
        record["cut_shift"][pair.deep] = pair.shift * UNIT
        record["cut_deviation"][pair.deep] = cuts.deviation(pair, np.arange(64)) * UNIT
    return record


def as_table(cuts: Cuts) -> dict[str, Any]:
    """The cuts as plain data, for a file."""
    return asdict(cuts) | {"pairs": [asdict(pair) for pair in cuts.pairs], "empties": list(cuts.empties)}


def from_table(table: Any) -> Cuts:
    """The inverse of `as_table`; whatever else a file may hold is refused."""
    with suppress(TypeError, ValueError, LookupError, OverflowError):
        low, high = table["empties"]
        cuts = Cuts(tuple(Pair(**entry) for entry in table["pairs"]), Spread(**table["spread"]), (low, high))
        if _are_sensible(cuts):
            return cuts
    raise ReversiError(
        f"ProbCut coefficients {shown(table)}: expected those of this version; "
        f"`reversi train --probcut FILE --out FOLDER` measures them anew, whatever the file has"
    )


def _are_sensible(cuts: Cuts) -> bool:
    low, high = cuts.empties
    whole = (low, high, *(depth for pair in cuts.pairs for depth in (pair.deep, pair.shallow)))
    numbers = (*astuple(cuts.spread), *(number for pair in cuts.pairs for number in (pair.slope, pair.shift)))
    return (
        len(cuts.pairs) > 0
        and all(type(number) is int for number in whole)
        and all(math.isfinite(number) for number in numbers)
        and 0 <= low <= high <= 64
        and all(0 < pair.shallow < pair.deep <= DEEPEST for pair in cuts.pairs)
        and all(pair.slope >= LEAST_SLOPE and abs(pair.shift) <= 64 for pair in cuts.pairs)
    )


def _beyond(pairs: tuple[Pair, ...]) -> Iterator[Pair]:
    """Pairs deeper than those measured: on average as the deepest of their parity."""
    for parity in (0, 1):
        deepest = max((pair for pair in pairs if pair.deep % 2 == parity), key=lambda pair: pair.deep, default=None)
        if deepest is not None:
            for deep in range(deepest.deep + 2, DEEPEST + 1, 2):
                yield replace(deepest, deep=deep, shallow=shallow_of(deep))
