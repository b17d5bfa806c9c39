"""Training in a folder, from labels or from scratch, to a weight file with its record, log and plot; resumable at any moment."""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from models.evaluator import NetworkEvaluator
from models.patterns import Network, read_weights
from models.patterns.trainable import PatternModule
from reversi_env import Rules
from reversi_env.errors import TrainError, extra_libraries, quoted
from search import evaluators
from train.charts import line_chart
from train.fitting.bootstrap import Bootstrap
from train.fitting.cpu_backend import backend_for
from train.fitting.fit import Epoch, FitOptions, checked_device, fit
from train.fitting.stages import BootstrapOptions
from train.fitting.torch_backend import CHUNK, TorchBackend
from train.jobs.logs import Progress, no_progress, write_csv
from train.jobs.provenance import provenance
from train.jobs.run import CHECKPOINT, MANIFEST, Run
from train.labels import Labels, read, read_manifest

with extra_libraries():
    import torch

LOG, PLOT = "log.csv", "error-by-empties.svg"


@dataclass(frozen=True)
class FitResult:
    """The result of a training: the weight file, and its error in discs on held-out positions.

    Without *held_out* positions it is the error on the training positions.
    """

    rules: Rules
    weights: Path
    validation_error: float
    error_by_empties: dict[int, float]
    positions: int
    epochs: int
    held_out: int = 1

    @property
    def judged_on(self) -> str:
        """The kind of positions on which the error was measured, in words."""
        return "held-out positions" if self.held_out else "the training positions"

    def save_plot(self) -> None:
        """Write the errors by empties as a chart beside the weights."""
        empties = sorted(self.error_by_empties)
        game = f"{self.rules.size}x{self.rules.size} {self.rules.variant}"
        title = f"{game}: mean absolute error on {self.judged_on}, no search"
        series = {"network": [self.error_by_empties[e] for e in empties]}
        chart = line_chart(title, "empty squares", "discs", empties, series)
        chart.save(self.weights.with_name(PLOT), optional=True)


def train_on_labels(
    folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: Path,
    options: FitOptions,
    *,
    network: str = "linear",
    start: str | None = None,
    command: str = "",
    device: str = "cpu",
    threads: int | None = None,
    progress: Callable[[Epoch], None] = lambda epoch: None,
) -> FitResult:
    """Fit a network to the datasets of `reversi label` in *folders*, or in one folder, in the folder *out*.

    *start* names initial weights (`starting_weights`): phases and patterns without labels then keep them. Interrupted in any way,
    the same call resumes after the last epoch; on a CPU the files are the same.
    """
    checked_device(device)
    paths = [Path(folder) for folder in ([folders] if isinstance(folders, (str, os.PathLike)) else folders)]
    datasets = [read(path) for path in paths]
    data = [_summary(path, labels) for path, labels in zip(paths, datasets, strict=True)]
    labels = Labels.concatenate(datasets) if len(datasets) > 1 else datasets[0]
    del datasets
    with Run(out, file=CHECKPOINT):
        initial_network = None if start is None else starting_weights(start, labels.rules, network)
        net = PatternModule.of(initial_network) if initial_network else PatternModule(network, labels.rules.size)
        epochs: list[Epoch] = []

        def log(epoch: Epoch) -> None:
            epochs.append(epoch)
            write_csv(out / LOG, [asdict(epoch) for epoch in epochs])
            progress(epoch)

        report = fit(
            *(net, labels, options),
            device=device,
            threads=threads,
            checkpoint=out / CHECKPOINT,
            fine_tunes=initial_network is not None,
            progress=log,
        )
        if initial_network:
            _restore_untrained_phases(net, initial_network, np.unique(labels.empties))
            if backend_for(network, device) is TorchBackend:  # compiled steps do not change these rows
                _restore_untrained_rows(net, initial_network, labels, threads)
        record = {
            "training": "labels",
            "network": network,
            **({"start_sha256": evaluators.get_evaluator(start).sha256(labels.rules)} if start else {}),
            "options": options.as_dict(),
            "device": device,
            "data": data if len(data) > 1 else data[0],
            "positions": report.positions,
            "held_out": report.held_out,
            **report.metrics(),
            **provenance(command),
        }
        path = net.cpu().to_network(labels.rules, record).save_in(out)
        errors = (report.validation_error, report.error_by_empties)
        result = FitResult(labels.rules, path, *errors, len(labels), len(report.epochs), report.held_out)
        result.save_plot()
    return result


