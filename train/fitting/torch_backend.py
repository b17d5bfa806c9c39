"""Backends, which take the steps of a fit: the base class, and the backend in torch for any device.

`train.fitting.cpu_backend` has compiled kernels. Both do the same (AdamW, equal batches, phases and losses), and draw the batches
of an epoch from the seed and the number of the epoch alone: a resumed fit sees the same batches. Reduced precision would not be
faster on a GPU: the work is table look-ups and additions.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, get_args

import numpy as np

from models.patterns.trainable import Trainable
from reversi_env.errors import extra_libraries
from train.fitting.options import FitOptions, Loss
from train.fitting.trees import Trees
from train.kernels import fit_linear as fitting

with extra_libraries():
    import torch
    from torch import Tensor

#: Batch size of validation.
CHUNK = 1 << 17
State = dict[str, np.ndarray]


class Data(NamedTuple):
    """Trees as arrays: features of every node (on a GPU a tensor), its record `fitting.NODE`, the first node of each tree."""

    features: Any
    nodes: np.ndarray
    first: np.ndarray


class MinibatchDraw(NamedTuple):
    """The batch of one step: trees, and the jitter of their empties."""

    trees: Tensor
    shifts: Tensor


class FitBackend(ABC):
    """Takes the steps of a fit. Errors and values are in discs for the side to move."""

    #: The supported losses.
    losses: ClassVar[tuple[str, ...]] = get_args(Loss)

    def __init__(self, net: Trainable, training: Data, options: FitOptions) -> None:
        self.net, self.options, self.device = net, options, net.device
        self.count = len(training.first) - 1
        self.steps = -(-self.count // options.batch_size_for(self.count))

    def epoch(self, number: int) -> float:
        """Train for one epoch and return the mean absolute error at the roots before each step."""
        total: Any = 0.0
        for k, draw in enumerate(draws(self.options, self.count, number, self.device)):
            total = total + self.step(draw, (number - 1) * self.steps + k)
        return float(total / self.count)

    def learning_rate_at(self, step: int) -> float:
        return self.options.learning_rate_at(step, self.options.epochs * self.steps)

    @abstractmethod
    def step(self, draw: MinibatchDraw, number: int) -> float | Tensor:
        """Take step *number*, from 0 over all epochs; return the sum of the absolute errors at the roots before it."""

    @abstractmethod
    def validation_values(self) -> np.ndarray:
        """Return the network's values of the roots of the validation data."""

    @abstractmethod
    def weights(self) -> State:
        """Return a copy of the network's weights."""

    @abstractmethod
    def load_weights(self, weights: State) -> None:
        """Load such a copy into the network."""

    @abstractmethod
    def state(self) -> State:
        """Return weights and moments, for a checkpoint."""

    @abstractmethod
    def load(self, state: State) -> None:
        """Load weights and moments of a checkpoint."""


def prepare(net: Trainable, trees: Trees, node_weights: np.ndarray, threads: int | None = None) -> Data:
    """Return trees as `Data`, with features computed on the network's device."""
    nodes = np.zeros(trees.nodes, fitting.NODE)
    nodes["parent"], nodes["score"], nodes["weight"] = trees.parent, trees.score, node_weights
    nodes["empties"], nodes["finished"] = trees.empties, trees.finished
    return Data(net.feature_array(trees.own, trees.opp, threads or os.cpu_count() or 1), nodes, trees.first)


def node_weights_of(trees: Trees, options: FitOptions) -> np.ndarray:
    """Return the weight of each node's error in the loss of its root."""
    return (options.ply_weight ** trees.ply.astype(np.float64)).astype(np.float32)


def draws(options: FitOptions, count: int, epoch: int, device: torch.device) -> Iterator[MinibatchDraw]:
    """Yield the batches of an epoch, which depend on the seed and the number of the epoch."""
    generator = torch.Generator(device=device).manual_seed((options.seed * 1_000_003 + epoch) % (1 << 63))
    order = torch.randperm(count, generator=generator, device=device)
    shifts = (2 * torch.rand(count, generator=generator, device=device) - 1) * options.jitter_at(epoch)
    batch = options.batch_size_for(count)
    for start in range(0, count, batch):
        step = slice(start, start + batch)
        yield MinibatchDraw(order[step], shifts[step])


def consistency_of(options: FitOptions) -> float:
    """Return the weight of the distance of an inner node from its best child."""
    return options.consistency if options.loss == "structural" else 0.0


