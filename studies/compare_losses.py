"""The structural minimax value loss beside the plain one: same labels, same number of steps, several seeds.

    python -m studies.compare_losses --size 6 --empties 6-10 --positions 20000 --seeds 3

Every seed plays its own games, solves the positions and all their successors (a tree of one ply or two), and fits one network
for each way to use these labels. All networks see equally many positions in equally many steps. They are measured on
positions of other games that no network has seen, not even as a successor: the mean absolute error of the static value, and
the regret, in discs, of the move that leaves the other side the worst static value.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from models.boards import board_tensor
from models.trainable import Trainable
from reversi_env import Rules, batch
from reversi_env.extras import extra_libraries
from reversi_env.rules import Variant
from train.errors import TrainError
from train.fitting.fit import FitOptions, fit
from train.fitting.trees import Trees, grow, single_nodes
from train.labels import LabelOptions, Labels, label_positions, sample_positions

with extra_libraries():
    import torch

#: Seeds of the games that the networks are measured on begin here.
EXAM_SEED = 1_000_000


@dataclass(frozen=True)
class CompareOptions:
    """What to compare on.

    * ``size``, ``variant``, ``empties``: the positions.
    * ``positions``: roots of the trees, for every seed.
    * ``plies``: depth of the trees.
    * ``exam``: positions that the networks are measured on.
    * ``epochs``: times that each network sees as many positions as the trees have nodes.
    * ``batch``: positions a step, successors included.
    * ``rate``: Adam's step at the beginning.
    * ``seeds``: how many times all is done, with other games and other orders.
    """

    size: int = 6
    variant: Variant = "normal"
    empties: tuple[int, int] = (6, 10)
    positions: int = 20_000
    plies: int = 1
    exam: int = 5_000
    epochs: int = 10
    batch: int = 1024
    rate: float = 0.03
    seeds: int = 3

    def __post_init__(self) -> None:
        for name in ("positions", "exam", "epochs", "batch", "seeds"):
            if getattr(self, name) < 1:
                raise TrainError(f"{name}={getattr(self, name)}: expected a whole number, 1 or more")

    def labels(self, seed: int, count: int) -> Labels:
        """Solved positions from the games of a seed."""
        options = LabelOptions(
            self.size, self.variant, count, self.empties, seed, shard_rows=count, block_rows=count, play_depth=1
        )
        return label_positions(*sample_positions(options, 0), options)


class Measured(NamedTuple):
    """One network on the positions of the exam, in discs."""

    error: float
    regret: float


@dataclass(frozen=True)
class Way:
    """One way to use the labels, and what the networks of all seeds measured."""

    name: str
    measured: tuple[Measured, ...]

    def mean(self, what: str) -> tuple[float, float]:
        """Mean and standard error of ``error`` or ``regret`` over the seeds."""
        found = np.array([getattr(one, what) for one in self.measured])
        spread = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else float("nan")
        return float(found.mean()), float(spread)


def compare(options: CompareOptions) -> list[Way]:
    """All ways, measured with all seeds."""
    found: dict[str, list[Measured]] = {}
    for seed in range(options.seeds):
        trees = grow(options.labels(seed, options.positions), options.plies)
        exam = unseen(grow(options.labels(EXAM_SEED + seed, options.exam)), trees)
        for name, (data, fit_options) in _ways(options, trees, seed).items():
            net = Trainable("linear", options.size)
            fit(net, data, fit_options)
            found.setdefault(name, []).append(measure(net, exam))
    return [Way(name, tuple(measured)) for name, measured in found.items()]


def _ways(options: CompareOptions, trees: Trees, seed: int) -> dict[str, tuple[Trees, FitOptions]]:
    nodes, plain = trees.alone(), FitOptions(learning_rate=options.rate, batch_size=options.batch, seed=seed)
    a_tree = trees.nodes / len(trees)
    plain = replace(plain, epochs=options.epochs, patience=options.epochs)
    more = max(1, round(options.epochs * a_tree))
    structural = replace(
        plain, loss="structural", plies=options.plies, batch_size=max(1, round(options.batch / a_tree))
    )
    others = single_nodes(options.labels(EXAM_SEED // 2 + seed, nodes.nodes))
    return {
        "plain: roots alone, seen more often": (trees.alone_roots(), replace(plain, epochs=more, patience=more)),
        "plain: all nodes, each for itself": (nodes, plain),
        "structural: errors of all nodes, no consistency": (trees, replace(structural, consistency=0.0)),
        "structural: consistency 0.5": (trees, replace(structural, consistency=0.5)),
        "structural: consistency 2": (trees, replace(structural, consistency=2.0)),
        "structural: successors count half, consistency 0.5": (
            *(trees, replace(structural, consistency=0.5, ply_weight=0.5)),
        ),
        "plain: as many positions of other games": (others, plain),
    }


def unseen(exam: Trees, trees: Trees) -> Trees:
    """The trees of the exam whose root is no node of the training, nor a mirror image of one."""
    own, opp = exam.own[exam.roots], exam.opp[exam.roots]
    return exam.select(~np.isin(_keys(own, opp), _keys(trees.own, trees.opp)))


def _keys(own: np.ndarray, opp: np.ndarray) -> np.ndarray:
    return batch.position_hash(*batch.canonical(own, opp)[:2])


def measure(net: Trainable, exam: Trees) -> Measured:
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


def table(ways: Sequence[Way], what_differs: str = "labels used") -> str:
    """The result in Markdown: mean and standard error over the seeds."""
    lines = [f"| {what_differs} | error, discs | regret of the best move, discs |", "|---|---|---|"]
    for way in ways:
        cells = ["{:.3f} ± {:.3f}".format(*way.mean(what)) for what in ("error", "regret")]
        lines.append(f"| {way.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def range_of(parser: argparse.ArgumentParser, empties: str) -> tuple[int, int]:
    """Lowest and highest of ``LOW-HIGH``; anything else ends the command."""
    try:
        low, high = map(int, empties.split("-"))
    except ValueError:
        parser.error("--empties: expected a range, as in 6-10")
    return low, high


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.compare_losses", description=__doc__.split("\n")[0])
    defaults = CompareOptions()
    parser.add_argument("--size", type=int, default=defaults.size)
    parser.add_argument("--variant", choices=["normal", "reversed"], default=defaults.variant)
    parser.add_argument("--empties", default="6-10", help="lowest and highest number of empty squares")
    parser.add_argument("--rate", type=float, default=defaults.rate)
    for name in ("positions", "plies", "exam", "epochs", "batch", "seeds"):
        parser.add_argument(f"--{name}", type=int, default=getattr(defaults, name))
    given = vars(parser.parse_args(arguments))
    empties = range_of(parser, given.pop("empties"))
    Rules(given["size"], given["variant"])
    print(table(compare(CompareOptions(empties=empties, **given))), flush=True)


if __name__ == "__main__":
    main()
