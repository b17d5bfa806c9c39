"""What comparisons of ways to train share: labels of several seeds, and a measure on positions that no network has seen.

Measured are the mean absolute error of the static value, and the regret, in discs, of the move that leaves the other side the
worst static value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from models.bitboards import board_tensor
from models.patterns.trainable import Trainable
from reversi_env import batch
from reversi_env.errors import extra_libraries
from studies.options import ComparisonOptions
from studies.sections import Block, Results, Table, game_name, plus_minus
from train.evaluation.means import Sample, plain
from train.fitting.fit import FitOptions, fit
from train.fitting.trees import Trees, grow_trees
from train.jobs.logs import Progress
from train.labels import LabelOptions, Labels, label_positions
from train.labels.sampling import sample_block

with extra_libraries():
    import torch

#: Seeds of the games that the networks are measured on begin here.
EXAM_SEED = 1_000_000


def solved_labels(options: ComparisonOptions, seed: int, count: int) -> Labels:
    """Return solved positions from the games of a seed."""
    sampled = LabelOptions(options.size, options.variant, count, options.empties, seed, play_depth=1)
    return label_positions(*sample_block(sampled, 0), sampled)


#: What is measured, as `Measured` names it.
FIGURES = "error", "regret"


class Measured(NamedTuple):
    """One network on the positions of the exam, in discs."""

    error: float
    regret: float


#: A way to train: its name, a network, what it is fitted to and how.
Way = tuple[str, Trainable, Trees, FitOptions]


def compare(
    options: ComparisonOptions,
    trees: Callable[[int], Trees],
    ways: Callable[[Trees, int], Iterator[Way]],
    progress: Progress,
) -> dict[str, Any]:
    """Mean and 95 % interval over the seeds of every way; *trees* are those of a seed."""
    by_way: dict[str, list[Measured]] = {}
    for seed in range(options.seeds):
        progress(f"labels of seed {seed}", seed, options.seeds)
        seen = trees(seed)
        exam = unseen(grow_trees(solved_labels(options, EXAM_SEED + seed, options.exam)), seen)
        for name, net, data, fit_options in ways(seen, seed):
            progress(f"seed {seed}, {name}", seed, options.seeds)
            fit(net, data, fit_options)
            by_way.setdefault(name, []).append(judge(net, exam))
    return options.measured(ways=[{"name": name, **mean_figures(measured)} for name, measured in by_way.items()])


def mean_figures(measured: Sequence[Measured]) -> dict[str, Any]:
    """Means of both figures, with standard errors and 95 % intervals over the seeds."""
    means: dict[str, Any] = {}
    for name, values in zip(FIGURES, np.array(measured).T, strict=True):
        mean = Sample(np.zeros(len(values))).mean(values)
        means |= {name: mean.mean, f"{name}_standard_error": mean.standard_error, f"{name}_interval": mean.interval}
    return plain(means) | {"seeds": [one._asdict() for one in measured]}


def unseen(exam: Trees, trees: Trees) -> Trees:
    """The trees of the exam whose root is no node of the training, nor a mirror image of one."""
    own, opp = exam.own[exam.roots], exam.opp[exam.roots]
    return exam.select(~np.isin(batch.image_hash(own, opp), batch.image_hash(trees.own, trees.opp)))


def judge(net: Trainable, exam: Trees) -> Measured:
    """Error of the static value at the roots, and regret of the best move by the static values after it."""
    with torch.no_grad():
        values = net(board_tensor(exam.own), board_tensor(exam.opp)).numpy()
    values = np.where(exam.finished, exam.score, values)
    error = np.abs(values - exam.score)[exam.roots].mean()
    regrets = []
    for root, after in zip(exam.first[:-1], exam.first[1:], strict=True):
        children = slice(root + 1, after)  # of one ply
        chosen = root + 1 + int(np.argmin(values[children]))
        regrets.append(exam.score[root] + exam.score[chosen])
    return Measured(float(error), float(np.mean(regrets)))


def tables(kind: str, results: Results) -> Iterator[Block]:
    """Yield a table for each game, of ways that differ in their *kind*."""
    for one in results:
        rows = [
            [way["name"], *(_cell(way[figure], way[f"{figure}_interval"]) for figure in FIGURES)] for way in one["ways"]
        ]
        title = f"{game_name(one)}: means of {one['options']['seeds']} seeds ± 95 % interval (Student's t)"
        yield Table(title, [kind, "error, discs", "regret of the best move, discs"], rows)


def _cell(mean: float, interval: Sequence[float] | None) -> str:
    return plus_minus(mean, None if interval is None else interval[1] - mean)
