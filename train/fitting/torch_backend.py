"""Backends, which take the steps of a fit: the base class, and the backend in torch for any device.

`train.fitting.cpu_backend` has compiled kernels. Both take the same steps (AdamW, equal batches and phases), and draw the batches
of an epoch from the seed and the number of the epoch alone: a resumed fit gets the same batches. Reduced precision would not be
faster on a GPU, since most of the work is table look-ups and additions.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from models.patterns.trainable import PatternModule
from reversi_env.errors import extra_libraries
from train.fitting.options import FitOptions
from train.labels import Labels

with extra_libraries():
    import torch
    from torch import Tensor, nn

#: Batch size of validation.
CHUNK = 1 << 17
State = dict[str, np.ndarray]


class Data(NamedTuple):
    """Positions as arrays: their features (on a GPU a tensor), empties (uint8) and scores in discs (float32)."""

    features: Any
    empties: np.ndarray
    scores: np.ndarray


class MinibatchDraw(NamedTuple):
    """The batch of one step: indices of positions, and the jitter of their empties."""

    rows: Tensor
    shifts: Tensor


class FitBackend(ABC):
    """Takes the steps of a fit. Errors and values are in discs for the side to move."""

    def __init__(self, net: PatternModule, training: Data, options: FitOptions) -> None:
        self.net, self.options, self.device = net, options, net.device
        self.count = len(training.scores)
        self.steps = -(-self.count // options.batch_size_for(self.count))

    def epoch(self, number: int) -> float:
        """Train for one epoch and return the mean absolute error before each step."""
        total: Any = 0.0
        for k, draw in enumerate(draws(self.options, self.count, number, self.device)):
            total = total + self.step(draw, (number - 1) * self.steps + k)
        return float(total / self.count)

    def learning_rate_at(self, step: int) -> float:
        return self.options.learning_rate_at(step, self.options.epochs * self.steps)

    @abstractmethod
    def step(self, draw: MinibatchDraw, number: int) -> float | Tensor:
        """Take step *number*, from 0 over all epochs; return the sum of the absolute errors before it."""

    @abstractmethod
    def validation_values(self) -> np.ndarray:
        """Return the network's values of the validation positions."""

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


def prepare(net: PatternModule, labels: Labels, threads: int | None = None) -> Data:
    """Return labels as `Data`, with features computed on the network's device."""
    features = net.feature_array(labels.own, labels.opp, threads or os.cpu_count() or 1)
    return Data(features, labels.empties, labels.score.astype(np.float32))


def draws(options: FitOptions, count: int, epoch: int, device: torch.device) -> Iterator[MinibatchDraw]:
    """Yield the batches of an epoch, which depend on the seed and the number of the epoch."""
    generator = torch.Generator(device=device).manual_seed((options.seed * 1_000_003 + epoch) % (1 << 63))
    order = torch.randperm(count, generator=generator, device=device)
    shifts = (2 * torch.rand(count, generator=generator, device=device) - 1) * options.jitter_at(epoch)
    batch = options.batch_size_for(count)
    for start in range(0, count, batch):
        step = slice(start, start + batch)
        yield MinibatchDraw(order[step], shifts[step])


class TorchBackend(FitBackend):
    """Steps in torch, for GPUs; the data stay on the device."""

    def __init__(
        self, net: PatternModule, training: Data, validation: Data, options: FitOptions, threads: int | None = None
    ) -> None:
        super().__init__(net, training, options)
        self.training, self.validation = self._to_device(training), self._to_device(validation)
        fused = self.device.type == "cuda"
        self.optimiser = torch.optim.AdamW(
            self._groups(), lr=options.learning_rate, weight_decay=options.weight_decay, fused=fused
        )

    def step(self, draw: MinibatchDraw, number: int) -> Tensor:
        empties, features = (self.training[name][draw.rows] for name in ("empties", "features"))
        phases = self.net.phases_at(empties + draw.shifts)
        values = self.net.value(features.long(), empties, phases, self.net.fake_quantised())
        scores = self.training["scores"][draw.rows]
        loss = nn.functional.huber_loss(values, scores, delta=self.options.huber_delta)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        for group in self.optimiser.param_groups:
            group["lr"] = self.learning_rate_at(number)
        self.optimiser.step()
        for name, maximum in self.net.kind.max_magnitude.items():
            self.net.arrays[name].clamp_(-maximum, maximum)
        return (values - scores).detach().abs().sum().double()

    def _groups(self) -> list[dict[str, Any]]:
        """Return the parameters with and without weight decay."""
        excluded, named = self.net.kind.no_weight_decay, list(self.net.named_parameters())
        decayed, others = ([p for name, p in named if (name in excluded) == of] for of in (False, True))
        return [{"params": decayed}] + [{"params": others, "weight_decay": 0.0}] * bool(excluded)

    def validation_values(self) -> np.ndarray:
        data, values = self.validation, []
        with torch.no_grad():
            parameters = self.net.fake_quantised()
            for features, empties in zip(data["features"].split(CHUNK), data["empties"].split(CHUNK), strict=True):
                values.append(self.net.value(features.long(), empties, self.net.phases_at(empties), parameters))
        return torch.cat(values).cpu().numpy()

    def weights(self) -> State:
        return {name: weights.cpu().numpy().copy() for name, weights in self.net.state_dict().items()}

    def load_weights(self, weights: State) -> None:
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

    def _to_device(self, data: Data) -> dict[str, Tensor]:
        fields = {**data._asdict(), "empties": data.empties.astype(np.int64)}  # as embeddings require
        return {name: _tensor(values).to(self.device) for name, values in fields.items()}


def _tensor(values: np.ndarray | Tensor) -> Tensor:
    return values if isinstance(values, Tensor) else torch.from_numpy(np.ascontiguousarray(values))
