"""A simulation of `models.tree_search` on a GPU: one kernel goes down all trees, another writes what was found to them.

A program has a game: it goes from the root to the leaf, and stops there, where torch's operations take all games down as many
plies. The actions are a warp's registers. What is computed is `models.tree_search`'s, operation by operation, in its precision.
They are written in Triton, which comes with torch's builds for CUDA; ``TRITON_INTERPRET=1`` runs them on a CPU.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

from models.trees import NEVER, PUCT_BASE, PUCT_FIRST, VALUE_SCALE, VISITS_BEFORE, Said, Tree, Walk
from reversi_env import Rules
from reversi_env.extras import extra_libraries
from reversi_env.functional import State

with extra_libraries():
    import torch
    import triton
    import triton.language as tl

#: Whether a CPU runs the kernels.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

_NEVER, _NOTHING = tl.constexpr(NEVER), tl.constexpr(torch.finfo(torch.float32).tiny)
_VISITS_BEFORE, _VALUE_SCALE = tl.constexpr(VISITS_BEFORE), tl.constexpr(VALUE_SCALE)
_PUCT_FIRST, _PUCT_BASE = tl.constexpr(PUCT_FIRST), tl.constexpr(PUCT_BASE)


class Kernels:
    """The twins of the methods of a `TreeSearch` for these *rules* that goes down *deepest* plies at most."""

    def __init__(self, rules: Rules, deepest: int, *, puct: bool) -> None:
        self._size, self._squares, self._deepest, self._puct = rules.size, rules.square_count, deepest, puct
        self._width = triton.next_power_of_2(rules.square_count + 1)

    def walked(self, tree: Tree, games: torch.Tensor, number: int, lots: torch.Tensor, planned: torch.Tensor) -> Walk:
        """The ways to node *number* of all trees, or to one where they end."""
        count, nodes = tree.raw.shape
        plies = min(nodes - 1, self._deepest)
        before = type(tree.state)(*(field.new_empty(count) for field in tree.state))
        parent, action, leaf = (torch.empty_like(games) for _ in range(3))
        path = games.new_empty((count, plies + 1))
        written = (parent, action, leaf, path, *before)
        with _on(games.device):
            _walk[(count,)](
                *_fields(tree), lots.contiguous(), planned, *written, number, nodes, plies, self._squares,
                puct=self._puct, width=self._width, length=triton.next_power_of_2(plies + 1), num_warps=1,
            )  # fmt: skip
        return Walk(parent, action, leaf, path, before)

    def written(self, tree: Tree, games: torch.Tensor, walk: Walk, state: State, said: Said) -> None:
        """The leaves' states, numbers and values, and visits and values along the ways."""
        count, nodes = tree.raw.shape
        known = (said.numbers.contiguous(), said.discs.contiguous(), said.scores, said.ends.view(torch.uint8))
        given = (walk.parent, walk.action, walk.leaf, walk.path, *state, *known)
        plies = walk.path.shape[1] - 1
        with _on(games.device):
            _write[(count,)](
                *_fields(tree), *given, nodes, plies,
                size=self._size, width=self._width, length=triton.next_power_of_2(plies + 1), num_warps=1,
            )  # fmt: skip


def _fields(tree: Tree) -> tuple[torch.Tensor, ...]:
    """The tensors of a tree, its state's last."""
    return (
        tree.children,
        tree.numbers,
        tree.raw,
        tree.visits,
        tree.total,
        tree.ends.view(torch.uint8),
        *tree.state,
    )


def _on(device: torch.device) -> Any:
    """Where kernels are launched meanwhile."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


# --- the kernels ----------------------------------------------------------------------------------


@triton.jit
def _softmax(numbers):
    powers = tl.exp(numbers - tl.max(numbers, 0))
    return powers / tl.sum(powers, 0)


@triton.jit
def _family(children, numbers, raw, visits, total, ends, game, node, nodes, actions, lane):
    """`trees.family_of` one node: numbers, visits and values of its actions; children, and 1 more where nothing comes below."""
    inside, row = lane < actions, (game * nodes + node) * actions + lane
    child = tl.load(children + row, mask=inside, other=-1)
    number = tl.load(numbers + row, mask=inside, other=float("-inf"))
    seen, at = child >= 0, game * (nodes + 1) + child
    count = tl.load(visits + at, mask=seen, other=0.0)
    value = -tl.load(total + at, mask=seen, other=0.0) / tl.maximum(count, 1.0)
    ended = tl.load(
        ends + game * nodes + child, mask=seen, other=0
    )  # of all, and not of one of them later: nothing waits
    likely = tl.where(seen, _softmax(number), 0.0)
    known = tl.sum(likely * value, 0) / tl.maximum(tl.sum(likely, 0), _NOTHING)
    counted = tl.sum(count, 0)
    mixed = (tl.load(raw + game * nodes + node) + counted * known) / (1 + counted)
    return number, count, tl.where(seen, value, mixed), tl.where(seen, 2 * child + ended, -1)


@triton.jit
def _improved(number, count, value):
    return number + (tl.max(count, 0) + _VISITS_BEFORE) * _VALUE_SCALE * value


@triton.jit
def _below(children, numbers, raw, visits, total, ends, game, node, nodes, squares, lane, puct: tl.constexpr):
    """The action that a node's visits follow next, and what comes of it, as `_best` has it."""
    number, count, value, coded = _family(
        children, numbers, raw, visits, total, ends, game, node, nodes, squares + 1, lane
    )
    if puct:
        at = game * (nodes + 1) + node
        visited = tl.load(visits + at)
        value = tl.where(coded >= 0, value, tl.load(total + at) / visited)
        low = tl.min(value, 0)
        scaled = (value - low) / tl.maximum(tl.max(value, 0) - low, 1.0 / squares)
        weight = (tl.log((visited + (1 + _PUCT_BASE)) / _PUCT_BASE) + _PUCT_FIRST) * tl.sqrt(visited)
        wanted = scaled + weight * _softmax(number) / (1 + count)
    else:
        wanted = _softmax(_improved(number, count, value)) - count / (1 + tl.sum(count, 0))
    return _best(tl.where(number > _NEVER, wanted, _NEVER), coded, lane)


