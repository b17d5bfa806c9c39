"""Fitting a `PatternNet` to labels.

The features of all positions are computed once and stay on the device, so that an epoch is nothing but table look-ups.
Positions whose canonical hash falls into a fixed share are held out: mirror images never come to lie on both sides.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import huber_loss

from models.boards import board_tensor
from models.pattern_net import PatternNet
from models.patterns import EMPTIES_A_PHASE
from reversi_env import batch
from train.labels import Labels

#: Positions whose features are computed at a time.
CHUNK = 1 << 17


@dataclass(frozen=True)
class FitOptions:
    """How to fit.

    * ``epochs``, ``batch``: times that every position is seen, and positions a step.
    * ``rate``: Adam's step in discs at the beginning; it falls to zero along a cosine.
    * ``decay``: decoupled weight decay a step, as a multiple of the rate.
    * ``blur``: while training, a position counts for the phases of up to so many more or fewer empties, drawn anew every
      epoch, so that neighbouring phases learn from each other. It ends with the first ``blurred`` share of the epochs.
    * ``bend``: errors beyond so many discs count linearly, not squared (Huber).
    * ``held_out``: share of the positions that is kept for validation.
    * ``patience``: epochs without a better validation error after which to stop; the best weights are kept.
    * ``seed``: order of the positions and the blur.
    """

    epochs: int = 20
    batch: int = 1 << 14
    rate: float = 0.03
    decay: float = 0.01
    blur: float = 2.0
    blurred: float = 0.7
    bend: float = 8.0
    held_out: float = 0.05
    patience: int = 6
    seed: int = 0


@dataclass(frozen=True)
class Epoch:
    """One epoch's figures: mean absolute errors in discs."""

    number: int
    epochs: int
    training_error: float
    validation_error: float


@dataclass(frozen=True)
class FitReport:
    """How a fit went: the epochs, and the held-out error of the kept weights by number of empties, in discs."""

    epochs: tuple[Epoch, ...]
    validation_error: float
    error_by_empties: dict[int, float]


class _Data:
    """Labels on the device: features (int32), empties, scores."""

    def __init__(self, net: PatternNet, labels: Labels, device: torch.device) -> None:
        own, opp = board_tensor(labels.own), board_tensor(labels.opp)
        features, empties = [], []
        with torch.no_grad():
            for start in range(0, len(labels), CHUNK):
                rows = slice(start, start + CHUNK)
                found = net.features(own[rows].to(device), opp[rows].to(device))
                features.append(found[0].to(torch.int32))
                empties.append(found[1])
        self.features, self.empties = torch.cat(features), torch.cat(empties)
        self.scores = torch.from_numpy(np.asarray(labels.score, np.float32)).to(device)

    def __len__(self) -> int:
        return len(self.scores)


def held_out_rows(labels: Labels, share: float) -> np.ndarray:
    """Which rows are for validation: a choice by canonical hash, the same for all symmetric images and in every data set."""
    own, opp = batch.canonical(labels.own, labels.opp)[:2]
    hashes = batch.position_hash(own, opp)
    return hashes < np.uint64(int(share * 2**64)) if share > 0 else np.zeros(len(labels), np.bool_)


def fit(
    net: PatternNet,
    labels: Labels,
    options: FitOptions | None = None,
    *,
    device: str = "cpu",
    progress: Callable[[Epoch], None] = lambda epoch: None,
) -> FitReport:
    """Fit *net* in place, from the weights that it has; the weights with the lowest validation error are kept."""
    options = options or FitOptions()
    target = torch.device(device)
    net.to(target)
    held_out = held_out_rows(labels, options.held_out)
    training = _Data(net, labels.select(~held_out), target)
    validation = _Data(net, labels.select(held_out) if held_out.any() else labels, target)
    return _Fit(net, training, validation, options).run(progress)


class _Fit:
    """One fit: the optimiser, its schedule, and the best weights so far."""

    def __init__(self, net: PatternNet, training: _Data, validation: _Data, options: FitOptions) -> None:
        self.net, self.training, self.validation, self.options = net, training, validation, options
        self.steps = max(1, -(-len(training) // options.batch))
        self.optimiser = torch.optim.AdamW(net.parameters(), lr=options.rate, weight_decay=options.decay)
        total = options.epochs * self.steps
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimiser, total)
        self.generator = torch.Generator(device=training.scores.device).manual_seed(options.seed)

    def run(self, progress: Callable[[Epoch], None]) -> FitReport:
        """All epochs, or fewer if patience ends."""
        epochs: list[Epoch] = []
        best, kept, since = float("inf"), copy.deepcopy(self.net.state_dict()), 0
        for number in range(1, self.options.epochs + 1):
            blur = self.options.blur if number <= self.options.blurred * self.options.epochs else 0.0
            training_error = self._epoch(blur)
            validation_error = float(self.errors(self.validation).mean())
            epochs.append(Epoch(number, self.options.epochs, training_error, validation_error))
            progress(epochs[-1])
            since += 1
            if validation_error < best:
                best, kept, since = validation_error, copy.deepcopy(self.net.state_dict()), 0
            if since >= self.options.patience:
                break
        self.net.load_state_dict(kept)
        return FitReport(tuple(epochs), best, self._by_empties())

    def errors(self, data: _Data) -> Tensor:
        """Absolute errors in discs."""
        found = []
        with torch.no_grad():
            for start in range(0, len(data), CHUNK):
                rows = slice(start, start + CHUNK)
                empties = data.empties[rows]
                values = self.net.value(data.features[rows].long(), empties, self._phases(empties.float()))
                found.append((values - data.scores[rows]).abs())
        return torch.cat(found)

    def _epoch(self, blur: float) -> float:
        data, options = self.training, self.options
        order = torch.randperm(len(data), generator=self.generator, device=data.scores.device)
        total = torch.zeros((), device=data.scores.device)
        for start in range(0, len(data), options.batch):
            rows = order[start : start + options.batch]
            empties = data.empties[rows]
            shift = (2 * torch.rand(rows.shape, generator=self.generator, device=rows.device) - 1) * blur
            values = self.net.value(data.features[rows].long(), empties, self._phases(empties + shift))
            loss = huber_loss(values, data.scores[rows], delta=options.bend)
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            self.optimiser.step()
            self.schedule.step()
            total += (values.detach() - data.scores[rows]).abs().sum()
        return float(total / len(data))

    def _phases(self, empties: Tensor) -> Tensor:
        last = self.net.patterns.phases - 1
        return torch.floor(empties / EMPTIES_A_PHASE[self.net.size]).long().clamp(0, last)

    def _by_empties(self) -> dict[int, float]:
        errors, empties = self.errors(self.validation).cpu(), self.validation.empties.cpu()
        return {int(e): round(float(errors[empties == e].mean()), 3) for e in torch.unique(empties)}
