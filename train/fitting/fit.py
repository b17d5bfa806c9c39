"""Fitting a pattern network to labels.

The features of all positions are computed once, so that an epoch consists of table look-ups. Positions whose canonical hash
falls into a fixed share are held out: symmetric images are always on the same side. With a checkpoint, an interrupted fit resumes
after its last epoch and ends, on a CPU, with identical weights.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models.patterns.trainable import PatternModule
from reversi_env import batch
from reversi_env.errors import TrainError, extra_libraries
from train.fitting.cpu_backend import backend_for
from train.fitting.options import FitOptions
from train.fitting.torch_backend import State, prepare
from train.jobs.logs import load_state, save_state
from train.jobs.run import check_resumable
from train.labels import Labels

with extra_libraries():
    import torch


@dataclass(frozen=True)
class Epoch:
    """Mean absolute errors in discs of one epoch."""

    number: int
    epochs: int
    training_error: float
    validation_error: float


@dataclass(frozen=True)
class FitReport:
    """The epochs of a fit, and the held-out error of the best weights by number of empties, in discs.

    ``positions``, ``held_out``: numbers of training and validation positions; without held-out ones the error is that of the
    training positions.
    """

    epochs: tuple[Epoch, ...]
    validation_error: float
    error_by_empties: dict[int, float]
    positions: int
    held_out: int

    def metrics(self) -> dict[str, Any]:
        """Return the part of a weight file's record that describes the fit; errors in discs."""
        return {
            "epochs": len(self.epochs),
            "validation_error": round(self.validation_error, 3),
            "error_by_empties": self.error_by_empties,
        }


def held_out_rows(own: np.ndarray, opp: np.ndarray, share: float) -> np.ndarray:
    """Return which positions are for validation, by canonical hash: the same for symmetric images and in every dataset."""
    if share <= 0:
        return np.zeros(len(own), np.bool_)
    canonical_own, canonical_opp = batch.canonical(own, opp)[:2]
    return batch.position_hash(canonical_own, canonical_opp) < np.uint64(int(share * 2**64))


def fit(
    net: PatternModule,
    labels: Labels,
    options: FitOptions | None = None,
    *,
    device: str = "cpu",
    threads: int | None = None,
    checkpoint: Path | None = None,
    fine_tunes: bool = False,
    progress: Callable[[Epoch], None] = lambda epoch: None,
) -> FitReport:
    """Fit *net* in place, from its present weights; the weights with the lowest validation error are kept.

    If the fit *fine_tunes* trained weights, these count as well. *checkpoint* is a file that is written after every epoch and read
    if it exists; *progress* is then called with its epochs, too. A checkpoint of another fit raises a `TrainError`.
    """
    options = options or FitOptions()
    if labels.rules.size != net.size or not len(labels):
        raise TrainError(
            f"{len(labels)} positions of the {labels.rules.size}x{labels.rules.size} board for a network of the "
            f"{net.size}x{net.size} board: expected positions of that board"
        )
    for row in np.flatnonzero(~np.isfinite(labels.score))[:1]:
        raise TrainError(f"score {labels.score[row]} of position {row}: expected finite numbers of discs")
    run = _Fit(net, labels, options, checked_device(device), threads)
    if fine_tunes:  # the initial weights are kept unless an epoch is better
        run.best_error = float(run.errors().mean())
    fingerprint = "" if checkpoint is None else _fingerprint(net, labels, options, device)
    if checkpoint is not None:
        run.restore(checkpoint, fingerprint)
    for epoch in run.epochs:
        progress(epoch)
    while not run.is_done():
        run.next_epoch()
        if checkpoint is not None:
            run.save(checkpoint, fingerprint)
        progress(run.epochs[-1])
    return run.finish()