def starting_weights(start: str, rules: Rules, network: str | None = None) -> Network:
    """Return the weights for a game that *start* names, ``network`` or ``network:weights=FILE``, of the kind *network*."""
    evaluator = evaluators.get_evaluator(start)
    if not isinstance(evaluator, NetworkEvaluator):
        raise TrainError(f"start {quoted(start)}: expected network, or network:weights=FILE")
    weights = evaluator.weights(rules)
    if network not in (None, weights.name):
        raise TrainError(
            f"a {network} network to start from {quoted(start)}: expected {weights.name}, the kind of its weights"
        )
    return weights


def _restore_untrained_phases(net: PatternModule, initial_network: Network, empties: np.ndarray) -> None:
    """Restore the phases without any of these *empties*: phase jitter has changed neighbours of trained phases."""
    initial = PatternModule.of(initial_network)
    others = np.setdiff1d(np.arange(net.phases), empties // net.span)
    for part, before in zip(net.by_phase(), initial.by_phase(), strict=True):
        part[others] = before[others].to(part.device)
    by_empties, before = net.by_empties(), initial.by_empties()
    others = np.setdiff1d(np.arange(len(by_empties)), empties)
    by_empties[others] = before[others].to(by_empties.device)


def _restore_untrained_rows(net: PatternModule, initial_network: Network, labels: Labels, threads: int | None) -> None:
    """Restore the rows of the table that no position has: with torch, weight decay has changed them."""
    if not net.kind.per_phase:
        return
    table, before = net.by_phase()[0], PatternModule.of(initial_network).by_phase()[0]
    occurs = torch.zeros(table.shape[1], dtype=torch.bool, device=net.device)
    for start in range(0, len(labels), CHUNK):
        rows = slice(start, start + CHUNK)
        features = net.feature_array(labels.own[rows], labels.opp[rows], threads or os.cpu_count() or 1)
        occurs[torch.as_tensor(features).flatten().long()] = True
    others = (~occurs).nonzero().squeeze(1)
    table[:, others] = before.to(table.device)[:, others]


def train_from_scratch(
    out: Path,
    options: BootstrapOptions,
    *,
    command: str = "",
    device: str = "cpu",
    threads: int | None = None,
    progress: Progress = no_progress,
) -> FitResult:
    """Run the whole bootstrap in the folder *out*; interrupted in any way, the same call resumes it."""
    run = Bootstrap(out, options, device=device, threads=threads, progress=progress)
    last = read_weights(run.run())
    path = replace(last, record={**last.record, **provenance(command)}).save_in(out)
    metrics = run.metrics()
    # The error at a number of empties is that of the last stage with such positions.
    errors = {int(e): error for row in metrics for e, error in row["error_by_empties"].items()}
    positions, epochs = (sum(row[name] for row in metrics) for name in ("positions", "epochs"))
    errors = dict(sorted(errors.items()))
    result = FitResult(last.rules, path, metrics[-1]["validation_error"], errors, positions, epochs)
    result.save_plot()
    return result


def _summary(folder: Path, labels: Labels) -> dict[str, Any]:
    """Return the options that made the labels, a hash of their manifest, and statistics."""
    manifest = read_manifest(folder)
    return {
        "labels": manifest.options.as_dict(),
        "manifest_sha256": hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest(),
        "rows": len(labels),
        "exact": int(labels.exact.sum()),
        "mean_absolute_score": round(float(np.abs(labels.score).mean()), 3),
    }
