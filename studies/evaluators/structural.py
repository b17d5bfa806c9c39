"""Performance model 3: the structural minimax value loss of an evaluator.

A position is the root of a tree of all that can follow within some plies. The solver gives the exact score of every node. The
evaluator's absolute errors at all nodes are added up, and counted as the loss of the root.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules, batch
from search import evaluators
from search.engine.solver import solve_batch
from search.evaluators.formula import Formula
from studies.figures import DOTS, Panel, Series, figure
from studies.options import StructuralOptions
from studies.sections import Block, Cell, Results, Row, error_cell, game_name, report, table
from train.arena.results import Z_95
from train.evaluation.exact_set import Boards, ExactSet
from train.evaluation.means import Sample
from train.jobs.logs import Progress, no_progress
from train.labels.labellers import check_solvable
from train.labels.sampling import sample_games


@dataclass(frozen=True, eq=False)
class Trees:
    """Positions with their successors, ply after ply: arrays with an entry per node, the roots first.

    ``own``, ``opp``: boards from the view of the node's side to move. ``tree``: number of the root. ``ply``: plies below it.
    ``parent``: index of the parent, -1 at a root.
    """

    own: Boards
    opp: Boards
    tree: NDArray[np.int64]
    ply: NDArray[np.int64]
    parent: NDArray[np.int64]

    def back_up(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return *values* with those of inner nodes replaced by the maximum of the negated values of their children."""
        backed_up = values.copy()
        for ply in range(int(self.ply.max()), 0, -1):
            nodes = np.flatnonzero(self.ply == ply)
            backed_up[np.unique(self.parent[nodes])] = -np.inf
            np.maximum.at(backed_up, self.parent[nodes], -backed_up[nodes])
        return backed_up


def grow_trees(own: Boards, opp: Boards, rules: Rules, plies: int) -> Trees:
    """Return the positions with all successors within *plies*; a pass is a ply."""
    roots = np.arange(len(own))
    levels, first = [(own, opp, roots, np.zeros_like(roots), np.full_like(roots, -1))], 0
    for ply in range(1, plies + 1):
        own, opp, tree, *_ = levels[-1]
        below = batch.expand(own, opp, rules)
        levels.append((below.own, below.opp, tree[below.parent], np.full(len(below.own), ply), below.parent + first))
        first += len(own)
    return Trees(*(np.concatenate(column) for column in zip(*levels, strict=True)))


def exact_scores(trees: Trees, rules: Rules, progress: Progress) -> NDArray[np.float64]:
    """Return the exact score of every node for its side to move; only the leaves have to be solved."""
    leaves = np.setdiff1d(np.arange(len(trees.own)), trees.parent)
    own, opp = trees.own[leaves], trees.opp[leaves]
    over = batch.is_over(own, opp, rules)
    solved = np.array(batch.final_scores(own, opp, rules), np.float64)
    count = int((~over).sum())
    solved[~over] = solve_batch(
        own[~over], opp[~over], rules, progress=lambda done: progress("solving successors", done, count)
    )
    scores = np.zeros(len(trees.own))
    scores[leaves] = solved
    return trees.back_up(scores)


def measure(options: StructuralOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Return every evaluator's loss per tree and per node, its error by ply, and its distance from its own minimax."""
    rules, labels = options.rules, options.labels()
    check_solvable(options.empties[1], rules, labels.labeller)
    progress("positions", 0, 1)
    own, opp, games = sample_games(labels)
    trees = grow_trees(own, opp, rules, options.plies)
    scores = exact_scores(trees, rules, progress)
    by_game = Sample(np.zeros(len(games)), games)
    losses = [_judged(name, trees, scores, by_game, options) for name in options.names]
    sizes = {"trees": len(games), "nodes": len(scores), "mean_absolute_score": float(np.abs(scores).mean())}
    return options.measured(plies=options.plies, empties=list(options.empties), **sizes, evaluators=losses)


def _judged(
    name: str, trees: Trees, scores: NDArray[np.float64], by_game: Sample, options: StructuralOptions
) -> dict[str, Any]:
    evaluator, rules = evaluators.get_evaluator(name), options.rules
    going = ~batch.is_over(trees.own, trees.opp, rules)
    exact = ExactSet(rules, trees.own[going], trees.opp[going], scores[going].astype(np.int64))
    static = evaluator.static_values(exact.own, exact.opp, rules)
    compared = exact.compare(static, scaled=not options.as_is and isinstance(evaluator, Formula))
    values = scores.copy()
    values[going] = compared.values
    errors, sizes = np.abs(values - scores), np.bincount(trees.tree)
    losses, mean = np.bincount(trees.tree, errors), float(errors.mean())
    return {
        "evaluator": name,
        "scale": compared.scale,
        "loss": float(losses.mean()),
        "loss_standard_error": by_game.standard_error(losses),
        "node_error": mean,
        "node_error_standard_error": by_game.standard_error(losses - mean * sizes) / float(sizes.mean()),
        "by_ply": [float(errors[trees.ply == ply].mean()) for ply in range(options.plies + 1)],
        # 0 for the true minimax function, which is its own minimax
        "inconsistency": float(np.abs(values - trees.back_up(values))[: len(sizes)].mean()),
    }


@report("structural")
def section(results: Results) -> Iterator[Block]:
    """Performance model 3: structural minimax value loss."""
    for one in results:
        columns: dict[str, Cell] = {
            "evaluator": "{evaluator}",
            "loss a tree": error_cell("loss", 0),
            "error a node": error_cell("node_error", 2),
            **{f"ply {ply}": f"{{by_ply[{ply}]:.2f}}" for ply in range(one["plies"] + 1)},
            "own minimax": "{inconsistency:.2f}",
        }
        zero = ["always 0", "", f"{one['mean_absolute_score']:.2f}", *[""] * (one["plies"] + 1), "0"]
        low, high = one["empties"]
        title = f"{game_name(one)}: {one['trees']} trees of {one['nodes'] / one['trees']:.0f} nodes on average, "
        title += f"roots with {low}–{high} empty squares, in discs"
        yield table(title, sorted(one["evaluators"], key=lambda entry: entry["loss"]), columns, last=zero)
    caption = "Structural loss a node; bars are 95 % intervals."
    yield figure("structural", caption, [_panel(one) for one in results], height=2.4)


def _panel(one: Row) -> Panel:
    entries = sorted(one["evaluators"], key=lambda entry: -entry["node_error"])
    values, names = ([entry[key] for entry in entries] for key in ("node_error", "evaluator"))
    errors = [Z_95 * (entry["node_error_standard_error"] or 0) for entry in entries]
    series = [Series("", values, range(len(names)), errors, DOTS)]
    axis = {"xlabel": "error a node, discs", "xlim": (0, None)}
    return Panel(game_name(one), series, axis, {"always 0": one["mean_absolute_score"]}, names)