class TorchBackend(FitBackend):
    """Steps in torch, for GPUs; the data stay on the device."""

    def __init__(
        self, net: Trainable, training: Data, validation: Data, options: FitOptions, threads: int | None = None
    ) -> None:
        super().__init__(net, training, options)
        self.has_single_nodes = len(training.nodes) == self.count
        self.training, self.validation = self._to_device(training), self._to_device(validation)
        fused = self.device.type == "cuda"
        self.optimiser = torch.optim.AdamW(
            self._groups(), lr=options.learning_rate, weight_decay=options.weight_decay, fused=fused
        )

    def step(self, draw: MinibatchDraw, number: int) -> Tensor:
        """Take a step and return the sum of the absolute errors at the roots before it."""
        loss, errors = self._loss(draw)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        for group in self.optimiser.param_groups:
            group["lr"] = self.learning_rate_at(number)
        self.optimiser.step()
        for name, most in self.net.kind.max_magnitude.items():
            self.net.arrays[name].clamp_(-most, most)
        return errors.sum().double()

    def _groups(self) -> list[dict[str, Any]]:
        """Return the parameters with and without weight decay."""
        fixed = self.net.kind.no_weight_decay
        parts = [[p for name, p in self.net.named_parameters() if (name in fixed) == still] for still in (False, True)]
        return [{"params": parts[0]}] + [{"params": parts[1], "weight_decay": 0.0}] * bool(fixed)

    def validation_values(self) -> np.ndarray:
        """Return the network's values of the roots of the validation data."""
        data, values = self.validation, []
        with torch.no_grad():
            parameters = self.net.fake_quantised()
            for roots in data["first"][:-1].split(CHUNK):
                empties = data["empties"][roots]
                phases = self.net.phases_at(empties)
                values.append(self.net.value(data["features"][roots].long(), empties, phases, parameters))
        return torch.cat(values).cpu().numpy()

    def weights(self) -> State:
        return {name: weights.cpu().numpy().copy() for name, weights in self.net.state_dict().items()}

    def load_weights(self, weights: State) -> None:
        """Load such a copy into the network."""
        self.net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})

    def state(self) -> State:
        state = self.optimiser.state
        moments = {
            f"{name}:{key}": state[parameter][key].cpu().numpy().copy()
            for name, parameter in self.net.named_parameters()
            for key in ("step", "exp_avg", "exp_avg_sq")
        }
        return {**self.weights(), **moments}

    def load(self, state: State) -> None:
        self.load_weights({name: state[name] for name in self.net.state_dict()})
        for name, parameter in self.net.named_parameters():
            self.optimiser.state[parameter] = {
                key: torch.from_numpy(np.asarray(state[f"{name}:{key}"])).to(self.device)
                for key in ("step", "exp_avg", "exp_avg_sq")
            }

    def _loss(self, draw: MinibatchDraw) -> tuple[Tensor, Tensor]:
        """Return the mean loss of trees, and the absolute errors at their roots."""
        data, huber_delta = self.training, self.options.huber_delta
        if self.has_single_nodes:  # the same as below, without synchronisation at every step
            values, scores = self._values(*draw)
            errors = values - scores
            return (data["weight"][draw.trees] * _huber(errors, huber_delta)).mean(), errors.detach().abs()
        first, after = data["first"][draw.trees], data["first"][draw.trees + 1]
        sizes = after - first
        begin = torch.cumsum(sizes, 0) - sizes  # of each tree among the nodes of the batch
        offset = torch.repeat_interleave(first - begin, sizes)
        nodes = torch.arange(len(offset), device=self.device) + offset
        values, scores = self._values(nodes, torch.repeat_interleave(draw.shifts, sizes))
        errors = values - scores
        loss = (data["weight"][nodes] * _huber(errors, huber_delta)).sum()
        parent = data["parent"][nodes]
        if consistency_of(self.options) and bool((parent >= 0).any()):
            loss = loss + consistency_of(self.options) * self._inconsistency(values, parent - offset, parent >= 0)
        return loss / len(draw.trees), errors[begin].detach().abs()

    def _values(self, nodes: Tensor, shifts: Tensor) -> tuple[Tensor, Tensor]:
        """Return values and scores of nodes; the value of a finished game is its score."""
        data = self.training
        empties, scores, features = data["empties"][nodes], data["score"][nodes], data["features"][nodes].long()
        values = self.net.value(features, empties, self.net.phases_at(empties + shifts), self.net.fake_quantised())
        return torch.where(data["finished"][nodes], scores, values), scores

    def _inconsistency(self, values: Tensor, parent: Tensor, is_child: Tensor) -> Tensor:
        """Return the sum of the distances of inner nodes from their best child."""
        above = parent[is_child]
        best = torch.full_like(values, -torch.inf).scatter_reduce(0, above, -values[is_child], "amax")
        inner = torch.isfinite(best)
        return _huber(values[inner] - best[inner], self.options.huber_delta).sum()

    def _to_device(self, data: Data) -> dict[str, Tensor]:
        fields: dict[str, Any] = {name: data.nodes[name] for name in ("parent", "score", "weight", "finished")}
        fields |= {"features": data.features, "first": data.first, "empties": data.nodes["empties"].astype(np.int64)}
        return {name: _tensor(values).to(self.device) for name, values in fields.items()}


def _tensor(values: np.ndarray | Tensor) -> Tensor:
    return values if isinstance(values, Tensor) else torch.from_numpy(np.ascontiguousarray(values))


def _huber(errors: Tensor, huber_delta: float) -> Tensor:
    size = errors.abs()
    return torch.where(size <= huber_delta, size * size / 2, huber_delta * (size - huber_delta / 2))