@triton.jit
def _best(wanted, coded, lane):
    """The first action that is wanted most, the child there, or -1, and whether the way goes on below it."""
    action = tl.argmax(wanted, 0)
    found = tl.max(tl.where(lane == action, coded, -1), 0)
    return action.to(tl.int64), found >> 1, (found >= 0) & (found % 2 == 0)


@triton.jit
def _copied(field, found, into, at):
    tl.store(into + at, tl.load(field + found))


@triton.jit(do_not_specialize=["number"])
def _walk(
    children, numbers, raw, visits, total, ends, own, opp, legal, turn, status,
    lots, planned,
    parent_out, action_out, leaf_out, path_out, own_out, opp_out, legal_out, turn_out, status_out,
    number, nodes, plies, squares,
    puct: tl.constexpr, width: tl.constexpr, length: tl.constexpr,
):  # fmt: skip
    game, lane, steps = tl.program_id(0).to(tl.int64), tl.arange(0, width), tl.arange(0, length)
    parent = game * 0
    if puct:
        action, child, goes_on = _below(
            children, numbers, raw, visits, total, ends, game, parent, nodes, squares, lane, puct
        )
    else:
        known, count, value, coded = _family(
            children, numbers, raw, visits, total, ends, game, parent, nodes, squares + 1, lane
        )
        left = (count == tl.load(planned + game)) & (known > _NEVER)
        lot = tl.load(lots + game * (squares + 1) + lane, mask=lane <= squares, other=0.0)
        wanted = tl.where(left, lot + _improved(known, count, value), _NEVER)
        action, child, goes_on = _best(wanted, coded, lane)
    leaf = tl.where(child < 0, number, child)
    path = tl.where(steps == 0, 0, tl.where(steps == 1, leaf, nodes))
    ply = 1
    while goes_on & (ply < plies):
        parent = leaf
        action, child, goes_on = _below(
            children, numbers, raw, visits, total, ends, game, parent, nodes, squares, lane, puct
        )
        leaf = tl.where(child < 0, number, child)
        ply += 1
        path = tl.where(steps == ply, leaf, path)
    tl.store(parent_out + game, parent)
    tl.store(action_out + game, action)
    tl.store(leaf_out + game, leaf)
    tl.store(path_out + game * (plies + 1) + steps, path, mask=steps <= plies)
    before = game * nodes + parent
    _copied(own, before, own_out, game)
    _copied(opp, before, opp_out, game)
    _copied(legal, before, legal_out, game)
    _copied(turn, before, turn_out, game)
    _copied(status, before, status_out, game)


@triton.jit
def _write(
    children, numbers, raw, visits, total, ends, own, opp, legal, turn, status,
    parents, actions, leaves, paths, own_after, opp_after, legal_after, turn_after, status_after,
    said, discs, scores, over,
    nodes, plies, size: tl.constexpr, width: tl.constexpr, length: tl.constexpr,
):  # fmt: skip
    squares: tl.constexpr = size * size
    rim: tl.constexpr = (8 - size) // 2
    game, lane, steps = tl.program_id(0).to(tl.int64), tl.arange(0, width), tl.arange(0, length)
    leaf = tl.load(leaves + game)
    at = game * nodes + leaf
    _copied(own_after, game, own, at)
    _copied(opp_after, game, opp, at)
    _copied(legal_after, game, legal, at)
    _copied(turn_after, game, turn, at)
    _copied(status_after, game, status, at)
    tl.store(children + (game * nodes + tl.load(parents + game)) * (squares + 1) + tl.load(actions + game), leaf)

    moves = tl.load(legal_after + game)
    square = tl.minimum((lane // size + rim) * 8 + lane % size + rim, 63)
    allowed = tl.where(lane < squares, (moves >> square) & 1, (moves == 0).to(tl.int64)) != 0
    number = tl.load(said + game * squares + lane, mask=lane < squares, other=0.0)
    tl.store(numbers + at * (squares + 1) + lane, tl.where(allowed, number, _NEVER), mask=lane <= squares)
    ended, valued = tl.load(over + game), tl.load(discs + game)
    value = tl.where(ended != 0, tl.load(scores + game).to(valued.dtype), valued) / squares
    tl.store(raw + at, value)
    tl.store(ends + at, ended)

    node = tl.load(paths + game * (plies + 1) + steps, mask=steps <= plies, other=nodes)
    inside = node < nodes
    below = tl.sum(inside.to(tl.int32), 0) - 1 - steps
    above = game * (nodes + 1) + node
    tl.store(visits + above, tl.load(visits + above, mask=inside, other=0.0) + 1, mask=inside)
    signed = tl.where(below % 2 == 0, value, -value)
    tl.store(total + above, tl.load(total + above, mask=inside, other=0.0) + signed, mask=inside)
