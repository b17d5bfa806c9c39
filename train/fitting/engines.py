"""Engines: what takes the steps of a fit, on the CPU with compiled kernels or on any device with torch.

Both follow the same rule (AdamW, the same batches, phases and losses), and both draw the batches of an epoch from the seed
and the epoch's number alone: a fit that goes on from a checkpoint sees what it would have seen.

The CPU engine keeps only the phases and the features that the data can reach, which is what makes it fast; the
weights that no position reaches stay as they are. On a GPU there is nothing that reduced precision would speed up: the work is
table look-ups and additions, in single precision.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np

from models.boards import board_tensor
from models.deep_net import LARGEST, DeepPatternNet
from models.pattern_features import PatternFeatures
from models.pattern_net import PatternNet
from models.trainable import Trainable
from reversi_env.extras import extra_libraries
from train.core import fitting
from train.fitting.options import FitOptions
from train.fitting.trees import Trees

with extra_libraries():
    import torch
    from torch import Tensor

#: Positions whose features are computed at a time.
CHUNK = 1 << 17
#: Weights that a thread updates at a time.
PIECE = 1 << 16
State = dict[str, np.ndarray]


class Data(NamedTuple):
    """Trees as an engine wants them: the features of every node (if on a GPU, a tensor), and its entry in `fitting.NODE`."""

    features: Any
    nodes: np.ndarray
    first: np.ndarray


class Engine(Protocol):
    """Takes the steps of a fit. Errors and values are in discs for the side to move."""

    def epoch(self, number: int) -> float:
        """Go through the training data once; the mean absolute error at the roots on the way."""
        ...

    def validation_values(self) -> np.ndarray:
        """The network's values of the roots of the validation data."""
        ...

    def weights(self) -> State:
        """The network's weights, to be kept."""
        ...

    def write_to(self, net: Any, weights: State) -> None:
        """Put weights that were kept into the network."""
        ...

    def state(self) -> State:
        """All that a later engine on the same data needs to go on."""
        ...

    def load(self, state: State) -> None:
        """Go on from there."""
        ...


def prepared(
    net: Trainable, trees: Trees, node_weights: np.ndarray, device: torch.device, threads: int | None = None
) -> Data:
    """Trees with their features, computed on the device."""
    nodes = np.zeros(trees.nodes, fitting.NODE)
    nodes["parent"], nodes["score"], nodes["weight"] = trees.parent, trees.score, node_weights
    nodes["empties"], nodes["finished"] = trees.empties, trees.finished
    return Data(_features(net, trees, device, threads), nodes, trees.first)


def _features(net: Trainable, trees: Trees, device: torch.device, threads: int | None) -> np.ndarray | Tensor:
    """The features of all nodes, computed on the device and left there."""
    if device.type == "cpu" and isinstance(net, PatternFeatures):
        return net.rows_of(trees.own, trees.opp, threads or os.cpu_count() or 1)
    own, opp = board_tensor(trees.own), board_tensor(trees.opp)
    whole = torch.int32 if isinstance(net, PatternFeatures) else torch.int64  # numbers of rows, or boards
    features = torch.empty((trees.nodes, net.feature_count), dtype=whole, device=device)
    with torch.no_grad():
        for start in range(0, trees.nodes, CHUNK):
            rows = slice(start, start + CHUNK)
            features[rows] = net.features(own[rows].to(device), opp[rows].to(device))[0].to(whole)
    return features


def node_weights_of(trees: Trees, options: FitOptions) -> np.ndarray:
    """How much each node's error counts in the loss of its root."""
    return (options.ply_weight ** trees.ply.astype(np.float64)).astype(np.float32)


class Draw(NamedTuple):
    """One step: the trees, what is added to their empties to find their phases, and the symmetries they are seen under."""

    trees: Tensor
    shifts: Tensor
    symmetries: Tensor


