"""`Trees`: positions with their successors, every node with its exact score.

A plain dataset is a set of trees of one node each. The structural loss uses all successors of a position, or more plies of them.
Only the deepest nodes have to be solved; the other scores follow by minimax.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env import Rules, batch
from reversi_env.errors import TrainError
from train.labels import Labels
from train.labels.labellers import exact_scores

MAX_PLIES = 3


@dataclass(frozen=True, eq=False)
class Trees:
    """Positions in trees: arrays with an entry per node, tree after tree, parents before their children.

    ``own``, ``opp``: boards of the node's side to move and of the other side. ``score``: discs for the node's side to move.
    ``ply``: plies below the root. ``parent``: index of the parent, -1 at a root. ``first``: index of the root of every tree, and
    at the end the number of nodes.
    """

    rules: Rules
    own: NDArray[np.uint64]
    opp: NDArray[np.uint64]
    score: NDArray[np.float32]
    ply: NDArray[np.uint8]
    parent: NDArray[np.int64]
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first) - 1

    @property
    def nodes(self) -> int:
        return len(self.own)

    @property
    def empties(self) -> NDArray[np.uint8]:
        """Empty squares of every node."""
        return (self.rules.square_count - np.bitwise_count(self.own | self.opp)).astype(np.uint8)

    @property
    def finished(self) -> NDArray[np.bool_]:
        return batch.is_over(self.own, self.opp, self.rules)

    @property
    def roots(self) -> NDArray[np.int64]:
        return self.first[:-1]

    def select(self, trees: ArrayLike) -> Trees:
        """Return the trees of a boolean mask or of indices."""
        indices = np.arange(len(self))[np.asarray(trees)]
        sizes = np.diff(self.first)[indices]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        offset = np.repeat(self.first[indices] - first[:-1], sizes)
        rows = np.arange(first[-1]) + offset
        parent = np.where(self.parent[rows] < 0, -1, self.parent[rows] - offset)
        return Trees(self.rules, self.own[rows], self.opp[rows], self.score[rows], self.ply[rows], parent, first)


def single_nodes(labels: Labels | Trees, rows: NDArray[np.int64] | slice = slice(None)) -> Trees:
    """Return labels, or the nodes of trees, as trees of one node each; *rows* selects some."""
    own, opp, score = labels.own[rows], labels.opp[rows], labels.score[rows].astype(np.float32)
    count = len(own)
    places = (np.zeros(count, np.uint8), np.full(count, -1, np.int64), np.arange(count + 1, dtype=np.int64))
    return Trees(labels.rules, own, opp, score, *places)


def grow_trees(
    labels: Labels,
    plies: int = 1,
    *,
    device: str = "cpu",
    threads: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Trees:
    """Return every position of *labels* with its successors within *plies*, a pass being a ply; all scores are exact.

    *progress* is called with the number of solved leaves and their total.
    """
    if not 1 <= plies <= MAX_PLIES:
        raise TrainError(f"plies={plies}: expected a whole number from 1 to {MAX_PLIES}")
    if not labels.exact.all():
        raise TrainError(
            f"{int((~labels.exact).sum())} of {len(labels)} labels are not exact: expected exact ones for the "
            f"structural loss, which needs the scores of all successors"
        )
    trees = _expand(labels, plies)
    leaves = np.setdiff1d(np.arange(trees.nodes), trees.parent)
    is_over = trees.finished[leaves]
    over, unsolved = leaves[is_over], leaves[~is_over]
    trees.score[over] = batch.final_scores(trees.own[over], trees.opp[over], labels.rules)
    trees.score[unsolved] = exact_scores(
        *(trees.own[unsolved], trees.opp[unsolved], labels.rules),
        device=device,
        threads=threads,
        progress=lambda done: progress(done, len(unsolved)),
    )
    back_up(trees.score, trees)
    return trees


def _expand(labels: Labels, plies: int) -> Trees:
    """Return the trees without scores: ply after ply, then sorted by tree."""
    rules, count = labels.rules, len(labels)
    own, opp, tree = [labels.own], [labels.opp], [np.arange(count)]
    parent = [np.full(count, -1, np.int64)]
    for _ in range(plies):
        below = batch.expand(own[-1], opp[-1], rules)
        before = sum(len(part) for part in own[:-1])
        tree.append(tree[-1][below.parent])
        parent.append(below.parent + before)
        own.append(below.own)
        opp.append(below.opp)
    ply = np.repeat(np.arange(plies + 1, dtype=np.uint8), [len(part) for part in own])
    order = np.argsort(np.concatenate(tree), kind="stable")  # stable: keeps the plies of a tree in order
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    above = np.concatenate(parent)[order]
    first = np.concatenate([[0], np.cumsum(np.bincount(np.concatenate(tree), minlength=count))])
    parents = np.where(above < 0, -1, place[above])
    boards = (np.concatenate(own)[order], np.concatenate(opp)[order])
    return Trees(rules, *boards, np.zeros(len(order), np.float32), ply[order], parents, first.astype(np.int64))


def back_up(values: NDArray[np.floating], trees: Trees) -> None:
    """Replace the values of inner nodes by the maximum of the negated values of their children."""
    for ply in range(int(trees.ply.max(initial=0)), 0, -1):
        nodes = np.flatnonzero(trees.ply == ply)
        values[np.unique(trees.parent[nodes])] = -np.inf
        np.maximum.at(values, trees.parent[nodes], -values[nodes])
