"""Trees of positions in a few tensors: what `models.tree_search` grows, and on a GPU `models.tree_kernels`."""

from __future__ import annotations

from typing import NamedTuple

from reversi_env.extras import extra_libraries
from reversi_env.functional import State

with extra_libraries():
    import torch
    from torch import Tensor

#: The number of an action that is not legal, below every number.
NEVER = -1e9
#: How much a value counts beside the network's numbers: visits that are added to those of the most visited action, and a factor.
VISITS_BEFORE, VALUE_SCALE = 50.0, 1.0
#: PUCT's constants.
PUCT_FIRST, PUCT_BASE = 1.25, 19652.0


class Tree(NamedTuple):
    """The trees, ``(games, nodes)``; node 0 is the root, those of simulation *i* are number *i*.

    ``children``, ``(games, nodes, actions)``: their numbers, -1 where there is none. ``numbers``: the network's, of legal actions.
    ``raw``: its value of a position, or the exact one. ``visits`` and ``total`` (of values) have one more column, where what
    belongs to no node goes. ``ends``: whether the game is over there, or the value exact, so that nothing comes below.
    """

    state: State
    children: Tensor
    numbers: Tensor
    raw: Tensor
    visits: Tensor
    total: Tensor
    ends: Tensor


class Walk(NamedTuple):
    """The ways that a simulation goes down all trees: their last *action*, from *parent*, which is *before* it, to *leaf*.

    ``path``, ``(games, plies + 1)``: all nodes from the root on, and as many as a tree can have, which is none, where a way is
    shorter.
    """

    parent: Tensor
    action: Tensor
    leaf: Tensor
    path: Tensor
    before: State


class Said(NamedTuple):
    """What is known of positions: the network's *numbers* of all squares and values in *discs*; where it *ends*, *scores*."""

    numbers: Tensor
    discs: Tensor
    scores: Tensor
    ends: Tensor


class Family(NamedTuple):
    """A node of each tree with its children: numbers, visits and values of all actions for the node's side to move.

    ``mixed``: the value of the node, from its own and those of its children; an action that was not visited has it.
    """

    numbers: Tensor
    visits: Tensor
    values: Tensor
    seen: Tensor
    mixed: Tensor

    @property
    def improved(self) -> Tensor:
        """The numbers of a better policy."""
        strength = VALUE_SCALE * (VISITS_BEFORE + self.visits.amax(1))
        return self.numbers + strength[:, None] * self.values


def family_of(tree: Tree, games: Tensor, node: Tensor) -> Family:
    """A node of every tree, and its children."""
    children, numbers = tree.children[games, node], tree.numbers[games, node]
    seen, index = children >= 0, children.clamp(min=0)
    visits = torch.where(seen, tree.visits.gather(1, index), 0.0)
    values = torch.where(seen, -tree.total.gather(1, index) / visits.clamp(min=1), 0.0)
    likely = torch.softmax(numbers, 1) * seen
    weight, all_visits = likely.sum(1), visits.sum(1)
    known = (likely * values).sum(1) / weight.clamp(min=torch.finfo(numbers.dtype).tiny)
    mixed = (tree.raw[games, node] + all_visits * known) / (1 + all_visits)
    return Family(numbers, visits, torch.where(seen, values, mixed[:, None]), seen, mixed)