def draws(options: FitOptions, count: int, epoch: int, device: torch.device, *, turned: bool = False) -> Iterator[Draw]:
    """The steps of an epoch, a choice of the seed and the epoch's number; symmetries are 0 unless trees are to be *turned*."""
    generator = torch.Generator(device=device).manual_seed((options.seed * 1_000_003 + epoch) % (1 << 63))
    order = torch.randperm(count, generator=generator, device=device)
    blur = options.blur_of(epoch)
    shifts = (2 * torch.rand(count, generator=generator, device=device) - 1) * blur
    symmetries = torch.zeros((), dtype=torch.int64, device=device).expand(count)
    if turned:
        symmetries = torch.randint(8, (count,), generator=generator, device=device)
    batch = options.batch_of(count)
    for start in range(0, count, batch):
        step = slice(start, start + batch)
        yield Draw(order[step], shifts[step], symmetries[step])


def steps_of(options: FitOptions, count: int) -> int:
    """Steps an epoch."""
    return -(-count // options.batch_of(count))


class CpuEngine:
    """Compiled kernels over the phases and features that the data can reach."""

    def __init__(
        self, net: PatternNet, training: Data, validation: Data, options: FitOptions, threads: int | None = None
    ) -> None:
        self.options, self.steps = options, steps_of(options, len(training.first) - 1)
        self.kept = rows_reached(net, [training, validation])
        self.place = np.zeros(net.row, np.int32)
        self.place[self.kept] = np.arange(len(self.kept))
        self.training, self.validation = self._compact(training), self._compact(validation)
        self.net = self._record(net, [training, validation])
        self.phases = slice(int(self.net[0]["lowest"]), int(self.net[0]["highest"]) + 1)
        table = net.phase_weights().cpu().numpy()[self.phases][:, self.kept]
        self.table, self.constants = np.ascontiguousarray(table).ravel(), net.constants().copy()
        self.moments = {
            f"{name}_{moment}": np.zeros_like(getattr(self, name))
            for name in ("table", "constants")
            for moment in ("mean", "square")
        }
        self.gradients = {name: np.zeros_like(getattr(self, name)) for name in ("table", "constants")}
        self.threads = threads or os.cpu_count() or 1

    def epoch(self, number: int) -> float:
        """Go through the training data once."""
        count, total = len(self.training.first) - 1, 0.0
        with ThreadPoolExecutor(self.threads) as pool:
            for k, draw in enumerate(draws(self.options, count, number, torch.device("cpu"))):
                total += fitting.add_gradient(
                    *(self.net, draw.trees.numpy(), draw.shifts.numpy(), self.training.first, self.training.nodes),
                    *(self.training.features, self.table, self.constants, *self.gradients.values()),
                )
                step = (number - 1) * self.steps + k
                self._update(pool, step)
        return total / count

    def validation_values(self) -> np.ndarray:
        """The network's values of the roots of the validation data."""
        data, roots = self.validation, self.validation.first[:-1]
        values = np.empty(len(roots), np.float32)
        fitting.values_of(self.net, data.nodes[roots], data.features[roots], self.table, self.constants, values)
        return values

    def weights(self) -> State:
        """The weights that the data can reach."""
        return {"table": self.table.copy(), "constants": self.constants.copy()}

    def write_to(self, net: PatternNet, weights: State) -> None:
        """Put weights that were kept into the network."""
        table = torch.from_numpy(weights["table"].reshape(-1, len(self.kept)))
        rows = torch.arange(self.phases.start, self.phases.stop).unsqueeze(1)
        net.phase_weights()[rows, torch.from_numpy(self.kept)] = table
        net.constant.weight.data[:, 0] = torch.from_numpy(weights["constants"])

    def state(self) -> State:
        """Weights and moments."""
        return {**self.weights(), **{name: moment.copy() for name, moment in self.moments.items()}}

    def load(self, state: State) -> None:
        """Go on from weights and moments."""
        self.table[:], self.constants[:] = state["table"], state["constants"]
        for name, moment in self.moments.items():
            moment[:] = state[name]

    def _update(self, pool: ThreadPoolExecutor, step: int) -> None:
        rate, decay = self.options.rate_at(step, self.options.epochs * self.steps), self.options.decay

        def run(name: str, start: int) -> None:
            piece = slice(start, start + PIECE)
            moments = (self.moments[f"{name}_{moment}"][piece] for moment in ("mean", "square"))
            fitting.adam(getattr(self, name)[piece], self.gradients[name][piece], *moments, rate, decay, step + 1)

        jobs = [("constants", 0), *(("table", start) for start in range(0, len(self.table), PIECE))]
        for _ in pool.map(lambda job: run(*job), jobs):
            pass

    def _compact(self, data: Data) -> Data:
        return data._replace(features=self.place[data.features])

    def _record(self, net: PatternNet, parts: list[Data]) -> np.ndarray:
        record = np.zeros(1, fitting.NET)
        lowest, highest = phases_reached(net, parts, self.options.blur)
        record["span"], record["row"] = net.span, len(self.kept)
        record["lowest"], record["highest"] = lowest, highest
        record["most_nodes"] = int(np.diff(self.training.first).max())
        record["bend"], record["consistency"] = self.options.bend, _consistency(self.options)
        return record


def _consistency(options: FitOptions) -> float:
    return options.consistency if options.loss == "structural" else 0.0


def rows_reached(net: PatternFeatures, parts: list[Data]) -> np.ndarray:
    """The features that occur, as numbers within a phase."""
    occurs = np.zeros(net.row, np.bool_)
    for part in parts:
        occurs[part.features.ravel()] = True
    return np.flatnonzero(occurs)


def phases_reached(net: Trainable, parts: list[Data], blur: float) -> tuple[int, int]:
    """Lowest and highest phase that a position can count for."""
    span, last = net.span, net.phases - 1
    empties = np.concatenate([part.nodes["empties"] for part in parts])
    fewest, most = int(empties.min()), int(empties.max())
    return max(0, int(fewest - blur) // span), min(last, int(most + blur) // span)


class TorchEngine:
    """The same with torch, for GPUs; the data stay on the device."""

    def __init__(self, net: Trainable, training: Data, validation: Data, options: FitOptions) -> None:
        self.net, self.options, self.device = net, options, net.device
        self.steps = steps_of(options, len(training.first) - 1)
        self.alone = len(training.nodes) == len(training.first) - 1
        self.turned = options.augment and not net.symmetric
        self.training, self.validation = self._moved(training), self._moved(validation)
        fused = self.device.type == "cuda"
        self.optimiser = torch.optim.AdamW(self._groups(), lr=options.rate, weight_decay=options.decay, fused=fused)

    def epoch(self, number: int) -> float:
        """Go through the training data once."""
        count = len(self.training["first"]) - 1
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for k, draw in enumerate(draws(self.options, count, number, self.device, turned=self.turned)):
            loss, errors = self._loss(draw)
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            step = (number - 1) * self.steps + k
            for group in self.optimiser.param_groups:
                group["lr"] = self.options.rate_at(step, self.options.epochs * self.steps)
            self.optimiser.step()
            if isinstance(self.net, DeepPatternNet):
                self.net.table.weight.data.clamp_(-LARGEST, LARGEST)  # what eight bits hold
            total += errors.sum()
        return float(total / count)

    def _groups(self) -> list[dict[str, Any]]:
        """The parameters; the heads of a deep network have no decay."""
        parameters = dict(self.net.named_parameters())
        heads = [parameters.pop("heads")] if "heads" in parameters else []
        groups: list[dict[str, Any]] = [{"params": list(parameters.values())}]
        return groups + [{"params": heads, "weight_decay": 0.0}] * bool(heads)

    def validation_values(self) -> np.ndarray:
        """The network's values of the roots of the validation data."""
        data, found = self.validation, []
        with torch.no_grad():
            for roots in data["first"][:-1].split(CHUNK):
                empties = data["empties"][roots]
                phases = self.net.phases_at(empties)
                found.append(self.net.value(data["features"][roots].long(), empties, phases))
        return torch.cat(found).cpu().numpy()

    def weights(self) -> State:
        """All weights."""
        return {name: weights.cpu().numpy().copy() for name, weights in self.net.state_dict().items()}

    def write_to(self, net: Trainable, weights: State) -> None:
        """Put weights that were kept into the network."""
        net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})

    def state(self) -> State:
        """Weights and moments."""
        known = self.optimiser.state
        moments = {
            f"{name}:{key}": known[parameter][key].cpu().numpy().copy()
            for name, parameter in self.net.named_parameters()
            for key in ("step", "exp_avg", "exp_avg_sq")
        }
        return {**self.weights(), **moments}

    def load(self, state: State) -> None:
        """Go on from weights and moments."""
        names = self.net.state_dict().keys()
        self.write_to(self.net, {name: state[name] for name in names})
        for name, parameter in self.net.named_parameters():
            self.optimiser.state[parameter] = {
                key: torch.from_numpy(np.asarray(state[f"{name}:{key}"])).to(self.device)
                for key in ("step", "exp_avg", "exp_avg_sq")
            }

    def _loss(self, draw: Draw) -> tuple[Tensor, Tensor]:
        """The mean loss of some trees, and the absolute errors at their roots."""
        data, bend = self.training, self.options.bend
        if self.alone:  # what follows would come to the same, but wait for the device at every step
            values, scores = self._values(*draw)
            errors = values - scores
            return (data["weight"][draw.trees] * _huber(errors, bend)).mean(), errors.detach().abs()
        first, after = data["first"][draw.trees], data["first"][draw.trees + 1]
        sizes = after - first
        begin = torch.cumsum(sizes, 0) - sizes  # of each tree among the nodes of the batch
        moved = torch.repeat_interleave(first - begin, sizes)
        nodes = torch.arange(len(moved), device=self.device) + moved
        values, scores = self._values(nodes, *(torch.repeat_interleave(part, sizes) for part in draw[1:]))
        errors = values - scores
        loss = (data["weight"][nodes] * _huber(errors, bend)).sum()
        parent = data["parent"][nodes]
        if _consistency(self.options) and bool((parent >= 0).any()):
            loss = loss + _consistency(self.options) * self._inconsistency(values, parent - moved, parent >= 0)
        return loss / len(draw.trees), errors[begin].detach().abs()

    def _values(self, nodes: Tensor, shifts: Tensor, symmetries: Tensor) -> tuple[Tensor, Tensor]:
        """Values and scores of some nodes; a finished game's value is its score."""
        data = self.training
        empties, scores, features = data["empties"][nodes], data["score"][nodes], data["features"][nodes].long()
        if self.turned:
            features = self.net.turned(features, symmetries)
        values = self.net.value(features, empties, self.net.phases_at(empties + shifts))
        return torch.where(data["finished"][nodes], scores, values), scores

    def _inconsistency(self, values: Tensor, parent: Tensor, is_child: Tensor) -> Tensor:
        """Sum of the distances of inner nodes from their best child."""
        above = parent[is_child]
        best = torch.full_like(values, -torch.inf).scatter_reduce(0, above, -values[is_child], "amax")
        inner = torch.isfinite(best)
        return _huber(values[inner] - best[inner], self.options.bend).sum()

    def _moved(self, data: Data) -> dict[str, Tensor]:
        fields: dict[str, Any] = {name: data.nodes[name] for name in ("parent", "score", "weight", "finished")}
        fields |= {"features": data.features, "first": data.first, "empties": data.nodes["empties"].astype(np.int64)}
        return {name: _tensor(values).to(self.device) for name, values in fields.items()}


def _tensor(values: np.ndarray | Tensor) -> Tensor:
    return values if isinstance(values, Tensor) else torch.from_numpy(np.ascontiguousarray(values))


def _huber(errors: Tensor, bend: float) -> Tensor:
    size = errors.abs()
    return torch.where(size <= bend, size * size / 2, bend * (size - bend / 2))
