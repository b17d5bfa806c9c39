"""The networks beside each other: same labels, several seeds.

Every seed plays its own games, solves the positions and fits every network to them with the options of `reversi train fit`. They
are measured on positions of other games that none has seen (`studies.training.comparing`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from models.patterns import NETWORKS
from models.patterns.trainable import Trainable
from studies.options import NetworksOptions
from studies.sections import Block, Results, report
from studies.training.comparing import Way, compare, solved_labels, tables
from train.fitting.options import preset
from train.fitting.trees import Trees, single_nodes
from train.jobs.logs import Progress, no_progress


def measure(options: NetworksOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Error and regret of every kind of network."""

    def labels(seed: int) -> Trees:
        return single_nodes(solved_labels(options, seed, options.positions))

    def ways(labels: Trees, seed: int) -> Iterator[Way]:
        for network in NETWORKS:
            fit_options = preset(options.size, network, seed=seed)
            fit_options = replace(fit_options, epochs=options.epochs or fit_options.epochs)
            yield network, Trainable(network, options.size), labels, fit_options

    return compare(options, labels, ways, progress)


@report("networks")
def section(results: Results) -> Iterator[Block]:
    yield from tables("network", results)
