"""Performance model 3: the structural minimax value loss of an evaluator.

A position is taken with the tree of all that can follow within some plies. The true value of every node is known, from the
solver. The evaluator's errors at all nodes are added up, and credited to the root.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from search import evaluators
from search.evaluators.formula import Formula
from studies.options import StructuralOptions
from studies.sections import Block, Results, Table, game_name, panel_by_game, report, with_error
from train import charts
from train.arena.results import Z_95
from train.evaluation.exact_set import ExactSet
from train.evaluation.means import Sample
from train.fitting.trees import Trees, back_up, grow_trees
from train.jobs.logs import Progress, no_progress
from train.labels import label_positions
from train.labels.sampling import sample_games


def measure(options: StructuralOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """The loss of every evaluator a tree and a node, its error by ply, and how far it is from being its own minimax."""
    labels = options.labels()
    progress("positions", 0, 1)
    own, opp, games = sample_games(labels)
    roots = label_positions(own, opp, labels)
    trees = grow_trees(roots, options.plies, progress=lambda done, total: progress("solving successors", done, total))
    losses = [_judged(name, trees, games, options) for name in options.names]
    truth = {"trees": len(trees), "nodes": trees.nodes, "mean_absolute_score": float(np.abs(trees.score).mean())}
    return options.measured(plies=options.plies, empties=list(options.empties), **truth, evaluators=losses)


def _judged(name: str, trees: Trees, games: NDArray[np.int64], options: StructuralOptions) -> dict[str, Any]:
    evaluator, going = evaluators.get_evaluator(name), ~trees.finished
    truth = ExactSet(trees.rules, trees.own[going], trees.opp[going], trees.score[going].astype(np.int64))
    static = evaluator.static_values(truth.own, truth.opp, truth.rules)
    compared = truth.compare(static, scaled=not options.as_is and isinstance(evaluator, Formula))
    values = trees.score.astype(float)
    values[going] = compared.values
    errors = np.abs(values - trees.score)
    losses = np.add.reduceat(errors, trees.roots)
    sizes = np.diff(trees.first)
    mean, by_game = float(errors.mean()), Sample(np.zeros(len(trees)), games)
    return {
        "evaluator": name,
        "scale": compared.scale,
        "loss": float(losses.mean()),
        "loss_standard_error": by_game.standard_error(losses),
        "node_error": mean,
        "node_error_standard_error": by_game.standard_error(losses - mean * sizes) / float(sizes.mean()),
        "by_ply": [float(errors[trees.ply == ply].mean()) for ply in range(options.plies + 1)],
        "inconsistency": _inconsistency(values, trees),
    }


def _inconsistency(values: NDArray[np.float64], trees: Trees) -> float:
    """Mean distance at the roots between the value and the minimax of the values at the leaves: 0 for the true function."""
    backed_up = values.copy()
    back_up(backed_up, trees)
    return float(np.abs(values - backed_up)[trees.roots].mean())


@report("structural")
def section(results: Results) -> Iterator[Block]:
    """Performance model 3: structural minimax value loss."""
    yield (
        "For every position, all that can follow within two plies, each node with its exact value: the evaluator's "
        "absolute errors are added up over the tree and credited to its root. Report 002 proposed this "
        "measure and did not build it. Formulas are first scaled to fit best; the network is taken as it is. *Own "
        "minimax*: the mean distance between an evaluator's value of the root and the minimax of its "
        "values at the leaves of the tree, which is 0 for the true minimax function, its fixed point."
    )
    for one in results:
        plies, rows = [f"ply {ply}" for ply in range(one["plies"] + 1)], []
        for entry in sorted(one["evaluators"], key=lambda entry: entry["loss"]):
            loss = with_error(entry["loss"], entry["loss_standard_error"], 0)
            error = with_error(entry["node_error"], entry["node_error_standard_error"], 2)
            by_ply = [f"{error:.2f}" for error in entry["by_ply"]]
            rows.append([entry["evaluator"], loss, error, *by_ply, f"{entry['inconsistency']:.2f}"])
        rows.append(["always 0", "", f"{one['mean_absolute_score']:.2f}", *([""] * len(plies)), "0"])
        low, high = one["empties"]
        title = f"{game_name(one)}: {one['trees']} trees of {one['nodes'] / one['trees']:.0f} nodes on average, "
        title += f"roots with {low}–{high} empty squares, in discs"
        yield Table(title, ["evaluator", "loss a tree", "error a node", *plies, "own minimax"], rows)
    caption = "Structural loss a node; bars are 95 % intervals."
    yield panel_by_game("structural", caption, results, _draw, height=2.4)


def _draw(axis: Any, one: Mapping[str, Any]) -> None:
    entries = sorted(one["evaluators"], key=lambda entry: -entry["node_error"])
    heights, baseline = np.arange(len(entries)), one["mean_absolute_score"]
    errors = [Z_95 * (entry["node_error_standard_error"] or 0) for entry in entries]
    values = [entry["node_error"] for entry in entries]
    axis.errorbar(values, heights, xerr=errors, fmt="o", color=charts.BLUE, elinewidth=0.8)
    axis.axvline(baseline, color=charts.GREY, linewidth=0.8, linestyle="--")
    charts.label(axis, baseline, len(entries) - 0.6, "always 0", charts.GREY, at="right", shift=(-3, 0))
    axis.set_yticks(heights, [entry["evaluator"] for entry in entries])
    axis.set(xlabel="error a node, discs", xlim=(0, None), ylim=(-0.5, len(entries) - 0.3))
    axis.grid(axis="y", color=charts.GREY, linewidth=0.3, alpha=0.5)
    axis.tick_params(axis="y", length=0)
