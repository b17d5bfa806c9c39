"""All evaluators by name, and the published heuristics among them.

**Values** are in discs for the side to move, positive if it is better for it under the rules' objective: the published
formula times its ``scale``, a number fitted for every board size, and kept inside the range of real scores (half a disc
less than all squares at most).

**Both games.** Each heuristic was written for one of them. In the other it is used in its reversed form: its value is
negated, since what is good where discs are wanted is bad where they are not. That holds for `mobility` too, though
report 002 argues against it: see ``docs/lab/evaluators.md`` for what was measured.

**Every size.** A table is ten numbers, one for each class of squares of the 8x8 board. On a smaller board a square
takes the number of the 8x8 square at the same distances from its nearest edges: the middle rows and columns are left
out, corners and their surroundings stay.

Where a report is unclear, the decision taken is written at the compiled formula in `search.kernels.heuristics`.

>>> from reversi_env import Position
>>> get_evaluator("discs").static_value(Position.initial().play("d3"))
-3.0
>>> get_formula("six-factor").with_weights(corner_weight=400).weights["corner_weight"]
400.0
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np

from reversi_env import Rules, plugins
from reversi_env.errors import did_you_mean, quoted
from search.evaluators.base import WEIGHTS_SEPARATOR, Evaluator, EvaluatorError
from search.evaluators.formula import Formula, Weights, read_formula, square_classes
from search.kernels import heuristics

# --- the registry ---------------------------------------------------------------------------------


AnyEvaluator = TypeVar("AnyEvaluator", bound=Evaluator)
_REGISTRY: dict[str, Evaluator] = {}
#: Evaluators that can be made from a file: makers that take its path, or None for the default.
_FAMILIES: dict[str, Callable[[str | None], Evaluator]] = {
    "network": cache(lambda weights: plugins.load("models.evaluator:NetworkEvaluator")(weights))
}


def register(evaluator: AnyEvaluator) -> AnyEvaluator:
    """Make *evaluator* available under its name; a name can be given once."""
    if evaluator.name in _REGISTRY or evaluator.name in _FAMILIES:
        raise EvaluatorError(f"an evaluator {evaluator.name!r} exists already: expected a new name, see Formula.named")
    _REGISTRY[evaluator.name] = evaluator
    return evaluator


def register_family(name: str, make: Callable[[str | None], Evaluator]) -> None:
    """Make evaluators available under *name* and, with weights of a file, under ``name:weights=PATH``."""
    _FAMILIES[name] = cache(make)


def _load(name: str) -> None:
    """Load the plug-in that has the evaluator of that name, if one has."""
    if name not in _REGISTRY and name not in _FAMILIES:
        plugins.load_named(name)


def names() -> tuple[str, ...]:
    """Return the names of all evaluators, in alphabetical order; those of other packages once they are loaded."""
    return tuple(sorted({*_REGISTRY, *_FAMILIES}))


def formulas() -> tuple[str, ...]:
    """Return the names of the evaluators that are a `Formula` with a few weights, and so know every game."""
    return tuple(sorted(name for name, found in _REGISTRY.items() if isinstance(found, Formula)))


def get_formula(name: str) -> Formula:
    """The formula of that name, or of ``name:weights=PATH``."""
    evaluator = get_evaluator(name)
    if not isinstance(evaluator, Formula):
        raise EvaluatorError(f"evaluator {quoted(name)} is no formula: expected one of {', '.join(formulas())}")
    return evaluator


def published() -> tuple[str, ...]:
    """The names of the heuristics that come from a report."""
    return tuple(name for name in formulas() if get_formula(name).source)


def exists(name: str) -> bool:
    """Whether there is an evaluator of that name."""
    return name in _REGISTRY or name in _FAMILIES or name in names()


def takes_weights(name: str) -> bool:
    """Whether the evaluator of that name can be had with weights of a file: every formula, and every family."""
    _load(name)
    return name in _FAMILIES or isinstance(_REGISTRY.get(name), Formula)


def get_evaluator(name: Evaluator | str) -> Evaluator:
    """The evaluator of that name, or of ``name:weights=PATH`` with a file's weights; an evaluator is given back as it is."""
    if isinstance(name, Evaluator):
        return name
    if isinstance(name, str):
        family, given, path = name.partition(WEIGHTS_SEPARATOR)
        _load(family)
        if name in _REGISTRY:
            return _REGISTRY[name]
        if path and isinstance(formula := _REGISTRY.get(family), Formula):
            return read_formula(formula, path)
        if family in _FAMILIES and (path or not given):
            return _FAMILIES[family](path or None)
    elif callable(name):
        raise EvaluatorError(
            f"evaluator {quoted(name)} is a function: expected one that @search.evaluator stands above"
        )
    raise EvaluatorError(
        f"evaluator {quoted(name)} is unknown{did_you_mean(name, dict.fromkeys(names()))}: expected one of {', '.join(names())}"
    )


# --- the published heuristics ---------------------------------------------------------------------
#
# Scales are fitted by ``studies/evaluators/scales.py``: least squares through the origin against the exact scores of 10,000
# positions with 12 empty squares (10 on the 6x6 board, 6 on 4x4) in the game that the heuristic was written for. Disc
# difference needs none: it is in discs as it stands.

