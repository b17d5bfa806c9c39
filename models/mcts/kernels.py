"""A simulation of `models.mcts.search` on a GPU: one kernel selects leaves in all trees, another expands and backs up.

Each Triton program (one warp) works on one game: it descends from the root and stops at the leaf, while torch's operations compute
the same number of plies for all games. Its registers hold the actions of a node. The kernels compute the same operations as
`models.mcts.search`, in the same precision. Triton comes with torch's builds for CUDA; ``TRITON_INTERPRET=1`` runs it on a CPU.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

from models.kernels.tree import MAXVISIT_INIT, VALUE_SCALE
from models.mcts.tree import PB_C_BASE, PB_C_INIT, NetworkOutput, Selection, Tree
from models.residual.net import ILLEGAL_LOGIT
from reversi_env import Rules
from reversi_env.errors import extra_libraries
from reversi_env.functional import State

with extra_libraries():
    import torch
    import triton
    import triton.language as tl

#: Whether a CPU runs the kernels.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

_ILLEGAL_LOGIT, _TINY = tl.constexpr(ILLEGAL_LOGIT), tl.constexpr(torch.finfo(torch.float32).tiny)
_MAXVISIT_INIT, _VALUE_SCALE = tl.constexpr(MAXVISIT_INIT), tl.constexpr(VALUE_SCALE)
_PB_C_INIT, _PB_C_BASE = tl.constexpr(PB_C_INIT), tl.constexpr(PB_C_BASE)


class Kernels:
    """The selection and the backup of a `TreeSearch`, with the same arguments and results as its methods."""

    def __init__(self, rules: Rules, max_depth: int, *, puct: bool) -> None:
        self._size, self._squares, self._max_depth, self._puct = rules.size, rules.square_count, max_depth, puct
        self._width = triton.next_power_of_2(rules.square_count + 1)

    def select(
        self, tree: Tree, games: torch.Tensor, number: int, gumbel: torch.Tensor, considered_visits: torch.Tensor
    ) -> Selection:
        """Select the path to node *number* of all trees, or to a terminal one."""
        count, nodes = tree.raw_values.shape
        plies = min(nodes - 1, self._max_depth)
        parent_state = type(tree.state)(*(field.new_empty(count) for field in tree.state))
        parent, action, leaf = (torch.empty_like(games) for _ in range(3))
        path = games.new_empty((count, plies + 1))
        outputs = (parent, action, leaf, path, *parent_state)
        with _device_guard(games.device):
            _select[(count,)](
                *_tree_tensors(tree), gumbel.contiguous(), considered_visits, *outputs, number, nodes, plies, self._squares,
                puct=self._puct, width=self._width, length=triton.next_power_of_2(plies + 1), num_warps=1,
            )  # fmt: skip
        return Selection(parent, action, leaf, path, parent_state)

    def expand_and_backup(
        self, tree: Tree, games: torch.Tensor, selection: Selection, state: State, output: NetworkOutput
    ) -> None:
        """Write states, logits and values of the leaves, and add visits and values along the paths."""
        count, nodes = tree.raw_values.shape
        evaluated = (
            output.logits.contiguous(),
            output.values_in_discs.contiguous(),
            output.exact_scores,
            output.terminal.view(torch.uint8),
        )
        args = (selection.parent, selection.action, selection.leaf, selection.path, *state, *evaluated)
        plies = selection.path.shape[1] - 1
        with _device_guard(games.device):
            _expand_and_backup[(count,)](
                *_tree_tensors(tree), *args, nodes, plies,
                size=self._size, width=self._width, length=triton.next_power_of_2(plies + 1), num_warps=1,
            )  # fmt: skip


def _tree_tensors(tree: Tree) -> tuple[torch.Tensor, ...]:
    return (
        tree.children,
        tree.prior_logits,
        tree.raw_values,
        tree.visits,
        tree.value_sums,
        tree.terminal.view(torch.uint8),
        *tree.state,
    )


def _device_guard(device: torch.device) -> Any:
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


# --- the kernels ----------------------------------------------------------------------------------


@triton.jit
def _softmax(prior_logits):
    powers = tl.exp(prior_logits - tl.max(prior_logits, 0))
    return powers / tl.sum(powers, 0)


@triton.jit
def _node_statistics(
    children, prior_logits, raw_values, visits, value_sums, terminal, game, node, nodes, actions, lane
):
    """Return prior logits, visits and values of a node's actions as `models.mcts.tree.node_of`, and child codes.

    The code of an action is twice the index of its child, plus 1 if the child is terminal; -1 without a child.
    """
    inside, row = lane < actions, (game * nodes + node) * actions + lane
    child = tl.load(children + row, mask=inside, other=-1)
    prior_logit = tl.load(prior_logits + row, mask=inside, other=float("-inf"))
    visited, at = child >= 0, game * (nodes + 1) + child
    count = tl.load(visits + at, mask=visited, other=0.0)
    value = -tl.load(value_sums + at, mask=visited, other=0.0) / tl.maximum(count, 1.0)
    # Loaded for all children together with the other columns: a later load for the chosen child alone would wait for memory.
    is_terminal = tl.load(terminal + game * nodes + child, mask=visited, other=0)
    prior_probs = tl.where(visited, _softmax(prior_logit), 0.0)
    weighted_value = tl.sum(prior_probs * value, 0) / tl.maximum(tl.sum(prior_probs, 0), _TINY)
    visit_sum = tl.sum(count, 0)
    mixed_value = (tl.load(raw_values + game * nodes + node) + visit_sum * weighted_value) / (1 + visit_sum)
    return prior_logit, count, tl.where(visited, value, mixed_value), tl.where(visited, 2 * child + is_terminal, -1)


@triton.jit
def _improved_logits(prior_logit, count, value):
    return prior_logit + (tl.max(count, 0) + _MAXVISIT_INIT) * _VALUE_SCALE * value


@triton.jit
def _interior_action(
    children,
    prior_logits,
    raw_values,
    visits,
    value_sums,
    terminal,
    game,
    node,
    nodes,
    squares,
    lane,
    puct: tl.constexpr,
):
    """Return the action that is selected at an interior node, as `_best` does."""
    prior_logit, count, value, child_code = _node_statistics(
        children, prior_logits, raw_values, visits, value_sums, terminal, game, node, nodes, squares + 1, lane
    )
    if puct:
        at = game * (nodes + 1) + node
        visited = tl.load(visits + at)
        value = tl.where(child_code >= 0, value, tl.load(value_sums + at) / visited)
        low = tl.min(value, 0)
        scaled = (value - low) / tl.maximum(tl.max(value, 0) - low, 1.0 / squares)
        weight = (tl.log((visited + (1 + _PB_C_BASE)) / _PB_C_BASE) + _PB_C_INIT) * tl.sqrt(visited)
        score = scaled + weight * _softmax(prior_logit) / (1 + count)
    else:
        score = _softmax(_improved_logits(prior_logit, count, value)) - count / (1 + tl.sum(count, 0))
    return _best(tl.where(prior_logit > _ILLEGAL_LOGIT, score, _ILLEGAL_LOGIT), child_code, lane)


@triton.jit
def _best(score, child_code, lane):
    """Return the first best action, its child, or -1, and whether the path continues below the child."""
    action = tl.argmax(score, 0)
    code = tl.max(tl.where(lane == action, child_code, -1), 0)
    return action.to(tl.int64), code >> 1, (code >= 0) & (code % 2 == 0)


@triton.jit
def _copy(source, index, target, at):
    tl.store(target + at, tl.load(source + index))


@triton.jit(do_not_specialize=["number"])
def _select(
    children, prior_logits, raw_values, visits, value_sums, terminal, own, opp, legal, turn, status,
    gumbel, considered_visits,
    parent_out, action_out, leaf_out, path_out, own_out, opp_out, legal_out, turn_out, status_out,
    number, nodes, plies, squares,
    puct: tl.constexpr, width: tl.constexpr, length: tl.constexpr,
):  # fmt: skip
    game, lane, steps = tl.program_id(0).to(tl.int64), tl.arange(0, width), tl.arange(0, length)
    parent = game * 0
    if puct:
        action, child, continues = _interior_action(
            children, prior_logits, raw_values, visits, value_sums, terminal, game, parent, nodes, squares, lane, puct
        )
    else:
        prior_logit, count, value, child_code = _node_statistics(
            children, prior_logits, raw_values, visits, value_sums, terminal, game, parent, nodes, squares + 1, lane
        )
        considered = (count == tl.load(considered_visits + game)) & (prior_logit > _ILLEGAL_LOGIT)
        gumbel_noise = tl.load(gumbel + game * (squares + 1) + lane, mask=lane <= squares, other=0.0)
        score = tl.where(considered, gumbel_noise + _improved_logits(prior_logit, count, value), _ILLEGAL_LOGIT)
        action, child, continues = _best(score, child_code, lane)
    leaf = tl.where(child < 0, number, child)
    path = tl.where(steps == 0, 0, tl.where(steps == 1, leaf, nodes))
    ply = 1
    while continues & (ply < plies):
        parent = leaf
        action, child, continues = _interior_action(
            children, prior_logits, raw_values, visits, value_sums, terminal, game, parent, nodes, squares, lane, puct
        )
        leaf = tl.where(child < 0, number, child)
        ply += 1
        path = tl.where(steps == ply, leaf, path)
    tl.store(parent_out + game, parent)
    tl.store(action_out + game, action)
    tl.store(leaf_out + game, leaf)
    tl.store(path_out + game * (plies + 1) + steps, path, mask=steps <= plies)
    before = game * nodes + parent
    _copy(own, before, own_out, game)
    _copy(opp, before, opp_out, game)
    _copy(legal, before, legal_out, game)
    _copy(turn, before, turn_out, game)
    _copy(status, before, status_out, game)


@triton.jit
def _expand_and_backup(
    children, prior_logits, raw_values, visits, value_sums, terminal, own, opp, legal, turn, status,
    parents, actions, leaves, paths, own_after, opp_after, legal_after, turn_after, status_after,
    logits, values_in_discs, exact_scores, over,
    nodes, plies, size: tl.constexpr, width: tl.constexpr, length: tl.constexpr,
):  # fmt: skip
    squares: tl.constexpr = size * size
    rim: tl.constexpr = (8 - size) // 2
    game, lane, steps = tl.program_id(0).to(tl.int64), tl.arange(0, width), tl.arange(0, length)
    leaf = tl.load(leaves + game)
    at = game * nodes + leaf
    _copy(own_after, game, own, at)
    _copy(opp_after, game, opp, at)
    _copy(legal_after, game, legal, at)
    _copy(turn_after, game, turn, at)
    _copy(status_after, game, status, at)
    tl.store(children + (game * nodes + tl.load(parents + game)) * (squares + 1) + tl.load(actions + game), leaf)

    moves = tl.load(legal_after + game)
    square = tl.minimum((lane // size + rim) * 8 + lane % size + rim, 63)
    allowed = tl.where(lane < squares, (moves >> square) & 1, (moves == 0).to(tl.int64)) != 0
    logit = tl.load(logits + game * squares + lane, mask=lane < squares, other=0.0)
    tl.store(prior_logits + at * (squares + 1) + lane, tl.where(allowed, logit, _ILLEGAL_LOGIT), mask=lane <= squares)
    is_terminal, network_value = tl.load(over + game), tl.load(values_in_discs + game)
    exact_value = tl.load(exact_scores + game).to(network_value.dtype)
    value = tl.where(is_terminal != 0, exact_value, network_value) / squares
    tl.store(raw_values + at, value)
    tl.store(terminal + at, is_terminal)

    node = tl.load(paths + game * (plies + 1) + steps, mask=steps <= plies, other=nodes)
    inside = node < nodes
    plies_below = tl.sum(inside.to(tl.int32), 0) - 1 - steps
    on_path = game * (nodes + 1) + node
    tl.store(visits + on_path, tl.load(visits + on_path, mask=inside, other=0.0) + 1, mask=inside)
    signed = tl.where(plies_below % 2 == 0, value, -value)
    tl.store(value_sums + on_path, tl.load(value_sums + on_path, mask=inside, other=0.0) + signed, mask=inside)
