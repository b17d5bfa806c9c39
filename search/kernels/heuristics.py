"""The published heuristics as compiled evaluators: each has one record type and one function.

A record has the weights and the properties of the board (`BOARD_FIELDS`), so that one function serves every size and both games.
`search.evaluators` fills the records. If a report is unclear or contradicts itself, the function's docstring has the decision.

All position tables are symmetric: a table has ten numbers, one for each class of squares (`CLASS_DISTANCES`), and its value takes
ten bit counts instead of 64 look-ups.
"""

from typing import Any

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, disc_difference, flips, legal_moves, neighbours
from reversi_env.kernels.frame import AXIS_MASKS, AXIS_STEPS
from reversi_env.kernels.simd import popcount, trailing_zeros
from reversi_env.kernels.stability import stable_discs
from search.kernels.evaluate import evaluator

#: The classes of squares under the eight symmetries, by their distances (smaller, larger) from the nearest two edges, in the order
#: of report 002: corner (a1), C (b1), A (c1), B (d1), X (b2), c2, d2, c3, d3, d4.
CLASS_DISTANCES = ((0, 0), (0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3))
CLASSES = len(CLASS_DISTANCES)
TABLE = (np.float64, (CLASSES,))

#: The properties of the board in a record, and the unit of its value.
BOARD_FIELDS: list[Any] = [
    ("playable", np.uint64),
    ("corners", np.uint64),
    ("edge_rows", np.uint64),  # the board's first and last row
    ("edge_columns", np.uint64),
    ("square_classes", np.uint64, (CLASSES,)),  # in the order of CLASS_DISTANCES; empty where a smaller board has none
    ("sign", np.float64),  # -1 if a heuristic of one game is used in the other
    ("scale", np.float64),  # discs for one unit of the formula
    ("limit", np.float64),  # maximum value in discs
]


def record_type(*fields: Any) -> np.dtype:
    """Return the type of a record with these fields and `BOARD_FIELDS`: names of numbers, or tuples as ``np.dtype`` takes them."""
    return np.dtype(
        [(one, np.float64) if isinstance(one, str) else one for one in (*fields, *BOARD_FIELDS)], align=True
    )


POSITION_STABILITY = record_type(("table", *TABLE), "gamma", "stable_disc")
SIX_FACTOR = record_type(
    *(("table", *TABLE), "table_weight", "piece_weight", "frontier_weight"),
    *("corner_weight", "closeness_weight", "mobility_weight"),
)
TEN_WEIGHT = record_type(("bad_to_own", *TABLE))
SIXTEEN_WEIGHT = record_type(
    ("bad_to_own", *TABLE),
    ("early", np.float64, (3,)),  # weights of position, mobility and edge stability
    ("late", np.float64, (3,)),
    ("last_early_round", np.int64),
    *("mobility_unit", "edge_unit"),
)
FOUR_ATTRIBUTE = record_type("ply", "mobility_weight", "no_move", "corner_weight", "stability_weight", "stable_disc")
CELL_UTILITY = record_type(("table", *TABLE), "utility_weight", "parity_weight", "mobility_weight")
DISCS = record_type("disc_weight")
MOBILITY = record_type("move_weight")


@kernel
def in_discs(net, raw):
    """Return the formula's value *raw* in discs, with the sign and the scale of the record, and clipped to its limit."""
    return min(max(net.sign * net.scale * raw, -net.limit), net.limit)


@kernel
def weighted_difference(own, opp, classes, weights):
    """Return the sum of the weights of the squares of *own* minus those of *opp*; *weights* are by class."""
    total = 0.0
    for i in range(CLASSES):
        total += weights[i] * (popcount(own & classes[i]) - popcount(opp & classes[i]))
    return total


@kernel
def relative_difference(mine, theirs):
    return (mine - theirs) / max(mine + theirs, 1)


@kernel
def leader_percentage(mine, theirs):
    """Return the larger number in percent of their sum, negative if it is theirs; 0 if they are equal."""
    if mine == theirs:
        return 0.0
    return 100.0 * (mine if mine > theirs else -theirs) / (mine + theirs)


@kernel
def _run_along(start, line, step):
    """Return the discs of *line* in an unbroken run from *start*, in both directions of an axis, up to seven squares."""
    twice, four_times = step + step, step << np.uint64(2)
    up = start | (line & (start << step))
    pairs = line & (line << step)
    up |= pairs & (up << twice)
    up |= pairs & (pairs << twice) & (up << four_times)
    down = start | (line & (start >> step))
    pairs = line & (line >> step)
    down |= pairs & (down >> twice)
    return up | down | (pairs & (pairs >> twice) & (down >> four_times))


@kernel
def edge_runs(net, discs):
    """Return the discs in unbroken runs along the edges from corners, which count, too: all are stable."""
    corners = discs & net.corners
    if corners == NO_SQUARES:
        return corners
    return _run_along(corners, discs & net.edge_rows, ONE) | _run_along(corners, discs & net.edge_columns, np.uint64(8))


@kernel
def flippable_discs(own, opp, opp_moves):
    """Return the own discs that one of the opponent's moves would flip."""
    flipped = NO_SQUARES
    while opp_moves != NO_SQUARES:
        flipped |= flips(trailing_zeros(opp_moves), opp, own)
        opp_moves &= opp_moves - ONE
    return flipped


@kernel
def corners_offered(net, own, opp):
    """Return the number of lines that offer the opponent an empty corner: an own disc beside it, then an opponent's disc."""
    empty_corners = net.corners & ~(own | opp)
    lines = 0
    for axis in range(4):
        step = AXIS_STEPS[axis]
        inside = own & AXIS_MASKS[axis]
        lines += popcount((empty_corners << step) & inside & (opp >> step))
        lines += popcount((empty_corners >> step) & inside & (opp << step))
    return lines


