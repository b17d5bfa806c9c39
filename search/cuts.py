"""Multi-ProbCut as data: which shallow search foretells which deep one, and how well, for one evaluator and game.

A search to a depth is foretold by one half as deep, one of two plies by the evaluation alone, and a search to the end of the game
by one of a few plies. The `LADDER` has the steps of sureness in which the end is searched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reversi_env import ReversiError, Rules
from reversi_env.errors import quoted
from search.core.endgame import EXACT, SCOUT_EMPTIES
from search.core.midgame import STATIC_DEPTH, UNIT
from search.core.work import WORK

if TYPE_CHECKING:
    from search.evaluators import Evaluator

#: Shallowest and deepest search that is foretold by another one.
SHALLOWEST, DEEPEST = 3, 24
#: A shallow search that a deep one follows less than this tells nothing.
LEAST_SLOPE = 0.1
#: Standard deviations of safety, and the most that make sense.
MARGIN, WIDEST_MARGIN = 1.0, 10
#: Deviations in discs that make sense; beyond the positions that were measured the formula may run away.
DEVIATIONS = (0.25, 64.0)
#: Depth of a search to the end of the game, whatever the empties.
END = 64
#: What a searching thread's record has of all this.
CUT_FIELDS = ("cut_depth", "cut_slope", "cut_shift", "cut_deviation")
END_FIELDS = ("end_depth", "end_slope", "end_shift", "end_deviation")


class Step(NamedTuple):
    """A step of the ladder: its standard deviations of safety, and how sure a value is then, in percent."""

    confidence: int
    margin: float


#: How the end of the game is searched where there may be too little time for proofs: each step is surer than the one before,
#: and finds its moves in the table. The last one is exact: nothing is cut.
LADDER = (Step(73, 1.1), Step(87, 1.5), Step(95, 2.0), Step(98, 2.4), Step(99, 2.6), Step(100, 0.0))
assert len(LADDER) == EXACT + 1


def shallow_of(deep: int) -> int:
    """The search that foretells one *deep* plies deep: half as deep, and of equal parity.

    Evaluations swing with the side that moved last.
    """
    half = deep // 2
    return half - (deep - half) % 2


def scout_of(empties: int) -> int:
    """The search that foretells one to the end with so many *empties*; 0: none, the end itself is as near."""
    if empties < SCOUT_EMPTIES:
        return 0
    return 2 if empties < 16 else 4 if empties < 21 else 6


@dataclass(frozen=True)
class Pair:
    """deep value = slope * shallow value + shift, on average over so many positions; values in discs. ``deep`` may be END."""

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
    """All that ProbCut knows about an evaluator in a game; ``empties``: fewest and most of the positions measured.

    ``ends``: the same for searches to the end of the game, in weights that were measured for them.
    """

    pairs: tuple[Pair, ...]
    spread: Spread
    empties: tuple[int, int]
    ends: Cuts | None = None

    def deviation(self, pair: Pair, empties: Any) -> Any:
        """How far the deep search of *pair* lies from the foretold value, one standard deviation in discs; also for arrays."""
        return self.spread.deviation(pair.deep, pair.shallow, np.clip(empties, *self.empties))


def coefficients(cuts: Cuts) -> np.ndarray:
    """A thread's record with the fields that ProbCut reads, for `Engine.set_probcut`."""
    record = np.zeros((), WORK)
    record["cut_slope"] = record["end_slope"] = 1.0
    for pair in (*cuts.pairs, *_beyond(cuts.pairs)):
        record["cut_depth"][pair.deep] = pair.shallow
        record["cut_slope"][pair.deep] = pair.slope
        record["cut_shift"][pair.deep] = pair.shift * UNIT
        record["cut_deviation"][pair.deep] = cuts.deviation(pair, np.arange(64)) * UNIT
    at_hand = cuts.spread.deviation(STATIC_DEPTH, 0, np.clip(np.arange(64), *cuts.empties))
    record["cut_deviation"][STATIC_DEPTH] = at_hand * UNIT
    if cuts.ends is not None:
        _note_ends(record, cuts.ends)
    return record


