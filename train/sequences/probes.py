"""Probes of a GPT: what linear and two-layer probes read from each layer, beside baselines.

All layers, labels and baselines are trained at once on the same positions, by Adam. A probe of a label with classes is a softmax or
logistic regression for each square; of numbers (mobility, values of moves) it is a least-squares regression. Interventions are in
`train.sequences.interventions`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from models.gpt.files import SavedGPT
from models.gpt.net import GPT
from reversi_env.errors import extra_libraries
from train.fitting.fit import checked_device
from train.jobs.logs import Progress, no_progress
from train.sequences.fit import game_stream
from train.sequences.labels import label_games
from train.sequences.options import GPTOptions, ProbeOptions

with extra_libraries():
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

#: Labels with the classes -1, 0 and 1 and with the classes 0 and 1; the others are numbers.
TERNARY, BINARY = ("relative", "board"), ("legal", "flipped", "stable", "parity")
#: Games in one forward pass of a test.
CHUNK = 128


@dataclass
class LabelledGames:
    """Games with labels after each move, on a device."""

    tokens: Tensor
    labels: dict[str, Tensor]

    def rows(self, rows: Any) -> "LabelledGames":
        return LabelledGames(self.tokens[rows], {name: label[rows] for name, label in self.labels.items()})


def held_out_games(saved: SavedGPT, options: ProbeOptions, count: int) -> LabelledGames:
    """Return labelled games of the held-out split of the model's own training games, or of another source."""
    trained = GPTOptions.from_dict(saved.record["options"])
    if options.source:
        trained = replace(trained, source=options.source)
    device, size = checked_device(options.device), min(CHUNK, count)
    stream = iter(game_stream(trained, "validation", size, device))
    tokens = torch.cat([next(stream) for _ in range(-(-count // size))])[:count, :-1]
    names = dict.fromkeys((*options.labels, "relative", "legal", "mobility", "to_move"))
    labels = label_games(tokens, trained.games, saved.vocabulary, names, empties=options.empties)
    return LabelledGames(
        tokens, {name: label.flatten(2) if label.dim() > 2 else label for name, label in labels.items()}
    )


class Features:
    """What the probes read: states of the model and of an untrained one in each layer, and baselines with a single layer.

    ``tokens``: the moves so far, one-hot for each place in the sequence. ``constant``: nothing. If values are probed, also
    ``mobility``: the number of legal moves, and ``board``: the squares with legal moves, both with the place in the sequence.
    """

    def __init__(self, saved: SavedGPT, options: ProbeOptions) -> None:
        device = checked_device(options.device)
        self.net = saved.net.to(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            self.untrained = GPT(saved.net.config).to(device).eval()
        self._with_boards = "values" in options.labels

    @torch.no_grad()
    def __call__(self, games: LabelledGames) -> dict[str, Tensor]:
        """Return features of the positions in which a side is to move, ``(layers, positions, width)``, by source."""
        tokens, labels, used = games.tokens, games.labels, games.labels["to_move"] != 0
        states = {
            name: net.residual_stream(tokens) for name, net in (("model", self.net), ("untrained", self.untrained))
        }
        length = tokens.shape[1]
        places = torch.eye(length, device=tokens.device).expand(len(tokens), -1, -1)
        causal = torch.ones(length, length, device=tokens.device).tril()[..., None]
        so_far = (functional.one_hot(tokens.long(), self.net.config.vocab_size)[:, None] * causal).flatten(2)
        flat = {"tokens": torch.cat([so_far, places], 2), "constant": torch.zeros_like(places[..., :1])}
        if self._with_boards:
            flat["mobility"] = torch.cat([labels["mobility"][..., None].float(), places], 2)
            squares = functional.one_hot(labels["relative"].long() + 1, 3).flatten(2)
            flat["board"] = torch.cat([squares.float(), labels["legal"].float(), flat["mobility"]], 2)
        states |= {name: one[None] for name, one in flat.items()}
        return {name: one[:, used] for name, one in states.items()}


class Probe(nn.Module):
    """A probe of every layer of one source, with all outputs; *hidden* units make it one of two layers.

    Features are centred, and scaled by one number per layer, so that directions of the weights are those of the states.
    """

    def __init__(self, features: Tensor, outputs: int, hidden: int = 0) -> None:
        super().__init__()
        layers, _, width = features.shape
        self.mean = features.mean(1, keepdim=True)
        self.scale = (features - self.mean).square().mean((1, 2), keepdim=True).sqrt().clamp(min=1e-6)
        sizes = [width, hidden, outputs] if hidden else [width, outputs]
        self.weights = nn.ParameterList(
            torch.randn(layers, *shape, device=features.device) * (shape[0] ** -0.5 if hidden else 0.0)
            for shape in pairwise(sizes)
        )
        self.biases = nn.ParameterList(torch.zeros(layers, 1, size, device=features.device) for size in sizes[1:])

    def forward(self, features: Tensor) -> Tensor:
        """Return outputs ``(layers, positions, outputs)``."""
        x = (features - self.mean) / self.scale
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, torch.relu(x) if number else x, weight)
        return x


@dataclass
class Heads:
    """The outputs of a probe by label: three for each item of a ternary label, else one. Numbers are standardised."""

    items: dict[str, int]
    moments: dict[str, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, names: Sequence[str], games: LabelledGames) -> "Heads":
        used, heads = games.labels["to_move"] != 0, cls({})
        for name in names:
            label = games.labels[name]
            heads.items[name] = label.shape[2] if label.dim() > 2 else 1
            if name not in (*TERNARY, *BINARY):
                known = label[used].float()
                known = known[~known.isnan()]
                heads.moments[name] = known.mean().item(), max(1e-6, known.std().item())
        return heads

    @property
    def outputs(self) -> int:
        return sum(count * (3 if name in TERNARY else 1) for name, count in self.items.items())

    def split(self, outputs: Tensor) -> dict[str, Tensor]:
        """Return the outputs of each label: logits ``(…, items, 3)`` or ``(…, items)``, and numbers in their own unit."""
        sizes = [count * (3 if name in TERNARY else 1) for name, count in self.items.items()]
        parts = dict(zip(self.items, outputs.split(sizes, 2), strict=True))
        for name, part in parts.items():
            mean, std = self.moments.get(name, (0.0, 1.0))
            parts[name] = part.unflatten(2, (-1, 3)) if name in TERNARY else part * std + mean
        return parts

    def targets(self, games: LabelledGames) -> dict[str, Tensor]:
        """Return classes from 0, or numbers, of the positions in which a side is to move, ``(positions, items)``."""
        used, targets = games.labels["to_move"] != 0, {}
        for name in self.items:
            label = games.labels[name][used]
            label = label[:, None] if label.dim() < 2 else label
            if name in (*TERNARY, *BINARY):
                label = label.long() + (name in TERNARY)
            targets[name] = label if name in (*TERNARY, *BINARY) else label.float()
        return targets

    def loss(self, outputs: Tensor, targets: dict[str, Tensor]) -> Tensor:
        """Return the sum over layers and labels of the mean losses."""
        total = outputs.new_zeros(())
        for name, part in self.split(outputs).items():
            target = targets[name].expand(len(part), *targets[name].shape)
            if name in TERNARY:
                total += functional.cross_entropy(part.flatten(0, 2), target.flatten()) * len(part)
            elif name in BINARY:
                total += functional.binary_cross_entropy_with_logits(part, target.float()) * len(part)
            elif not (known := ~target.isnan()).any():
                continue
            else:
                total += ((part - target)[known] / self.moments[name][1]).square().mean() * len(part)
        return total


class Sums:
    """Sums over tested positions from which `metrics` are computed, of each layer."""

    def __init__(self) -> None:
        self._sums: dict[str, list[Tensor]] = {}

    def add(self, parts: dict[str, Tensor], targets: dict[str, Tensor]) -> None:
        for name, part in parts.items():
            target = targets[name]
            sums = [*_class_sums(part, target)] if name in (*TERNARY, *BINARY) else [*_number_sums(part, target)]
            before = self._sums.get(name, [torch.zeros_like(one) for one in sums])
            self._sums[name] = [old + new for old, new in zip(before, sums, strict=True)]

    def metrics(self) -> dict[str, dict[str, list[float]]]:
        """Return metrics of each layer by label: accuracy of classes; R², mean absolute error and rank agreement of numbers."""
        result: dict[str, dict[str, list[float]]] = {}
        for name, sums in self._sums.items():
            if len(sums) == 2:
                columns = {"accuracy": sums[0] / sums[1]}
            else:
                count, total, squares, errors, absolute, agreeing, pairs = sums
                variance = squares / count - (total / count) ** 2
                columns = {"r2": 1 - errors / count / variance, "mae": absolute / count}
                columns |= {"pairs": agreeing / pairs} if pairs.any() else {}
            result[name] = {column: [round(x, 5) for x in values.tolist()] for column, values in columns.items()}
        return result


def _class_sums(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    chosen = logits.argmax(3) if logits.dim() == 4 else (logits > 0).long()
    right = (chosen == target).sum((1, 2)).double()
    return right, torch.full_like(right, target.numel())


def _number_sums(part: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """Return sums of numbers; the last two are pairs of moves of a position that are ranked as their values, and all pairs."""
    known = ~target.isnan()
    values = target.nan_to_num()
    errors = (part - values) * known
    gaps = (values[:, :, None] - values[:, None]).sign() * (known[:, :, None] & known[:, None])
    agreeing = torch.stack([((one[:, :, None] - one[:, None]) * gaps > 0).sum() for one in part])
    sums = [known.sum(), values.sum(), values.square().sum(), errors.square().sum((1, 2)), errors.abs().sum((1, 2))]
    return tuple(one.double().expand(len(part)) for one in (*sums, agreeing, gaps.abs().sum()))


@dataclass
class Probed:
    """Trained probes by source and kind, and their metrics on held-out games: ``metrics[kind][source][label][metric]``."""

    probes: dict[str, dict[str, Probe]]
    heads: Heads
    metrics: dict[str, dict[str, dict[str, dict[str, list[float]]]]]


def train_probes(
    features: Features,
    train: LabelledGames,
    test: LabelledGames,
    options: ProbeOptions,
    progress: Progress = no_progress,
) -> Probed:
    """Train the probes on games and test them on others."""
    heads = Heads.of(options.labels, train)
    kinds = {"linear": 0} | ({"two-layer": options.hidden} if options.hidden else {})
    sample = features(train.rows(slice(CHUNK)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        probes = {
            kind: {
                name: Probe(one, heads.outputs, hidden)
                for name, one in sample.items()
                if name != "constant" or not hidden
            }
            for kind, hidden in kinds.items()
        }
    parameters = [parameter for of in probes.values() for probe in of.values() for parameter in probe.parameters()]
    optimiser = torch.optim.Adam(parameters, options.learning_rate, fused=options.device == "cuda")
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, options.steps)
    rng = torch.Generator().manual_seed(options.seed)
    for step in range(options.steps):
        batch = train.rows(
            torch.randint(len(train.tokens), (options.batch_size,), generator=rng).to(train.tokens.device)
        )
        inputs, targets = features(batch), heads.targets(batch)
        optimiser.zero_grad(set_to_none=True)
        for of in probes.values():
            for name, probe in of.items():
                heads.loss(probe(inputs[name]), targets).backward()
        optimiser.step()
        schedule.step()
        progress("training probes, steps", step + 1, options.steps)
    sums = {kind: {name: Sums() for name in of} for kind, of in probes.items()}
    with torch.no_grad():
        for start in range(0, len(test.tokens), CHUNK):
            batch = test.rows(slice(start, start + CHUNK))
            inputs, targets = features(batch), heads.targets(batch)
            for kind, of in probes.items():
                for name, probe in of.items():
                    sums[kind][name].add(heads.split(probe(inputs[name])), targets)
    metrics = {kind: {name: one.metrics() for name, one in of.items()} for kind, of in sums.items()}
    return Probed(probes, heads, metrics)