@evaluator(POSITION_STABILITY)
def position_stability(net, own, opp):
    """Report 000: ``gamma * position + (1 - gamma) * stability``, written for the reversed game.

    Decided: stability, which the report does not define, is the opponent's number of `stable_discs` minus the own number. A disc
    counts ``stable_disc`` units, by default the table's mean absolute entry, so that gamma weighs terms of similar size.
    """
    position = weighted_difference(own, opp, net.square_classes, net.table)
    burden = popcount(stable_discs(own, opp, net.playable)) - popcount(stable_discs(opp, own, net.playable))
    return in_discs(net, net.gamma * position - (1.0 - net.gamma) * net.stable_disc * burden)


@evaluator(SIX_FACTOR)
def six_factor(net, own, opp):
    """Report 001: table, pieces, frontier, corners, closeness to empty corners, mobility; written for the normal game.

    Decided: the report does not print its table; this is the one usually published with these weights.
    """
    empties = net.playable & ~(own | opp)
    beside_empty = neighbours(empties)
    beside_corner = neighbours(empties & net.corners)
    value = net.table_weight * weighted_difference(own, opp, net.square_classes, net.table)
    value += net.piece_weight * leader_percentage(popcount(own), popcount(opp))
    value -= net.frontier_weight * leader_percentage(popcount(own & beside_empty), popcount(opp & beside_empty))
    value += net.corner_weight * 25.0 * disc_difference(own & net.corners, opp & net.corners)
    value -= net.closeness_weight * 12.5 * disc_difference(own & beside_corner, opp & beside_corner)
    own_moves, opp_moves = legal_moves(own, opp, net.playable), legal_moves(opp, own, net.playable)
    return in_discs(net, value + net.mobility_weight * leader_percentage(popcount(own_moves), popcount(opp_moves)))


@evaluator(TEN_WEIGHT)
def ten_weight(net, own, opp):
    """Report 002, first model: a position table, positive = bad to own, written for the reversed game.

    Decided: it is divided by the sum of its absolute values over all squares of the board, so that values are within ±1.
    """
    return in_discs(net, -weighted_difference(own, opp, net.square_classes, net.bad_to_own))


@evaluator(SIXTEEN_WEIGHT)
def sixteen_weight(net, own, opp):
    """Report 002, second model: position, mobility and edge stability, with other weights after the opening; reversed game.

    Position is that of the first model. Mobility is the table's sum over the own moves minus that over the opponent's, in units of
    twelve moves to average squares. Edge stability counts `edge_runs`, in units of all edge squares, and is bad to own. Decided:
    the opening has up to 24 of 64 discs, and the same share of a smaller board.
    """
    own_moves, opp_moves = legal_moves(own, opp, net.playable), legal_moves(opp, own, net.playable)
    position = -weighted_difference(own, opp, net.square_classes, net.bad_to_own)
    mobility = net.mobility_unit * weighted_difference(own_moves, opp_moves, net.square_classes, net.bad_to_own)
    edges = -net.edge_unit * disc_difference(edge_runs(net, own), edge_runs(net, opp))
    stage = net.early if popcount(own | opp) <= net.last_early_round else net.late
    return in_discs(net, stage[0] * position + stage[1] * mobility + stage[2] * edges)


@evaluator(FOUR_ATTRIBUTE)
def four_attribute(net, own, opp):
    """Report 003: ``ply * parity + 2 * mobility + 8 * corners / ply + 8 * stability``, written for the normal game.

    Corners and stability are those of one side only, so the values of the two sides do not add up to 0. Decided: this is the side
    to move (the listing uses different sides in the four attributes, and multiplies mobility by the colour). A corner is offered by
    an own disc beside it with an opponent's disc behind, as in the text (the listing exchanges the colours). Stable discs are
    `edge_runs` (the listing also counts inner discs that can be flipped). The division is exact. ``ply``, the search depth of the
    original program, is a weight.
    """
    own_moves, opp_moves = legal_moves(own, opp, net.playable), legal_moves(opp, own, net.playable)
    mobility = net.no_move if own_moves == NO_SQUARES else relative_difference(popcount(own_moves), popcount(opp_moves))
    corners = popcount(own & net.corners) - corners_offered(net, own, opp)
    stability = net.stable_disc * popcount(edge_runs(net, own)) - popcount(flippable_discs(own, opp, opp_moves))
    value = net.ply * disc_difference(own, opp) + net.mobility_weight * mobility
    return in_discs(net, value + net.corner_weight * corners / net.ply + net.stability_weight * stability)


@evaluator(CELL_UTILITY)
def cell_utility(net, own, opp):
    """Report 004: table, relative disc difference and relative mobility, written for the normal game.

    Decided: the three terms are added; the report does not say how they are combined.
    """
    own_moves, opp_moves = legal_moves(own, opp, net.playable), legal_moves(opp, own, net.playable)
    value = net.utility_weight * weighted_difference(own, opp, net.square_classes, net.table)
    value += net.parity_weight * relative_difference(popcount(own), popcount(opp))
    return in_discs(net, value + net.mobility_weight * relative_difference(popcount(own_moves), popcount(opp_moves)))


@evaluator(DISCS)
def discs(net, own, opp):
    return in_discs(net, net.disc_weight * disc_difference(own, opp))


@evaluator(MOBILITY)
def mobility(net, own, opp):
    own_moves, opp_moves = legal_moves(own, opp, net.playable), legal_moves(opp, own, net.playable)
    return in_discs(net, net.move_weight * disc_difference(own_moves, opp_moves))
