"""The structural minimax value loss beside the plain one: same labels, same number of steps, several seeds.

Every seed plays its own games, solves the positions and all their successors (a tree of one ply or two), and fits one network
for each way to use these labels. All networks see equally many positions in equally many steps. They are measured on
positions of other games that no network has seen, not even as a successor (`studies.training.comparing`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from models.patterns.trainable import Trainable
from studies.options import LossesOptions
from studies.sections import Block, Results, report
from studies.training.comparing import EXAM_SEED, Way, compare, solved_labels, tables
from train.fitting.fit import FitOptions
from train.fitting.trees import Trees, grow_trees, single_nodes
from train.jobs.logs import Progress, no_progress


def measure(options: LossesOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Error and regret of a network for each way to use the labels."""

    def trees(seed: int) -> Trees:
        return grow_trees(solved_labels(options, seed, options.positions), options.plies)

    def ways(trees: Trees, seed: int) -> Iterator[Way]:
        for name, (data, fit_options) in _ways(options, trees, seed).items():
            yield name, Trainable("linear", options.size), data, fit_options

    return compare(options, trees, ways, progress)


def _ways(options: LossesOptions, trees: Trees, seed: int) -> dict[str, tuple[Trees, FitOptions]]:
    nodes = single_nodes(trees, np.flatnonzero(~trees.finished))
    epochs, per_tree = options.epochs, trees.nodes / len(trees)
    plain = FitOptions(
        learning_rate=options.learning_rate,
        batch_size=options.batch_size,
        seed=seed,
        epochs=epochs,
        patience=epochs,
    )
    more = max(1, round(epochs * per_tree))
    batch_size = max(1, round(options.batch_size / per_tree))
    structural = replace(plain, loss="structural", plies=options.plies, batch_size=batch_size)
    half = replace(structural, consistency=0.5, ply_weight=0.5)
    roots = single_nodes(trees, trees.roots)
    others = single_nodes(solved_labels(options, EXAM_SEED // 2 + seed, nodes.nodes))
    return {
        "plain: roots alone, seen more often": (roots, replace(plain, epochs=more, patience=more)),
        "plain: all nodes, each for itself": (nodes, plain),
        "structural: errors of all nodes, no consistency": (trees, replace(structural, consistency=0.0)),
        "structural: consistency 0.5": (trees, replace(structural, consistency=0.5)),
        "structural: consistency 2": (trees, replace(structural, consistency=2.0)),
        "structural: successors count half, consistency 0.5": (trees, half),
        "plain: as many positions of other games": (others, plain),
    }


@report("losses")
def section(results: Results) -> Iterator[Block]:
    """Plain and structural loss."""
    yield from tables("labels used", results)
