"""Multi-ProbCut as data: which shallow search foretells which deep one, and how well, for one evaluator and game."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np

from reversi_env import ReversiError
from search.core.midgame import ENGINE, UNIT

#: Deep search to the shallow one that foretells it; of equal parity, since evaluations swing with the side to move.
DEPTH_PAIRS = {3: 1, 4: 2, 5: 1, 6: 2, 7: 3, 8: 4, 9: 3, 10: 4, 11: 5, 12: 6}
#: Deepest search that is foretold.
DEEPEST = 24
#: A shallow search that a deep one follows less than this tells nothing.
LEAST_SLOPE = 0.1
#: Standard deviations of safety, and the most that make sense.
MARGIN, WIDEST_MARGIN = 1.5, 10
#: What the engine's record has of all this.
CUT_FIELDS = ("cut_depth", "cut_slope", "cut_shift", "cut_deviation")


@dataclass(frozen=True)
class Pair:
    """deep = slope * shallow + shift, give or take *deviation* (one standard deviation); values in discs."""

    deep: int
    shallow: int
    slope: float
    shift: float
    deviation: float
    positions: int


def coefficients(pairs: list[Pair]) -> np.ndarray:
    """The engine's record fields for these pairs, for `Engine.set_probcut`."""
    record = np.zeros((), ENGINE)
    record["cut_slope"] = 1.0
    for pair in [*pairs, *_beyond(pairs)]:
        record["cut_depth"][pair.deep] = pair.shallow
        record["cut_slope"][pair.deep] = pair.slope
        record["cut_shift"][pair.deep] = pair.shift * UNIT
        record["cut_deviation"][pair.deep] = pair.deviation * UNIT
    return record


def as_table(pairs: list[Pair]) -> list[dict[str, float]]:
    """The pairs as plain data, for a file."""
    return [asdict(pair) for pair in pairs]


def from_table(table: list[dict[str, float]]) -> list[Pair]:
    """The inverse of `as_table`."""
    try:
        pairs = [Pair(**entry) for entry in table]  # type: ignore[arg-type]
        wrong = next((pair for pair in pairs if not _is_sensible(pair)), None)
    except TypeError as error:
        raise ReversiError(f"ProbCut coefficients: {error}") from None
    if wrong is not None:
        raise ReversiError(
            f"ProbCut coefficients {wrong}: expected 0 < shallow < deep <= {DEEPEST}, a slope of {LEAST_SLOPE} or more and a "
            f"deviation above 0"
        )
    return pairs


def _is_sensible(pair: Pair) -> bool:
    return (
        0 < pair.shallow < pair.deep <= DEEPEST
        and pair.slope >= LEAST_SLOPE
        and bool(np.isfinite([pair.slope, pair.shift, pair.deviation]).all())
        and pair.deviation > 0
    )


def _beyond(pairs: list[Pair]) -> list[Pair]:
    """Pairs deeper than those measured: as well foretold as the deepest of their parity, by a search as much shallower."""
    found = []
    for parity in (0, 1):
        measured = [pair for pair in pairs if pair.deep % 2 == parity]
        if measured:
            deepest = max(measured, key=lambda pair: pair.deep)
            less = deepest.deep - deepest.shallow
            found += [
                replace(deepest, deep=deep, shallow=deep - less) for deep in range(deepest.deep + 2, DEEPEST + 1, 2)
            ]
    return found
