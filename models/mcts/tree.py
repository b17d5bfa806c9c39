"""The search trees of many games in a few tensors, for `models.mcts.search` and, on a GPU, `models.mcts.kernels`."""

from typing import NamedTuple

from models.kernels.tree import MAXVISIT_INIT, VALUE_SCALE
from reversi_env.errors import extra_libraries
from reversi_env.functional import State

with extra_libraries():
    import torch
    from torch import Tensor

#: PUCT's constants.
PB_C_INIT, PB_C_BASE = 1.25, 19652.0


class Tree(NamedTuple):
    """The search trees, ``(games, nodes)``; node 0 is the root, node *i* was expanded by simulation *i*.

    ``children``, ``(games, nodes, actions)``: node indices, -1 for a child that was not visited. ``prior_logits``: of the legal
    actions. ``raw_values``: the network's value of a position, or the exact one. ``visits`` and ``value_sums`` have one more
    column, which collects updates that belong to no node. ``terminal``: the game is over, or the value is exact.
    """

    state: State
    children: Tensor
    prior_logits: Tensor
    raw_values: Tensor
    visits: Tensor
    value_sums: Tensor
    terminal: Tensor


class Selection(NamedTuple):
    """The result of the selection phase in all trees: the last *action*, from *parent* with *parent_state*, to *leaf*.

    ``path``, ``(games, plies + 1)``: all nodes from the root on, padded with the number of nodes.
    """

    parent: Tensor
    action: Tensor
    leaf: Tensor
    path: Tensor
    parent_state: State


class NetworkOutput(NamedTuple):
    """Policy *logits* of all squares, *values_in_discs*, and *exact_scores* where a position is *terminal*."""

    logits: Tensor
    values_in_discs: Tensor
    exact_scores: Tensor
    terminal: Tensor


class Node(NamedTuple):
    """One node per tree: prior logits, visits and values of all actions, for the side to move at the node.

    ``mixed_value``: the value of the node, from its raw value and those of its children; unvisited actions get it.
    """

    prior_logits: Tensor
    visits: Tensor
    values: Tensor
    visited: Tensor
    mixed_value: Tensor

    @property
    def improved_logits(self) -> Tensor:
        strength = VALUE_SCALE * (MAXVISIT_INIT + self.visits.amax(1))
        return self.prior_logits + strength[:, None] * self.values


def node_of(tree: Tree, games: Tensor, node: Tensor) -> Node:
    """Return node ``node[i]`` of tree ``games[i]``, for all *i*."""
    children, prior_logits = tree.children[games, node], tree.prior_logits[games, node]
    visited, index = children >= 0, children.clamp(min=0)
    visits = torch.where(visited, tree.visits.gather(1, index), 0.0)
    values = torch.where(visited, -tree.value_sums.gather(1, index) / visits.clamp(min=1), 0.0)
    prior_probs = torch.softmax(prior_logits, 1) * visited
    prior_sum, visit_sum = prior_probs.sum(1), visits.sum(1)
    weighted_value = (prior_probs * values).sum(1) / prior_sum.clamp(min=torch.finfo(prior_logits.dtype).tiny)
    mixed_value = (tree.raw_values[games, node] + visit_sum * weighted_value) / (1 + visit_sum)
    return Node(prior_logits, visits, torch.where(visited, values, mixed_value[:, None]), visited, mixed_value)
