"""The forward pass of a linear `PatternNet` inside the search: table look-ups, no torch.

The weights are whole numbers, `UNITS` to a disc, in one block of memory whose address the record holds. One phase is a
row: the states of all patterns, then `COUNTS` weights each for the number of own moves and of the opponent's moves. A
last row has the constant for each number of empty squares.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from models.core.incremental_states import refresh_accumulator, update_accumulator, update_for_value
from models.core.pattern_states import states_on_stack
from models.core.pattern_sum import load_weight, pattern_sum
from reversi_env.core.bitboard import legal_moves
from reversi_env.core.intrinsics import popcount
from search.core.accumulator import IncrementalEvaluator, register_incremental
from search.core.evaluate import evaluator

#: Value of one disc.
UNITS = 128
#: Weights for a number of moves; no board has more than 35.
COUNTS = 40

PATTERN_NET = np.dtype(
    [
        ("pattern_weights", np.int64),  # address of the int16 weights
        ("digits", np.int64),  # address of `digit_table`
        ("row", np.int64),  # weights of one phase
        ("states", np.int64),  # those of patterns among them
        ("phases", np.int64),
        ("empties_a_phase", np.int64),
        ("squares", np.int64),
        ("playable", np.uint64),
        ("limit", np.float64),  # no value is larger, in discs
    ],
    align=True,
)


@register_jitable
def _value_of(net, accumulator, empties, own, opp, moves):
    """Value of the position with the states in *accumulator* and those legal *moves*, in discs for the side to move."""
    phase = min(empties // net.empties_a_phase, net.phases - 1)  # a board emptier than the start has the first weights
    weights = net.pattern_weights + 2 * phase * net.row
    if net.squares == 64:
        total = pattern_sum(8, accumulator, weights)
    elif net.squares == 36:
        total = pattern_sum(6, accumulator, weights)
    else:
        total = pattern_sum(4, accumulator, weights)
    total += load_weight(weights, net.states + popcount(moves))
    total += load_weight(weights, net.states + COUNTS + popcount(legal_moves(opp, own, net.playable)))
    total += load_weight(net.pattern_weights, net.phases * net.row + empties)
    return min(max(total / UNITS, -net.limit), net.limit)


register_incremental(
    PATTERN_NET, IncrementalEvaluator(refresh_accumulator, update_accumulator, update_for_value, _value_of)
)


@evaluator(PATTERN_NET)
def pattern_value(net, own, opp):
    """Value of the position in discs for the side to move."""
    moves = legal_moves(own, opp, net.playable)
    empties = net.squares - popcount(own | opp)
    return _value_of(net, states_on_stack(own, opp, net.digits), empties, own, opp, moves)
