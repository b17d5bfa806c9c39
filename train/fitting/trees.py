"""`Trees`: positions with what follows from them, every node with its exact score.

A plain data set is a set of trees of one node each. The structural loss looks at more: all successors of a position, or two
plies of them. Only the deepest nodes have to be solved, the scores above follow by minimax.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env import Rules, batch
from reversi_env.errors import TrainError
from train.labels import Labels
from train.labels.labellers import exact_scores

MAX_PLIES = 3


@dataclass(frozen=True, eq=False)
class Trees:
    """Positions in trees: arrays of one entry a node, those of a tree on end, parents before their children.

    ``own``, ``opp``: boards of the node's side to move and of the other side. ``score``: discs for the node's side to move
    under the objective of ``rules``. ``ply``: plies below the root. ``parent``: number of the node above, -1 at a root.
    ``first``: number of the first node, the root, of every tree, and the number of all nodes at the end.
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
        """Nodes of all trees together."""
        return len(self.own)

    @property
    def empties(self) -> NDArray[np.uint8]:
        """Empty squares of every node."""
        return (self.rules.square_count - np.bitwise_count(self.own | self.opp)).astype(np.uint8)

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which nodes are finished games."""
        return batch.is_over(self.own, self.opp, self.rules)

    @property
    def roots(self) -> NDArray[np.int64]:
        """Numbers of the roots."""
        return self.first[:-1]

    def select(self, trees: ArrayLike) -> Trees:
        """The trees of a boolean mask, or those with the given numbers, in their order."""
        chosen = np.asarray(trees)
        numbers = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        sizes = np.diff(self.first)[numbers]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        moved = np.repeat(self.first[numbers] - first[:-1], sizes)
        rows = np.arange(first[-1]) + moved
        parent = np.where(self.parent[rows] < 0, -1, self.parent[rows] - moved)
        return Trees(self.rules, self.own[rows], self.opp[rows], self.score[rows], self.ply[rows], parent, first)


def single_nodes(labels: Labels | Trees, rows: NDArray[np.int64] | slice = slice(None)) -> Trees:
    """Labels, or the nodes of trees, as trees of one node each: all of them, or those with the numbers *rows*."""
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
    """Every position of *labels* with all that can follow within *plies*, a pass being a ply; all scores are exact.

    *progress* hears how many of the deepest positions are solved, and how many there are.
    """
    if not 1 <= plies <= MAX_PLIES:
        raise TrainError(f"plies={plies}: expected a whole number from 1 to {MAX_PLIES}")
    if not labels.exact.all():
        raise TrainError(
            f"{int((~labels.exact).sum())} of {len(labels)} labels are not exact: expected exact ones for the "
            f"structural loss, which has to know the scores of all successors"
        )
    grown = _expand(labels, plies)
    deepest = np.setdiff1d(np.arange(grown.nodes), grown.parent)
    over = grown.finished[deepest]
    done = deepest[over]
    grown.score[done] = batch.final_scores(grown.own[done], grown.opp[done], labels.rules)
    todo = deepest[~over]
    how: dict[str, Any] = {"device": device, "threads": threads, "progress": lambda done: progress(done, len(todo))}
    grown.score[todo] = exact_scores(grown.own[todo], grown.opp[todo], labels.rules, **how)
    back_up(grown.score, grown)
    return grown


def _expand(labels: Labels, plies: int) -> Trees:
    """The trees without scores: ply after ply, then sorted so that each tree is in one piece."""
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
    order = np.argsort(np.concatenate(tree), kind="stable")  # which leaves the plies of a tree in order
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    above = np.concatenate(parent)[order]
    first = np.concatenate([[0], np.cumsum(np.bincount(np.concatenate(tree), minlength=count))])
    parents = np.where(above < 0, -1, place[above])
    boards = (np.concatenate(own)[order], np.concatenate(opp)[order])
    return Trees(rules, *boards, np.zeros(len(order), np.float32), ply[order], parents, first.astype(np.int64))


def back_up(values: NDArray[np.floating], trees: Trees) -> None:
    """Replace the values of inner nodes by those from below: the best successor's, seen from the other side."""
    for ply in range(int(trees.ply.max(initial=0)), 0, -1):
        nodes = np.flatnonzero(trees.ply == ply)
        values[np.unique(trees.parent[nodes])] = -np.inf
        np.maximum.at(values, trees.parent[nodes], -values[nodes])