#: Report 000 gives two tables; its experiments prefer the adjusted one (11 wins in 20 games against 9).
POSITION_STABILITY_ORIGINAL = (-500, 50, -1, -5, 45, -1, -1, -1, -2, -1)
POSITION_STABILITY_ADJUSTED = (-100, 25, -1, -5, 45, -1, -1, -1, -2, -1)

#: Discs on the 8x8 board up to which report 002 sees the opening, and the number of moves that it measures mobility by.
LAST_EARLY_ROUND = 24
MANY_MOVES = 12


def _normalised(weights: Weights, rules: Rules) -> dict[str, Any]:
    """The table divided by the sum of its absolute values over the board, so that values lie within ±1."""
    table = np.array(weights["table"])
    sizes = np.array([board.bit_count() for board in square_classes(rules)])
    return {"bad_to_own": table / max(float(np.abs(table) @ sizes), np.finfo(float).tiny)}


def _with_plies(weights: Weights, rules: Rules) -> Weights:
    """The weights as they are; the corners are divided by the plies, so there must be some."""
    if np.min(weights["ply"]) < 1:
        raise EvaluatorError(f"weight ply={weights['ply']} of evaluator four-attribute: expected 1 or more")
    return weights


def _two_stage(weights: Weights, rules: Rules) -> dict[str, Any]:
    """The normalised table, and each feature's own range: an average square times MANY_MOVES, and all edge squares."""
    return {
        **_normalised(weights, rules),
        "early": weights["early"],
        "late": weights["late"],
        "last_early_round": LAST_EARLY_ROUND * rules.square_count // 64,
        "mobility_unit": rules.square_count / MANY_MOVES,
        "edge_unit": 1 / (4 * (rules.size - 1)),
    }


register(
    Formula(
        "position-stability",
        "gamma·table + (1 - gamma)·stability; stability = 13.5625·(opponent's safe discs - own)",
        heuristics.POSITION_STABILITY,
        {"table": POSITION_STABILITY_ADJUSTED, "gamma": 0.7, "stable_disc": 13.5625},
        written_for="reversed",
        scale={8: 0.0399, 6: 0.0231, 4: 0.0259},
        source="report 000",
    )
)
register(
    Formula(
        "six-factor",
        "table, pieces, frontier, corners, closeness to empty corners, mobility",
        heuristics.SIX_FACTOR,
        {
            "table": (20, -3, 11, 8, -7, -4, 1, 2, 2, -3),
            "table_weight": 10,
            "piece_weight": 10,
            "frontier_weight": 74.396,
            "corner_weight": 801.724,
            "closeness_weight": 382.026,
            "mobility_weight": 78.922,
        },
        scale={8: 0.000569, 6: 0.000454, 4: 0.000237},
        source="report 001",
    )
)
register(
    Formula(
        "ten-weight",
        "a position table of ten weights, positive = bad to own",
        heuristics.TEN_WEIGHT,
        {
            "table": (
                *(0.58294678, 0.32422638, 0.30072021, 0.04949951, 0.74310493),
                *(0.26721382, 0.05133057, 0.72602844, -0.12939453, -0.73083496),
            )
        },
        written_for="reversed",
        scale={8: 47.9, 6: 32.2, 4: 21.9},
        source="report 002",
        derive=_normalised,
    )
)
register(
    Formula(
        "sixteen-weight",
        "position, table-weighted mobility and edge stability, weighted anew after round 24",
        heuristics.SIXTEEN_WEIGHT,
        {
            "table": (
                *(0.60791016, 4.04785156, 16.01070404, 5.0, 19.0),
                *(20.0, 17.9804306, 13.0, 12.8125, -18.28742981),
            ),
            "early": (1.0, 0.1, 0.2),
            "late": (0.6, 0.2, 0.2),
        },
        written_for="reversed",
        scale={8: 65.0, 6: 37.6, 4: 14.1},
        source="report 002",
        derive=_two_stage,
    )
)
register(
    Formula(
        "four-attribute",
        "ply·parity + 2·mobility + 8·corners/ply + 8·stability",
        heuristics.FOUR_ATTRIBUTE,
        {
            "ply": 4,
            "mobility_weight": 2,
            "no_move": -1000,
            "corner_weight": 8,
            "stability_weight": 8,
            "stable_disc": 3,
        },
        scale={8: 0.086, 6: 0.117, 4: 0.128},
        source="report 003",
        derive=_with_plies,
    )
)
register(
    Formula(
        "cell-utility",
        "table + relative disc difference + relative mobility",
        heuristics.CELL_UTILITY,
        {
            "table": (25, -5, 14, 10, -7, -4, 1, 3, 2, -6),
            "utility_weight": 1,
            "parity_weight": 1,
            "mobility_weight": 1,
        },
        scale={8: 0.148, 6: 0.206, 4: 0.182},
        source="report 004",
    )
)
register(Formula("discs", "disc difference", heuristics.DISCS, {"disc_weight": 1}))
register(
    Formula(
        "mobility",
        "difference of the numbers of legal moves",
        heuristics.MOBILITY,
        {"move_weight": 1},
        scale={8: 3.97, 6: 3.55, 4: 3.48},
    )
)
