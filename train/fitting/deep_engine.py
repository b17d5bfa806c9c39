"""The steps of a fit of a `DeepPatternNet` on the CPU, with compiled kernels; the same rule as with torch on a GPU.

Only rows that the data can reach are kept and updated. A step's positions are cut into a fixed number of slices whose
gradients are added in order, so that the weights do not depend on the number of threads (more than there are slices find
nothing to do there).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from models.deep_net import LARGEST, DeepPatternNet
from reversi_env.extras import extra_libraries
from train.core import deep_fitting, fitting
from train.errors import TrainError
from train.fitting.engines import PIECE, Data, State, draws, phases_reached, rows_reached, steps_of
from train.fitting.options import FitOptions

with extra_libraries():
    import torch

#: Parts of a step, each with gradients of its own.
SLICES = 2


class DeepCpuEngine:
    """Compiled kernels over the phases and rows that the data can reach."""

    def __init__(
        self,
        net: DeepPatternNet,
        training: Data,
        validation: Data,
        options: FitOptions,
        threads: int | None = None,
    ) -> None:
        if options.loss != "plain":
            raise TrainError(f"loss={options.loss!r} for a deep network on the CPU: expected plain, or a GPU")
        if len(training.nodes) != len(training.first) - 1:
            raise TrainError("trees of positions for a deep network on the CPU: expected single positions, or a GPU")
        self.options, self.steps = options, steps_of(options, len(training.first) - 1)
        self.kept, self.span = rows_reached(net, [training, validation]), net.span
        place = np.zeros(net.row, np.int32)
        place[self.kept] = np.arange(len(self.kept))
        self.training, self.validation = (
            data._replace(features=place[data.features]) for data in (training, validation)
        )
        lowest, highest = phases_reached(net, [training, validation], options.blur)
        self.phases = slice(lowest, highest + 1)
        rows, heads = (part.cpu().numpy()[self.phases] for part in net.by_phase())
        self.numbers = {"rows": np.ascontiguousarray(rows[:, self.kept]).ravel(), "heads": heads.copy()}
        self.moments = {
            f"{name}_{moment}": np.zeros_like(numbers)
            for name, numbers in self.numbers.items()
            for moment in ("mean", "square")
        }
        self.slopes = [{name: np.zeros_like(numbers) for name, numbers in self.numbers.items()} for _ in range(SLICES)]
        self.threads = threads or os.cpu_count() or 1

    def epoch(self, number: int) -> float:
        """Go through the training data once."""
        count, total = len(self.training.first) - 1, 0.0
        with ThreadPoolExecutor(self.threads) as pool:
            for k, draw in enumerate(draws(self.options, count, number, torch.device("cpu"))):
                total += self._add_gradient(pool, draw.trees.numpy(), draw.shifts.numpy())
                self._update(pool, (number - 1) * self.steps + k)
        return total / count

    def validation_values(self) -> np.ndarray:
        """The network's values of the validation data."""
        values = np.empty(len(self.validation.nodes), np.float32)
        phases = self._phases(self.validation.nodes["empties"].astype(np.float32))
        deep_fitting.deep_values(
            *(self.validation.features, phases, len(self.kept)),
            *(self.numbers["rows"], self.numbers["heads"], values),
        )
        return values

    def weights(self) -> State:
        """The weights that the data can reach."""
        return {name: numbers.copy() for name, numbers in self.numbers.items()}

    def write_to(self, net: DeepPatternNet, weights: State) -> None:
        """Put weights that were kept into the network."""
        rows, heads = net.by_phase()
        phases = torch.arange(self.phases.start, self.phases.stop).unsqueeze(1)
        rows[phases, torch.from_numpy(self.kept)] = torch.from_numpy(
            weights["rows"].reshape(len(phases), len(self.kept), -1)
        )
        heads[self.phases] = torch.from_numpy(weights["heads"])

    def state(self) -> State:
        """Weights and moments."""
        return {**self.weights(), **{name: moment.copy() for name, moment in self.moments.items()}}

    def load(self, state: State) -> None:
        """Go on from weights and moments."""
        for part in (self.numbers, self.moments):
            for name, numbers in part.items():
                numbers[:] = state[name].reshape(numbers.shape)

    def _phases(self, empties: np.ndarray) -> np.ndarray:
        """Phases among those kept."""
        phases = np.floor(empties / np.float32(self.span)).astype(np.int64)
        return phases.clip(self.phases.start, self.phases.stop - 1) - self.phases.start

    def _add_gradient(self, pool: ThreadPoolExecutor, chosen: np.ndarray, shifts: np.ndarray) -> float:
        """Gradients of a step, slice by slice; the sum of the absolute errors."""
        nodes, rows, heads = self.training.nodes, self.numbers["rows"], self.numbers["heads"]
        phases = self._phases(nodes["empties"][chosen] + shifts)
        turned, share = deep_fitting.transposed(heads), np.float32(1 / len(chosen))

        def run(part: int) -> float:
            piece = slice(len(chosen) * part // SLICES, len(chosen) * (part + 1) // SLICES)
            return deep_fitting.add_deep_gradient(
                *(chosen[piece], phases[piece], self.training.features, nodes["score"], nodes["weight"]),
                *(len(self.kept), np.float32(self.options.bend), share, rows, heads, turned),
                *(self.slopes[part]["rows"], self.slopes[part]["heads"]),
            )

        return sum(pool.map(run, range(SLICES)))

    def _update(self, pool: ThreadPoolExecutor, step: int) -> None:
        """Adam over all numbers, piece by piece; the head has no decay, and rows stay within what eight bits hold."""
        rate = self.options.rate_at(step, self.options.epochs * self.steps)

        def run(job: tuple[str, int]) -> None:
            name, start = job
            piece, decay = slice(start, start + PIECE), self.options.decay if job[0] == "rows" else 0.0
            first, *others = (slopes[name].reshape(-1)[piece] for slopes in self.slopes)
            for other in others:
                first += other
                other[:] = 0
            numbers = self.numbers[name].reshape(-1)[piece]
            moments = (self.moments[f"{name}_{moment}"].reshape(-1)[piece] for moment in ("mean", "square"))
            fitting.adam(numbers, first, *moments, rate, decay, step + 1)
            if name == "rows":
                deep_fitting.limit(numbers, np.float32(LARGEST))

        jobs = [(name, start) for name, numbers in self.numbers.items() for start in range(0, numbers.size, PIECE)]
        for _ in pool.map(run, jobs):
            pass
