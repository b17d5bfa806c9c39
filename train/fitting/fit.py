"""Fitting a network over patterns to labels.

The features of all positions are computed once, so that an epoch is nothing but table look-ups. Positions whose canonical hash
falls into a fixed share are held out: mirror images never come to lie on both sides. With a checkpoint, a fit that was
interrupted in any way goes on after its last whole epoch and ends, on a CPU, with the very weights that it would have had.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models.patterns.trainable import Trainable
from reversi_env import batch
from reversi_env.errors import TrainError, extra_libraries
from train.fitting.cpu_backend import backend_for
from train.fitting.options import FitOptions
from train.fitting.torch_backend import State, node_weights_of, prepare
from train.fitting.trees import Trees, grow_trees, single_nodes
from train.jobs.logs import load_state, save_state
from train.jobs.run import check_resumable
from train.labels import Labels

with extra_libraries():
    import torch


@dataclass(frozen=True)
class Epoch:
    """One epoch's figures: mean absolute errors in discs."""

    number: int
    epochs: int
    training_error: float
    validation_error: float


@dataclass(frozen=True)
class FitReport:
    """How a fit went: the epochs, and the held-out error of the kept weights by number of empties, in discs.

    ``positions``, ``held_out``: how many were learnt from and how many kept for validation; with none held out the error is
    that of the training positions. ``nodes``: positions looked at together with the trees below them.
    """

    epochs: tuple[Epoch, ...]
    validation_error: float
    error_by_empties: dict[int, float]
    positions: int
    held_out: int
    nodes: int

    def metrics(self) -> dict[str, Any]:
        """What a weight file tells about its fit; errors in discs."""
        return {
            "epochs": len(self.epochs),
            "validation_error": round(self.validation_error, 3),
            "error_by_empties": self.error_by_empties,
        }


def held_out_rows(own: np.ndarray, opp: np.ndarray, share: float) -> np.ndarray:
    """Which positions are for validation: a choice by canonical hash, the same for symmetric images and in every data set."""
    if share <= 0:
        return np.zeros(len(own), np.bool_)
    canonical_own, canonical_opp = batch.canonical(own, opp)[:2]
    return batch.position_hash(canonical_own, canonical_opp) < np.uint64(int(share * 2**64))


def fit(
    net: Trainable,
    labels: Labels | Trees,
    options: FitOptions | None = None,
    *,
    device: str = "cpu",
    threads: int | None = None,
    checkpoint: Path | None = None,
    fine_tunes: bool = False,
    progress: Callable[[Epoch], None] = lambda epoch: None,
) -> FitReport:
    """Fit *net* in place, from the weights that it has; the weights with the lowest validation error are kept.

    Those that it begins with are among them if it *fine_tunes*, from weights that have learnt something already.
    *checkpoint* is a file that is written after every epoch and read if it is there; the epochs that it knows are reported
    to *progress* at once. One of another fit raises a `TrainError`. With the structural loss, successors of labelled
    positions are solved first, unless *labels* are `Trees` already.
    """
    options = options or FitOptions()
    if isinstance(labels, Trees):
        trees = labels
    elif options.loss == "structural":
        trees = grow_trees(labels, options.plies, device=device, threads=threads)
    else:
        trees = single_nodes(labels)
    if trees.rules.size != net.size or not len(trees):
        raise TrainError(
            f"{len(trees)} positions of the {trees.rules.size}x{trees.rules.size} board for a network of the "
            f"{net.size}x{net.size} board: expected positions of that board"
        )
    if not np.isfinite(trees.score).all():
        wrong = int(np.flatnonzero(~np.isfinite(trees.score))[0])
        raise TrainError(f"score {trees.score[wrong]} of position {wrong}: expected finite numbers of discs")
    fitting = _Fit(net, trees, options, checked_device(device), threads)
    if fine_tunes:
        fitting.keep_initial_weights()
    fingerprint = "" if checkpoint is None else _fingerprint(net, trees, options, device)
    if checkpoint is not None:
        fitting.restore(checkpoint, fingerprint)
    for epoch in fitting.epochs:
        progress(epoch)
    while not fitting.is_done():
        fitting.next_epoch()
        if checkpoint is not None:
            fitting.save(checkpoint, fingerprint)
        progress(fitting.epochs[-1])
    return fitting.finish()


