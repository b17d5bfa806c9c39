"""The Gumbel search tree of one game (`models.mcts.single`), in an array of `NODE` records."""

import math

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import ONE, PASS_SQUARE, final_score, legal_moves, play
from reversi_env.kernels.simd import popcount, trailing_zeros
from search.kernels.thread_state import MAX_MOVES

#: Scale of completed Q-values relative to the prior logits: visits added to those of the most visited action, and a factor.
MAXVISIT_INIT, VALUE_SCALE = 50.0, 1.0

#: A node of the tree. ``square``, ``logit`` and ``child`` have an entry per legal action; child 0 stands for none, since node 0 is
#: the root. Values are shares of the board for the side to move. ``terminal``: the game is over, or the value is exact.
NODE = np.dtype(
    [
        ("own", np.uint64),
        ("opp", np.uint64),
        ("raw_value", np.float64),
        ("value_sum", np.float64),
        ("visits", np.int64),
        ("actions", np.int64),
        ("terminal", np.int64),
        ("logit", np.float64, (MAX_MOVES,)),
        ("child", np.int32, (MAX_MOVES,)),
        ("square", np.uint8, (MAX_MOVES,)),
    ],
    align=True,
)


@kernel
def set_position(tree, node, own, opp, playable, sign):
    """Write boards and legal actions of a new node, and the value of a finished game; *sign* is -1 in the reversed game."""
    row = tree[node]
    row.own, row.opp = own, opp
    moves, actions = legal_moves(own, opp, playable), 0
    while moves:
        row.square[actions] = trailing_zeros(moves)
        moves &= moves - ONE
        actions += 1
    if actions == 0 and legal_moves(opp, own, playable):
        row.square[0] = PASS_SQUARE
        actions = 1
    row.actions = actions
    if actions == 0:
        row.terminal = 1
        row.raw_value = sign * final_score(own, opp, playable) / popcount(playable)


@kernel
def set_outputs(tree, nodes, outputs, playable):
    """Write the network's *outputs* into nodes: logits of all squares, ``(n, squares + 1)``, and last a value in discs."""
    squares = popcount(playable)
    for i in range(nodes.size):
        row = tree[nodes[i]]
        row.raw_value = outputs[i, squares] / squares
        for k in range(row.actions):
            sq = row.square[k]
            row.logit[k] = 0.0 if sq == PASS_SQUARE else outputs[i, popcount(playable & ((ONE << np.uint64(sq)) - ONE))]


@kernel
def completed_values(tree, node, values):
    """Write the values of a node's actions, the mixed value for unvisited ones; return the sum and the maximum of their visits."""
    row = tree[node]
    max_logit = row.logit[0]
    for k in range(1, row.actions):
        max_logit = max(max_logit, row.logit[k])
    visit_sum, max_visits, prior_sum, weighted_sum = 0, 0, 0.0, 0.0
    for k in range(row.actions):
        if row.child[k]:
            child = tree[row.child[k]]
            values[k] = -child.value_sum / child.visits
            prior = math.exp(row.logit[k] - max_logit)
            prior_sum += prior
            weighted_sum += prior * values[k]
            visit_sum += child.visits
            max_visits = max(max_visits, child.visits)
    mixed_value = row.raw_value
    if prior_sum > 0:
        mixed_value = (row.raw_value + visit_sum * (weighted_sum / prior_sum)) / (1 + visit_sum)
    for k in range(row.actions):
        if not row.child[k]:
            values[k] = mixed_value
    return visit_sum, max_visits


@kernel
def _interior_action(tree, node, scores):
    """Return the action that brings the visits nearest to the improved policy."""
    row = tree[node]
    visit_sum, max_visits = completed_values(tree, node, scores)
    highest, total = -np.inf, 0.0
    for k in range(row.actions):
        scores[k] = row.logit[k] + (max_visits + MAXVISIT_INIT) * VALUE_SCALE * scores[k]
        highest = max(highest, scores[k])
    for k in range(row.actions):
        scores[k] = math.exp(scores[k] - highest)
        total += scores[k]
    best, best_score = 0, -np.inf
    for k in range(row.actions):
        visits = tree[row.child[k]].visits if row.child[k] else 0
        score = scores[k] / total - visits / (1 + visit_sum)
        if score > best_score:
            best, best_score = k, score
    return best


@kernel
def choose_considered(tree, gumbel, visits, chosen):
    """Write the best root actions with that many *visits*, in the order in which single simulations would choose them.

    After the first simulation one action has one visit more, which raises the weight of the values in later choices.
    """
    row, values = tree[0], np.empty(MAX_MOVES)
    completed_values(tree, 0, values)
    is_chosen = np.zeros(MAX_MOVES, np.uint8)
    for i in range(chosen.size):
        weight = (visits + min(i, 1) + MAXVISIT_INIT) * VALUE_SCALE
        best, best_score = -1, -np.inf
        for k in range(row.actions):
            count = tree[row.child[k]].visits if row.child[k] else 0
            score = gumbel[k] + row.logit[k] + weight * values[k]
            if count == visits and not is_chosen[k] and score > best_score:
                best, best_score = k, score
        chosen[i], is_chosen[best] = best, 1


@kernel
def select_leaves(tree, size, root_actions, playable, sign, paths):
    """Select a leaf below each of the root's actions, and add new ones to the *size* nodes; return the new size.

    ``paths``, ``(n, max_depth + 1)``: the nodes from the root to the leaf, padded with -1.
    """
    scores = np.empty(MAX_MOVES)
    paths[:] = -1
    for i in range(root_actions.size):
        node, action = 0, root_actions[i]
        paths[i, 0] = 0
        for ply in range(1, paths.shape[1]):
            if ply > 1:
                action = _interior_action(tree, node, scores)
            row = tree[node]
            child = row.child[action]
            paths[i, ply] = child
            if child == 0:
                own, opp = play(np.int64(row.square[action]), row.own, row.opp)
                set_position(tree, size, own, opp, playable, sign)
                row.child[action] = size
                paths[i, ply] = size
                size += 1
                break
            if tree[child].terminal:
                break
            node = child
    return size


@kernel
def back_up(tree, paths):
    """Add a visit and the leaf's value, with the sign of its side, to every node of the paths."""
    for i in range(paths.shape[0]):
        ply = paths.shape[1] - 1
        while paths[i, ply] < 0:
            ply -= 1
        value = tree[paths[i, ply]].raw_value
        while ply >= 0:
            tree[paths[i, ply]].visits += 1
            tree[paths[i, ply]].value_sum += value
            value = -value
            ply -= 1


@kernel
def fill_planes(own, opp, playable, planes):
    """Write the input planes of a residual network, ``(n, squares, 6)``, as `ResidualNet.stem` makes them."""
    for i in range(own.size):
        legal, replies = legal_moves(own[i], opp[i], playable), legal_moves(opp[i], own[i], playable)
        odd, board, k = popcount(own[i] | opp[i]) & 1, playable, 0
        while board:
            sq = np.uint64(trailing_zeros(board))
            planes[i, k, 0], planes[i, k, 1] = (own[i] >> sq) & ONE, (opp[i] >> sq) & ONE
            planes[i, k, 2], planes[i, k, 3] = (legal >> sq) & ONE, (replies >> sq) & ONE
            planes[i, k, 4], planes[i, k, 5] = 1, odd
            board &= board - ONE
            k += 1
