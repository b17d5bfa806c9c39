"""Backends with compiled kernels, for fits on the CPU.

Only the phases and rows that the data can reach are copied and updated, which makes the steps fast; the others do not change. A
batch is divided into a fixed number of slices whose gradients are added in order, so that the weights do not depend on the number
of threads. Threads beyond the number of slices are idle in this part.
"""

import os
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from models.patterns.trainable import PatternModule
from reversi_env import Rules
from train.fitting.options import FitOptions
from train.fitting.torch_backend import Data, FitBackend, MinibatchDraw, State, TorchBackend
from train.kernels import fit_deep as deep_fitting
from train.kernels import fit_linear as linear_fitting

#: Weights per task of an update.
CHUNK = 1 << 16


class CompiledBackend(FitBackend):
    """Steps over the phases and rows that the data can reach.

    The first of the network's parameters by phase (`Network.per_phase`) is its table, with a row for every feature.
    """

    #: Slices of a batch, each with its own gradients.
    slices: ClassVar[int] = 1
    #: The parameters by their names in checkpoints, the table first.
    parameters: ClassVar[dict[str, str]]

    def __init__(
        self, net: PatternModule, training: Data, validation: Data, options: FitOptions, threads: int | None = None
    ) -> None:
        super().__init__(net, training, options)
        self.threads, self.span = threads or os.cpu_count() or 1, net.span
        parts = [training, validation]
        occurs = np.zeros(net.by_phase()[0].shape[1], np.bool_)
        for part in parts:
            occurs[part.features.ravel()] = True
        self.kept = np.flatnonzero(occurs)
        place = np.zeros(len(occurs), np.int32)
        place[self.kept] = np.arange(len(self.kept))
        self.training, self.validation = (part._replace(features=place[part.features]) for part in parts)
        self.phases = _phases_reached(net, parts, options.phase_jitter)
        self.active_arrays = {name: view[reached].copy() for name, (view, reached) in self._reached().items()}
        self.arrays = {name: net.kind.arrays(Rules(net.size))[part] for name, part in self.parameters.items()}
        self.quantised = dict[str, np.ndarray]()
        self._quantise()
        self.moments = {
            f"{name}_{moment}": np.zeros_like(array)
            for name, array in self.active_arrays.items()
            for moment in ("mean", "square")
        }
        self.gradients = [
            {name: np.zeros_like(array) for name, array in self.active_arrays.items()} for _ in range(self.slices)
        ]

    def _reached(self) -> dict[str, tuple[np.ndarray, Any]]:
        """Return views of the network's parameters, and an index of the part of each that the data can reach."""
        table, *others = self.net.kind.per_phase
        phases = np.arange(self.phases.start, self.phases.stop)[:, None]
        reached: dict[str, Any] = {table: (phases, self.kept), **dict.fromkeys(others, self.phases)}
        return {
            name: (self.net.arrays[parameter].numpy(), reached.get(parameter, slice(None)))
            for name, parameter in self.parameters.items()
        }

    def epoch(self, number: int) -> float:
        with ThreadPoolExecutor(self.threads) as self.pool:
            return super().epoch(number)

    def step(self, draw: MinibatchDraw, number: int) -> float:
        total = self.add_gradient(draw.rows.numpy(), draw.shifts.numpy())
        self._update(number)
        return total

    @abstractmethod
    def add_gradient(self, batch: np.ndarray, shifts: np.ndarray) -> float:
        """Add the gradients of a batch and return the sum of the absolute errors."""

    def weights(self) -> State:
        """Return a copy of the weights that the data can reach."""
        return {name: array.copy() for name, array in self.active_arrays.items()}

    def load_weights(self, weights: State) -> None:
        for name, (view, reached) in self._reached().items():
            array = self.active_arrays[name]
            array[:] = weights[name].reshape(array.shape)
            view[reached] = array
        self._quantise()

    def state(self) -> State:
        return {**self.weights(), **{name: moment.copy() for name, moment in self.moments.items()}}

    def load(self, state: State) -> None:
        for name, array in (self.active_arrays | self.moments).items():
            array[:] = state[name].reshape(array.shape)
        self._quantise()

    def _quantise(self, *, integers: bool = True) -> None:
        """Fake-quantise the weights (`PatternModule.fake_quantised`); the tasks of an update do the same for integer arrays."""
        for name, array in self.arrays.items():
            if integers or not array.is_integer:
                self.quantised[name] = array.fake_quantise(self.active_arrays[name])

    def _update(self, step: int) -> None:
        rate, kind = self.learning_rate_at(step), self.net.kind

        def run(job: tuple[str, int]) -> None:
            name, start = job
            chunk, parameter = slice(start, start + CHUNK), self.parameters[name]
            first, *others = (gradients[name].reshape(-1)[chunk] for gradients in self.gradients)
            for other in others:
                first += other
                other[:] = 0
            weights = self.active_arrays[name].reshape(-1)[chunk]
            decay = 0.0 if parameter in kind.no_weight_decay else self.options.weight_decay
            moments = (self.moments[f"{name}_{moment}"].reshape(-1)[chunk] for moment in ("mean", "square"))
            linear_fitting.adam(weights, first, *moments, rate, decay, step + 1)
            if parameter in kind.max_magnitude:
                linear_fitting.clip_in_place(weights, np.float32(kind.max_magnitude[parameter]))
            if self.arrays[name].is_integer:
                scale, maximum = np.float32(self.arrays[name].scale), np.float32(self.arrays[name].max_integer)
                linear_fitting.quantise(weights, scale, maximum, self.quantised[name].reshape(-1)[chunk])

        jobs = [(name, start) for name, array in self.active_arrays.items() for start in range(0, array.size, CHUNK)]
        for _ in self.pool.map(run, jobs):
            pass
        self._quantise(integers=False)


