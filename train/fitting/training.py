"""Whole trainings in a folder: from labels to a weight file with its record, log and plot, resumable at any moment."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from models.evaluator import NetworkEvaluator
from models.patterns import Network, read_weights
from models.patterns.trainable import Trainable
from reversi_env import Rules
from reversi_env.errors import TrainError, extra_libraries, quoted
from search import evaluators
from train.charts import line_chart
from train.fitting.bootstrap import Bootstrap
from train.fitting.cpu_backend import backend_for
from train.fitting.fit import Epoch, FitOptions, checked_device, fit
from train.fitting.stages import BootstrapOptions
from train.fitting.torch_backend import CHUNK, TorchBackend
from train.fitting.trees import Trees, grow_trees
from train.jobs.logs import Progress, no_progress, write_csv
from train.jobs.provenance import provenance
from train.jobs.run import CHECKPOINT, MANIFEST, Run
from train.labels import Labels, read, read_manifest

with extra_libraries():
    import torch

LOG, PLOT = "log.csv", "error-by-empties.svg"


@dataclass(frozen=True)
class FitResult:
    """What a training left: the weight file, and its error in discs on positions that were held out.

    With none *held_out* it is that on those that it has learnt from.
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
        """Which positions the error is of, in words."""
        return _judged_on(self.held_out)


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
    on_solved: Callable[[int, int], None] = lambda done, total: None,
    progress: Callable[[Epoch], None] = lambda epoch: None,
) -> FitResult:
    """Fit a network to the data sets that `reversi label` made in *folders*, or in one folder, in the folder *out*.

    *start* names weights to go on from (`starting_weights`): phases and patterns of which there are no labels stay as they
    are then. Interrupted in any way, the same call resumes after the last whole epoch. On a CPU the same files come out.
    *on_solved* is called with the number of solved successors and their total, for the structural loss.
    """
    _check_device_and_loss(network, options, device)
    paths = [Path(folder) for folder in ([folders] if isinstance(folders, (str, os.PathLike)) else folders)]
    sets = [read(path) for path in paths]
    about = [_summary(path, labels) for path, labels in zip(paths, sets, strict=True)]
    labels, data = (Labels.concatenate(sets), about) if len(sets) > 1 else (sets[0], about[0])
    del sets
    how: dict[str, Any] = {"network": network, "start": start, "command": command, "device": device, "threads": threads}
    return train_in_folder(lambda: labels, data, out, options, **how, on_solved=on_solved, progress=progress)


def train_in_folder(
    read_labels: Callable[[], Labels],
    data: Any,
    out: Path,
    options: FitOptions,
    *,
    network: str,
    start: str | None,
    command: str,
    device: str,
    threads: int | None,
    on_solved: Callable[[int, int], None] = lambda done, total: None,
    progress: Callable[[Epoch], None] = lambda epoch: None,
) -> FitResult:
    """Fit a network to labels in the folder *out*, which is this process's alone while they are read.

    *data* is what the record says of them.
    *start* names weights of the same kind to go on from, or none.
    """
    _check_device_and_loss(network, options, device)
    with Run(out, file=CHECKPOINT):
        labels = read_labels()
        training_set: Labels | Trees = labels
        if options.loss == "structural":
            training_set = grow_trees(labels, options.plies, device=device, threads=threads, progress=on_solved)
        initial_network = None if start is None else starting_weights(start, labels.rules, network)
        net, epochs = (
            Trainable.of(initial_network) if initial_network else Trainable(network, labels.rules.size),
            list[Epoch](),
        )

        def log(epoch: Epoch) -> None:
            epochs.append(epoch)
            write_csv(out / LOG, [asdict(one) for one in epochs])
            progress(epoch)

        how: dict[str, Any] = {"device": device, "threads": threads, "checkpoint": out / CHECKPOINT}
        report = fit(net, training_set, options, **how, fine_tunes=initial_network is not None, progress=log)
        if initial_network:
            _restore_untrained_phases(net, initial_network, np.unique(training_set.empties))
            if backend_for(network, options.loss, device) is TorchBackend:  # compiled steps leave them alone
                _restore_untrained_rows(net, initial_network, training_set, threads)
        record = {
            "training": "labels",
            "network": network,
            **({"start_sha256": evaluators.get_evaluator(start).sha256(labels.rules)} if start else {}),
            "options": options.as_dict(),
            "device": device,
            "data": data,
            "positions": report.positions,
            "held_out": report.held_out,
            **report.metrics(),
            **provenance(command),
        }
        path = net.cpu().to_network(labels.rules, record).save_in(out)
        game = f"{labels.rules.size}x{labels.rules.size} {labels.rules.variant}"
        _write_plot(out, game, report.error_by_empties, _judged_on(report.held_out))
    counts = len(labels), len(report.epochs), report.held_out
    return FitResult(labels.rules, path, report.validation_error, report.error_by_empties, *counts)