def checked_device(name: str) -> torch.device:
    """The device of that name, if there is one here."""
    if name not in ("cpu", "cuda"):
        raise TrainError(f"device {name!r}: expected cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise TrainError("device cuda cannot be used (torch sees no CUDA GPU): expected one, or device cpu")
    return torch.device(name)


class _Fit:
    """One fit: the engine, the best weights so far, and the epochs that led there."""

    def __init__(
        self, net: Trainable, trees: Trees, options: FitOptions, device: torch.device, threads: int | None
    ) -> None:
        self.net, self.options = net.to(device), options
        hidden = held_out_rows(trees.own, trees.opp, options.held_out)
        held_out = hidden[trees.roots]
        self.counts = (int((~held_out).sum()), int(held_out.sum()))
        if not self.counts[0]:
            raise TrainError(f"all {len(trees)} positions are held out for validation: expected more positions")
        # nor are those held out learnt from as successors
        weights = np.where(hidden, np.float32(0), node_weights_of(trees, options))
        training, self.validation = trees.select(~held_out), trees.select(held_out if held_out.any() else ~held_out)
        nodes_of_tree = np.repeat(held_out, np.diff(trees.first))
        self.nodes = training.nodes
        data = (
            prepare(net, training, weights[~nodes_of_tree], threads),
            prepare(net, self.validation, np.zeros(self.validation.nodes), threads),
        )
        self.engine = backend_for(net.kind.name, options.loss, device.type)(net, *data, options, threads)
        self.epochs: list[Epoch] = []
        self.best, self.since, self.kept = float("inf"), 0, self.engine.weights()

    def keep_initial_weights(self) -> None:
        """Let no epoch count that is worse than the weights that it begins with."""
        self.best = float(self._errors().mean())

    def is_done(self) -> bool:
        """Whether there are no more epochs, or patience has ended."""
        return len(self.epochs) >= self.options.epochs or self.since >= self.options.patience

    def next_epoch(self) -> None:
        """Go through the data once more."""
        number = len(self.epochs) + 1
        training_error = self.engine.epoch(number)
        validation_error = float(self._errors().mean())
        self.epochs.append(Epoch(number, self.options.epochs, training_error, validation_error))
        self.since += 1
        if validation_error < self.best:
            self.best, self.kept, self.since = validation_error, self.engine.weights(), 0

    def finish(self) -> FitReport:
        """Put the best weights into the network, rounded, as the fit went by them; how it went."""
        if not any(np.isfinite(epoch.validation_error) for epoch in self.epochs):
            raise TrainError(
                f"the fit has lost its way, its error is no number any more: expected a learning rate below "
                f"{self.options.learning_rate:g}, or larger batches, in another folder"
            )
        self.engine.load_weights(self.kept)
        errors, empties = self._errors(), self.validation.empties[self.validation.roots]
        by_empties = {int(e): round(float(errors[empties == e].mean()), 3) for e in np.unique(empties)}
        self.net.quantise()
        return FitReport(tuple(self.epochs), self.best, by_empties, *self.counts, self.nodes)

    def save(self, path: Path, fingerprint: str) -> None:
        """Write all that a fit needs to go on, as it is after an epoch."""
        epochs = [asdict(epoch) for epoch in self.epochs]
        header = {
            "fingerprint": fingerprint,
            "network": self.net.kind.name,
            "options": self.options.as_dict(),
            "best": self.best,
            "since": self.since,
            "epochs": epochs,
        }
        tensors = {f"now/{name}": array for name, array in self.engine.state().items()}
        save_state(path, tensors | {f"best/{name}": array for name, array in self.kept.items()}, header)

    def restore(self, path: Path, fingerprint: str) -> None:
        """Go on where a file says, if there is one."""
        found = load_state(path)
        if found is None:
            return
        header, tensors = found
        if header.get("fingerprint") != fingerprint:
            if header.get("network", self.net.kind.name) != self.net.kind.name:
                raise TrainError(
                    f"{str(path)!r} was started with a {header['network']} network: expected the same, "
                    f"not a {self.net.kind.name} one, or another folder"
                )
            if "options" in header:  # of which one says more than that there is a difference
                check_resumable(path, header["options"], json.loads(json.dumps(self.options.as_dict())))
            raise TrainError(
                f"{str(path)!r} was started with other labels, weights, options or device: expected the same, or another folder"
            )
        self.engine.load(_part(tensors, "now/"))
        self.kept, self.best, self.since = _part(tensors, "best/"), header["best"], header["since"]
        self.epochs = [Epoch(**epoch) for epoch in header["epochs"]]

    def _errors(self) -> np.ndarray:
        """Absolute errors in discs."""
        return np.abs(self.engine.validation_values() - self.validation.score[self.validation.roots])


def _fingerprint(net: Trainable, trees: Trees, options: FitOptions, device: str) -> str:
    """What a checkpoint must have in common with a fit: options, data, the weights at the beginning, the device."""
    digest = hashlib.sha256(json.dumps([options.as_dict(), device, str(trees.rules)]).encode())
    parameters = (parameter.detach().cpu().numpy() for parameter in net.parameters())
    for array in (trees.own, trees.opp, trees.score, trees.first, *parameters):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _part(tensors: State, prefix: str) -> State:
    return {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