class LinearBackend(CompiledBackend):
    """The steps of `models.patterns.linear.PatternNet`."""

    parameters: ClassVar[dict[str, str]] = {"table": "weights", "constants": "constants"}

    @cached_property
    def record(self) -> np.ndarray:
        """The network and the loss as a record for the kernels."""
        record, options = np.zeros(1, linear_fitting.NET), self.options
        record["span"], record["row"] = self.span, len(self.kept)
        record["lowest"], record["highest"] = self.phases.start, self.phases.stop - 1
        record["huber_delta"] = options.huber_delta
        return record

    def add_gradient(self, batch: np.ndarray, shifts: np.ndarray) -> float:
        data, gradients = self.training, self.gradients[0]
        return linear_fitting.add_gradient(
            *(self.record, batch, shifts, data.empties, data.scores, data.features),
            *(self.quantised["table"].reshape(-1), self.quantised["constants"]),
            *(gradients["table"].reshape(-1), gradients["constants"]),
        )

    def validation_values(self) -> np.ndarray:
        data, values = self.validation, np.empty(len(self.validation.scores), np.float32)
        weights, constants = self.quantised["table"].reshape(-1), self.quantised["constants"]
        linear_fitting.values_of(self.record, data.empties, data.features, weights, constants, values)
        return values


class DeepBackend(CompiledBackend):
    """The steps of `models.patterns.deep.DeepPatternNet`."""

    parameters: ClassVar[dict[str, str]] = {"rows": "rows", "heads": "heads"}
    slices: ClassVar[int] = 2

    def _phases(self, empties: np.ndarray) -> np.ndarray:
        phases = np.floor(empties / np.float32(self.span)).astype(np.int64)
        return phases.clip(self.phases.start, self.phases.stop - 1) - self.phases.start

    def add_gradient(self, batch: np.ndarray, shifts: np.ndarray) -> float:
        data, rows, heads = self.training, self.quantised["rows"].reshape(-1), self.quantised["heads"]
        phases = self._phases(data.empties[batch] + shifts)
        transposed_heads, share = deep_fitting.transposed(heads), np.float32(1 / len(batch))

        def run(part: int) -> float:
            rows_of_part = slice(len(batch) * part // self.slices, len(batch) * (part + 1) // self.slices)
            gradients = self.gradients[part]
            return deep_fitting.add_deep_gradient(
                *(batch[rows_of_part], phases[rows_of_part], data.features, data.scores),
                *(len(self.kept), np.float32(self.options.huber_delta), share, rows, heads, transposed_heads),
                *(gradients["rows"].reshape(-1), gradients["heads"]),
            )

        return sum(self.pool.map(run, range(self.slices)))

    def validation_values(self) -> np.ndarray:
        data, values = self.validation, np.empty(len(self.validation.scores), np.float32)
        phases, rows = self._phases(data.empties.astype(np.float32)), self.quantised["rows"].reshape(-1)
        deep_fitting.deep_values(data.features, phases, len(self.kept), rows, self.quantised["heads"], values)
        return values


#: Backends with kernels, by kind of network; other networks are fitted with torch on a CPU too.
COMPILED: dict[str, type[CompiledBackend]] = {"linear": LinearBackend, "deep": DeepBackend}


def backend_for(network: str, device: str) -> type[CompiledBackend] | type[TorchBackend]:
    """Return the backend for a kind of network on a device."""
    return COMPILED.get(network, TorchBackend) if device == "cpu" else TorchBackend


def _phases_reached(net: PatternModule, parts: list[Data], jitter: float) -> slice:
    empties = np.concatenate([part.empties for part in parts])
    low, high = int(empties.min() - jitter), int(empties.max() + jitter)
    return slice(max(0, low // net.span), min(net.phases - 1, high // net.span) + 1)