def _judged_on(held_out: int) -> str:
    """Which positions an error is of."""
    return "held-out positions" if held_out else "the positions that it learnt from"


def starting_weights(start: str, rules: Rules, network: str | None = None) -> Network:
    """The weights for a game that *start* names, ``network`` or ``network:weights=FILE``; of the kind *network*, if given."""
    evaluator = evaluators.get_evaluator(start)
    if not isinstance(evaluator, NetworkEvaluator):
        raise TrainError(f"start {quoted(start)}: expected network, or network:weights=FILE")
    weights = evaluator.weights(rules)
    if network not in (None, weights.name):
        raise TrainError(
            f"a {network} network to start from {quoted(start)}: expected {weights.name}, which its weights are"
        )
    return weights


def _check_device_and_loss(network: str, options: FitOptions, device: str) -> None:
    """Refuse a device that is not there, and a loss that a kind of network does not have on it, before any work."""
    checked_device(device)
    backend_for(network, options.loss, device)


def _restore_untrained_phases(net: Trainable, initial_network: Network, empties: np.ndarray) -> None:
    """Put the phases that have none of these *empties* back to what they were: by blur, neighbours have learnt a little too."""
    known = Trainable.of(initial_network)
    others = np.setdiff1d(np.arange(net.phases), empties // net.span)
    for part, before in zip(net.by_phase(), known.by_phase(), strict=True):
        part[others] = before[others].to(part.device)
    by_empties, before = net.by_empties(), known.by_empties()
    others = np.setdiff1d(np.arange(len(by_empties)), empties)
    by_empties[others] = before[others].to(by_empties.device)


def _restore_untrained_rows(
    net: Trainable, initial_network: Network, training_set: Labels | Trees, threads: int | None
) -> None:
    """Put the rows of the table that no position has back to what they were: with torch they have decayed."""
    if not net.kind.per_phase:
        return
    table, before = (one.by_phase()[0] for one in (net, Trainable.of(initial_network)))
    occurs = torch.zeros(table.shape[1], dtype=torch.bool, device=net.device)
    for start in range(0, len(training_set.own), CHUNK):
        piece = slice(start, start + CHUNK)
        features = net.feature_array(training_set.own[piece], training_set.opp[piece], threads or os.cpu_count() or 1)
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
    """The whole bootstrap in the folder *out*; interrupted in any way, the same call goes on where it was."""
    run = Bootstrap(out, options, device=device, threads=threads, progress=progress)
    last = read_weights(run.run())
    path = replace(last, record={**last.record, **provenance(command)}).save_in(out)
    figures = run.metrics()
    # every number of empties by the last stage that was measured at it
    errors = {int(e): error for row in figures for e, error in row["error_by_empties"].items()}
    errors = dict(sorted(errors.items()))  # a weight file has them by name
    _write_plot(out, f"{options.size}x{options.size} {options.variant}", errors, _judged_on(held_out=1))
    positions = sum(row["positions"] for row in figures)
    epochs = sum(row["epochs"] for row in figures)
    return FitResult(last.rules, path, figures[-1]["validation_error"], errors, positions, epochs)


def _summary(folder: Path, labels: Labels) -> dict[str, Any]:
    """What the labels were: the options that make them again, and a hash of their manifest."""
    manifest = read_manifest(folder)
    return {
        "labels": manifest.options.as_dict(),
        "manifest_sha256": hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest(),
        "rows": len(labels),
        "exact": int(labels.exact.sum()),
        "mean_absolute_score": round(float(np.abs(labels.score).mean()), 3),
    }


def _write_plot(out: Path, game: str, errors: dict[int, float], positions: str) -> None:
    empties = sorted(errors)
    title = f"{game}: mean absolute error on {positions}, no search"
    chart = line_chart(title, "empty squares", "discs", empties, {"network": [errors[e] for e in empties]})
    chart.save(out / PLOT, optional=True)
