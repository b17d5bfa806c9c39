"""ProbCut in the midgame: a shallow search, or the static evaluation, predicts whether a null-window search fails high or low.

The fields ``probcut_…`` of a thread's record have depths, slopes, shifts and deviations from `search.engine.probcut`.
"""

import numpy as np

from reversi_env.compiler.kernel import kernel
from search.kernels.evaluate import INFINITY
from search.kernels.ordering import empties_of, static_value

#: Screen: ProbCut is tried only if the static evaluation is this many standard deviations outside the window; else it seldom cuts.
PROBCUT_SCREEN = 0.7
#: Maximum nesting of ProbCut: a shallow search may prune by ProbCut too.
MAX_PROBCUT_NESTING = 2
#: At STATIC_DEPTH the static evaluation replaces the shallow search, since any search would cost as much as it saves. Its margin is
#: the usual one times STATIC_MARGIN_FACTOR.
STATIC_DEPTH, STATIC_MARGIN_FACTOR = 2, 1.4


@kernel
def may_probcut(thread, depth, level):
    """Return whether ProbCut may be tried. A search to the end of the game is never pruned: its values are exact."""
    return (
        level > depth
        and thread.probcut_margin > 0.0
        and thread.probcut_nesting < MAX_PROBCUT_NESTING
        and thread.probcut_depth[depth] != 0
    )


@kernel
def static_bound(thread, net, own, opp, moves, alpha, depth, rank):
    """Return ``alpha + 1`` for a predicted fail high, *alpha* for a predicted fail low, -INFINITY for no prediction.

    The static evaluation predicts the null window above *alpha*. *moves* are the legal moves, *rank* is for `static_value`.
    """
    level = empties_of(thread, own, opp)
    if level <= depth:  # a search to the end of the game is never pruned
        return -INFINITY
    static = static_value(thread, net, own, opp, moves, level, rank)
    margin = STATIC_MARGIN_FACTOR * thread.probcut_margin * thread.probcut_deviation[depth, level]
    if static >= alpha + 1 + margin:
        return alpha + 1
    return alpha if static <= alpha - margin else -INFINITY


@kernel
def probcut_side(thread, static, alpha, beta, depth, level):
    """Return on which side ProbCut may prune the node: 1 fail high, -1 fail low, 0 if the static evaluation is too close."""
    screen = PROBCUT_SCREEN * thread.probcut_deviation[depth, level]
    if static >= beta + screen:
        return 1
    return -1 if static <= alpha - screen else 0


@kernel
def probcut_window(bound, side, margin, slope, shift):
    """Return the lower end of the null window of ProbCut's shallow search.

    *side* is 1 for a predicted fail high, -1 for a fail low; *bound* is beta or alpha of the node. The node is cut if ``slope *
    shallow value + shift`` is at least *margin* units above beta, or below alpha.
    """
    threshold = np.int64((bound + side * margin - shift) / slope)
    threshold = min(max(threshold, -INFINITY + 2), INFINITY - 2)
    return threshold - 1 if side > 0 else threshold


@kernel
def probcut_trial(thread, net, own, opp, moves, alpha, depth, level, rank):
    """Return the side (0: none) and the `probcut_window` of a ProbCut trial at a node with the null window above *alpha*.

    *moves* are the legal moves, *rank* is for `static_value`.
    """
    if not may_probcut(thread, depth, level):
        return 0, alpha
    static = static_value(thread, net, own, opp, moves, level, rank)
    side = probcut_side(thread, static, alpha, alpha + 1, depth, level)
    margin = thread.probcut_margin * thread.probcut_deviation[depth, level]
    bound = alpha + 1 if side > 0 else alpha
    return side, probcut_window(bound, side, margin, thread.probcut_slope[depth], thread.probcut_shift[depth])