def _note_ends(record: np.ndarray, ends: Cuts) -> None:
    pairs = {pair.shallow: pair for pair in ends.pairs}
    for empties in range(64):
        pair = pairs.get(scout_of(empties))
        if pair is not None:
            record["end_depth"][empties] = pair.shallow
            record["end_slope"][empties] = pair.slope
            record["end_shift"][empties] = pair.shift * UNIT
            record["end_deviation"][empties] = ends.deviation(pair, empties) * UNIT


def checked_margin(margin: float, known: Any = True) -> float:
    """Standard deviations of safety, 0 for no cuts at all, if they make sense; cuts need coefficients that are *known*."""
    if isinstance(margin, bool) or not isinstance(margin, (int, float, np.number)) or not 0 <= margin <= WIDEST_MARGIN:
        raise ReversiError(f"ProbCut margin {quoted(margin)}: expected a number from 0 to {WIDEST_MARGIN}")
    if margin and not known:
        raise ReversiError(
            "ProbCut needs fitted coefficients: expected weights that `reversi train --probcut` wrote, or those of "
            "search.probcut.fit"
        )
    return float(margin)


def set_cuts(works: np.ndarray, evaluator: Evaluator, rules: Rules) -> None:
    """Take the coefficients that came with the evaluator, if any did, into the threads' records."""
    table = evaluator.probcut(rules)
    if table:
        try:
            found = coefficients(from_table(table))
        except ReversiError as error:
            raise ReversiError(f"evaluator {evaluator.name!r}: {error}") from None
        for field in (*CUT_FIELDS, *END_FIELDS):
            works[field] = found[field]


def as_table(cuts: Cuts) -> dict[str, Any]:
    """The cuts as plain data, for a file."""
    table = asdict(cuts) | {"pairs": [asdict(pair) for pair in cuts.pairs], "empties": list(cuts.empties)}
    del table["ends"]
    return table if cuts.ends is None else table | {"ends": as_table(cuts.ends)}


def from_table(table: Any) -> Cuts:
    """The inverse of `as_table`; whatever else a file may hold is refused."""
    with suppress(TypeError, ValueError, LookupError, OverflowError):
        cuts = _read(table)
        if table.get("ends") is not None:
            cuts = replace(cuts, ends=_read(table["ends"]))
        if _are_sensible(cuts):
            return cuts
    raise ReversiError(
        f"ProbCut coefficients {quoted(table)}: expected those of this version; "
        f"`reversi train --probcut FILE --out FOLDER` measures them anew, whatever the file has"
    )


def _read(table: Any) -> Cuts:
    low, high = table["empties"]
    return Cuts(tuple(Pair(**entry) for entry in table["pairs"]), Spread(**table["spread"]), (low, high))


def _are_sensible(cuts: Cuts) -> bool:
    if cuts.ends is not None:
        return _fit(cuts.ends, deepest=END, least=END) and _are_sensible(replace(cuts, ends=None))
    return _fit(cuts, deepest=DEEPEST, least=0)


def _fit(cuts: Cuts, *, deepest: int, least: int) -> bool:
    """Whether all numbers make sense, for searches of at *least* and at *deepest* so many plies."""
    low, high = cuts.empties
    whole = (low, high, *(depth for pair in cuts.pairs for depth in (pair.deep, pair.shallow)))
    numbers = (*astuple(cuts.spread), *(number for pair in cuts.pairs for number in (pair.slope, pair.shift)))
    return (
        len(cuts.pairs) > 0
        and all(type(number) is int for number in whole)
        and all(math.isfinite(number) for number in numbers)
        and 0 <= low <= high <= 64
        and all(0 < pair.shallow < pair.deep <= deepest and pair.deep >= least for pair in cuts.pairs)
        and all(pair.slope >= LEAST_SLOPE and abs(pair.shift) <= 64 for pair in cuts.pairs)
    )


def _beyond(pairs: tuple[Pair, ...]) -> Iterator[Pair]:
    """Pairs deeper than those measured: on average as the deepest of their parity."""
    for parity in (0, 1):
        deepest = max((pair for pair in pairs if pair.deep % 2 == parity), key=lambda pair: pair.deep, default=None)
        if deepest is not None:
            for deep in range(deepest.deep + 2, DEEPEST + 1, 2):
                yield replace(deepest, deep=deep, shallow=shallow_of(deep))
