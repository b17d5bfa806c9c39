"""The published heuristics: formulas with their weights.

Each heuristic was written for one of the two games, and its value is negated in the other (measurements: docs/lab/evaluators.md).

A position table has ten numbers, one for each class of squares of the 8x8 board. On a smaller board a square has the number of the
8x8 square with the same distances to its nearest edges. `search.kernels.heuristics` has the compiled formulas.
"""

from typing import Any

import numpy as np

from reversi_env import Rules
from search.evaluators.base import EvaluatorError
from search.evaluators.formula import Formula, Weights, square_classes
from search.kernels import heuristics

#: Report 000 gives two tables; its experiments prefer the adjusted one (11 wins in 20 games against 9).
POSITION_STABILITY_ORIGINAL = (-500, 50, -1, -5, 45, -1, -1, -1, -2, -1)
POSITION_STABILITY_ADJUSTED = (-100, 25, -1, -5, 45, -1, -1, -1, -2, -1)

#: Report 002: the opening has at most this many discs on the 8x8 board; mobility is divided by this number of moves.
LAST_EARLY_ROUND = 24
MANY_MOVES = 12


def _normalised(weights: Weights, rules: Rules) -> dict[str, Any]:
    """Return the table divided by the sum of its absolute values over the board; values are then within ±1."""
    table = np.array(weights["table"])
    sizes = np.array([board.bit_count() for board in square_classes(rules)])
    return {"bad_to_own": table / max(float(np.abs(table) @ sizes), np.finfo(float).tiny)}


def _with_plies(weights: Weights, rules: Rules) -> Weights:
    if np.min(weights["ply"]) < 1:
        raise EvaluatorError(f"weight ply={weights['ply']} of evaluator four-attribute: expected 1 or more")
    return weights


def _two_stage(weights: Weights, rules: Rules) -> dict[str, Any]:
    return {
        **_normalised(weights, rules),
        "early": weights["early"],
        "late": weights["late"],
        "last_early_round": LAST_EARLY_ROUND * rules.square_count // 64,
        "mobility_unit": rules.square_count / MANY_MOVES,
        "edge_unit": 1 / (4 * (rules.size - 1)),
    }


#: Scales are fitted by least squares through the origin against the exact scores of 10,000 positions with 12 empty squares (10
#: on the 6x6 board, 6 on 4x4) in the game that the heuristic was written for (docs/lab/evaluators.md). Disc difference is in
#: discs already.
FORMULAS = (
    Formula(
        "position-stability",
        heuristics.POSITION_STABILITY,
        {"table": POSITION_STABILITY_ADJUSTED, "gamma": 0.7, "stable_disc": 13.5625},
        written_for="reversed",
        scale={8: 0.0399, 6: 0.0231, 4: 0.0259},
        source="report 000",
    ),
    Formula(
        "six-factor",
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
    ),
    Formula(
        "ten-weight",
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
    ),
    Formula(
        "sixteen-weight",
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
    ),
    Formula(
        "four-attribute",
        heuristics.FOUR_ATTRIBUTE,
        {"ply": 4, "mobility_weight": 2, "no_move": -1000, "corner_weight": 8, "stability_weight": 8, "stable_disc": 3},
        scale={8: 0.086, 6: 0.117, 4: 0.128},
        source="report 003",
        derive=_with_plies,
    ),
    Formula(
        "cell-utility",
        heuristics.CELL_UTILITY,
        {"table": (25, -5, 14, 10, -7, -4, 1, 3, 2, -6), "utility_weight": 1, "parity_weight": 1, "mobility_weight": 1},
        scale={8: 0.148, 6: 0.206, 4: 0.182},
        source="report 004",
    ),
    Formula("discs", heuristics.DISCS, {"disc_weight": 1}),
    Formula("mobility", heuristics.MOBILITY, {"move_weight": 1}, scale={8: 3.97, 6: 3.55, 4: 3.48}),
)