def checked_device(name: str) -> torch.device:
    """Return the device of that name; raise if torch cannot use it."""
    if name not in ("cpu", "cuda"):
        raise TrainError(f"device {name!r}: expected cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise TrainError("device cuda: expected a CUDA GPU that torch can use, or device cpu")
    return torch.device(name)


class _Fit:
    """The state of a fit: the backend, the best weights so far, and the epochs."""

    def __init__(
        self, net: PatternModule, labels: Labels, options: FitOptions, device: torch.device, threads: int | None
    ) -> None:
        self.net, self.options = net.to(device), options
        held_out = held_out_rows(labels.own, labels.opp, options.held_out)
        self.counts = (int((~held_out).sum()), int(held_out.sum()))
        if not self.counts[0]:
            raise TrainError(f"all {len(labels)} positions are held out for validation: expected more positions")
        training, self.validation = labels.select(~held_out), labels.select(held_out if held_out.any() else ~held_out)
        data = prepare(net, training, threads), prepare(net, self.validation, threads)
        self.backend = backend_for(net.kind.name, device.type)(net, *data, options, threads)
        self.epochs: list[Epoch] = []
        self.best_error, self.epochs_since_best, self.best_weights = float("inf"), 0, self.backend.weights()

    def is_done(self) -> bool:
        return len(self.epochs) >= self.options.epochs or self.epochs_since_best >= self.options.patience

    def next_epoch(self) -> None:
        number = len(self.epochs) + 1
        training_error = self.backend.epoch(number)
        validation_error = float(self.errors().mean())
        self.epochs.append(Epoch(number, self.options.epochs, training_error, validation_error))
        self.epochs_since_best += 1
        if validation_error < self.best_error:
            self.best_error, self.best_weights, self.epochs_since_best = validation_error, self.backend.weights(), 0

    def finish(self) -> FitReport:
        """Load the best weights into the network, quantised, and return the report."""
        if not any(np.isfinite(epoch.validation_error) for epoch in self.epochs):
            raise TrainError(
                f"the loss is NaN, training has diverged: expected a learning rate below "
                f"{self.options.learning_rate:g}, or larger batches; start again in a new folder"
            )
        self.backend.load_weights(self.best_weights)
        errors, empties = self.errors(), self.validation.empties
        by_empties = {int(e): round(float(errors[empties == e].mean()), 3) for e in np.unique(empties)}
        self.net.quantise()
        return FitReport(tuple(self.epochs), self.best_error, by_empties, *self.counts)

    def save(self, path: Path, fingerprint: str) -> None:
        header = {
            "fingerprint": fingerprint,
            "network": self.net.kind.name,
            "options": self.options.as_dict(),
            "best": self.best_error,
            "since": self.epochs_since_best,
            "epochs": [asdict(epoch) for epoch in self.epochs],
        }
        tensors = {f"now/{name}": array for name, array in self.backend.state().items()}
        save_state(path, tensors | {f"best/{name}": array for name, array in self.best_weights.items()}, header)

    def restore(self, path: Path, fingerprint: str) -> None:
        """Load a checkpoint, if it exists; a checkpoint of another fit raises."""
        state = load_state(path)
        if state is None:
            return
        header, tensors = state
        if header.get("fingerprint") != fingerprint:
            stored, current = header.get("options", {}), json.loads(json.dumps(self.options.as_dict()))
            check_resumable(
                path, stored | {"network": header.get("network")}, current | {"network": self.net.kind.name}
            )
            raise TrainError(
                f"{str(path)!r} was started with other labels, weights, options or device: expected the same, or another folder"
            )
        self.backend.load(_part(tensors, "now/"))
        self.best_weights, self.best_error, self.epochs_since_best = (
            _part(tensors, "best/"),
            header["best"],
            header["since"],
        )
        self.epochs = [Epoch(**epoch) for epoch in header["epochs"]]

    def errors(self) -> np.ndarray:
        return np.abs(self.backend.validation_values() - self.validation.score)


def _fingerprint(net: PatternModule, labels: Labels, options: FitOptions, device: str) -> str:
    """Return a hash of options, data, initial weights and device, which a checkpoint must share with a fit."""
    digest = hashlib.sha256(json.dumps([options.as_dict(), device, str(labels.rules)]).encode())
    parameters = (parameter.detach().cpu().numpy() for parameter in net.parameters())
    for array in (labels.own, labels.opp, labels.score, *parameters):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _part(tensors: State, prefix: str) -> State:
    return {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
