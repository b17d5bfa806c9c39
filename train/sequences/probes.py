"""`probe_model`: what linear and two-layer probes read from each layer of a GPT, beside baselines, and interventions.

A probe of a label with classes is a softmax regression for each square; of numbers (mobility, values of moves) it is a
least-squares regression. All probes are trained at once on the same positions, by Adam.

An intervention changes one disc of a position along the direction of the linear probe, mine minus yours as in Nanda et al. (2023).
As in Li et al. (2023), the error of a case is the number of false positives and false negatives among the most probable tokens, as
many as the changed board has legal moves.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.bitboards import boards_of_planes
from models.gpt.agent import SavedGPT
from models.gpt.net import GPT
from reversi_env import Rules, functional
from reversi_env.errors import extra_libraries
from reversi_env.storage.atomic import write_atomically
from train.fitting.fit import checked_device
from train.jobs.logs import Progress, no_progress
from train.sequences.labels import label_games, of_tokens
from train.sequences.options import CLASSES, ProbeOptions, StreamOptions
from train.sequences.streams import GameStream

with extra_libraries():
    import torch
    from torch import Tensor, nn
    from torch.nn.functional import cross_entropy, one_hot

#: Games of a gradient step, and the maximum learning rate.
BATCH, LEARNING_RATE = 128, 3e-3
#: Multiples of the mean distance of occupied squares from the probe's boundary that are tried, and the games it is measured in.
SCALES, MEASURED_GAMES = (0.5, 1.0, 2.0, 4.0, 8.0), 256
#: Tensors by name, with a row for each game: ``tokens``, ``to_move``, and labels ``(games, tokens, items)``: classes from 0, or
#: standardised numbers.
Games = dict[str, Tensor]
#: By label and metric, for the name of each probe, a number for each layer.
Metrics = dict[str, dict[str, dict[str, list[float]]]]


def held_out_games(saved: SavedGPT, options: ProbeOptions) -> tuple[Games, Games]:
    """Return games to train and to test probes on: held-out games of the model's training, or of another source."""
    recorded = saved.record["options"]
    trained = StreamOptions(**{name: recorded[name] for name in StreamOptions.defaults() if name in recorded})
    trained = replace(trained, source=options.source or trained.source)
    count, device = options.games + options.test_games, checked_device(options.device)
    tokens = GameStream(trained, count, split="validation", device=device).batch(0)[:, :-1]
    names = dict.fromkeys((*options.labels, "relative", "legal", "to_move"))
    games = {"tokens": tokens, **label_games(tokens, trained, names, empties=options.empties)}
    for name in CLASSES.keys() & games.keys():
        label = games[name] if games[name].dim() > 2 else games[name][..., None]
        if CLASSES[name]:
            games[name] = label + (CLASSES[name] == 3)
        else:
            known = label[games["to_move"] != 0].float()
            known = known[~known.isnan()]
            games[name] = (label - known.mean()) / known.std()
    return _rows(games, slice(options.games)), _rows(games, slice(options.games, None))


def _rows(games: Games, rows: Any) -> Games:
    return {name: tensor[rows] for name, tensor in games.items()}


@torch.no_grad()
def read_features(nets: dict[str, GPT], games: Games) -> dict[str, Tensor]:
    """Return what probes read in the positions in which a side is to move, ``(layers, positions, width)``.

    Of each of the *nets* the states in each layer; ``tokens``: the moves so far, one-hot for each place in the sequence;
    ``board``: the discs and the legal moves, one-hot, and the place.
    """
    tokens = games["tokens"]
    features = {name: torch.stack(net.residual_stream(tokens)) for name, net in nets.items()}
    places = torch.eye(tokens.shape[1], device=tokens.device).expand(len(tokens), -1, -1)
    moves = one_hot(tokens.long(), nets["model"].config.vocab_size)
    so_far = moves[:, None] * torch.ones_like(places[0]).tril()[..., None]
    features["tokens"] = torch.cat([so_far.flatten(2), places], 2)[None]
    features["board"] = torch.cat([one_hot(games["relative"].long(), 3).flatten(2), games["legal"], places], 2)[None]
    return {name: one[:, games["to_move"] != 0] for name, one in features.items()}


class Probe(nn.Module):
    """Probes of all labels in every layer of one source; *hidden* units make them two-layer probes.

    Features are centred, and scaled by one number per layer, so that directions of the weights are those of the states.
    """

    def __init__(self, features: Tensor, items: dict[str, int], hidden: int = 0) -> None:
        super().__init__()
        layers, _, width = features.shape
        self.mean = features.mean(1, keepdim=True)
        self.scale = (features - self.mean).square().mean((1, 2), keepdim=True).sqrt().clamp(min=1e-6)
        self.outputs = {name: count * max(1, CLASSES[name]) for name, count in items.items()}
        outputs, device = sum(self.outputs.values()), features.device
        self.hidden = nn.Parameter(torch.randn(layers, width, hidden, device=device) * width**-0.5) if hidden else None
        self.weight = nn.Parameter(torch.zeros(layers, hidden or width, outputs, device=device))
        self.bias = nn.Parameter(torch.zeros(layers, 1, outputs, device=device))

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """Return the outputs of each label, ``(layers, positions, items, classes)``; numbers have one."""
        x = (features - self.mean) / self.scale
        if self.hidden is not None:
            x = torch.relu(x @ self.hidden)
        return self.split(torch.baddbmm(self.bias, x, self.weight))

    def split(self, outputs: Tensor) -> dict[str, Tensor]:
        parts = zip(self.outputs, outputs.split(list(self.outputs.values()), 2), strict=True)
        return {name: part.unflatten(2, (-1, max(1, CLASSES[name]))) for name, part in parts}

    def directions(self) -> tuple[Tensor, Tensor]:
        """Return mine minus yours: weights ``(layers, width, squares)`` of the states, and biases ``(layers, 1, squares)``."""
        weights, biases = (self.split(one.detach())["relative"] for one in (self.weight, self.bias))
        weights = (weights[..., 2] - weights[..., 0]) / self.scale
        return weights, biases[..., 2] - biases[..., 0] - self.mean @ weights


def loss_of(name: str, outputs: Tensor, target: Tensor) -> Tensor:
    """Return the sum over layers of the mean loss of a label."""
    if CLASSES[name]:
        return cross_entropy(outputs.flatten(0, 2), target.long().repeat(len(outputs), 1).flatten()) * len(outputs)
    known = ~target.isnan()
    return (outputs[:, known, 0] - target[known]).square().sum() / max(1, int(known.sum()))


def metrics_of(name: str, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
    """Return metrics by layer: the accuracy of classes; of numbers R², and the share of pairs of moves ranked as their values."""
    if CLASSES[name]:
        return {"accuracy": (outputs.argmax(3) == target).double().mean((1, 2))}
    known, gaps = ~target.isnan(), target[:, :, None] - target[:, None]
    metrics = {"R²": 1 - (outputs[:, known, 0] - target[known]).square().mean(1) / target[known].var(correction=0)}
    if (pairs := (gaps.abs() > 0).sum()) > 0:
        ranked = ((layer[:, :, None] - layer[:, None]) * gaps > 0 for layer in outputs[..., 0])
        metrics["pairs"] = torch.stack([one.sum() for one in ranked]) / pairs
    return metrics


def train_probes(
    net: GPT, train: Games, test: Games, options: ProbeOptions, progress: Progress = no_progress
) -> tuple[dict[str, Probe], Metrics]:
    """Return probes by name, such as ``linear model``, and their metrics on *test*."""
    items, device = {name: train[name].shape[2] for name in options.labels}, train["tokens"].device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        nets = {"model": net, "untrained": GPT(net.config).to(device)}
        features = read_features(nets, _rows(train, slice(BATCH)))
        probes = {f"linear {name}": Probe(one, items) for name, one in features.items()}
        if options.hidden:
            probes |= {f"two-layer {name}": Probe(one, items, options.hidden) for name, one in features.items()}
        chosen = torch.randint(len(train["tokens"]), (options.steps, BATCH)).to(device)
    optimiser = torch.optim.Adam([one for probe in probes.values() for one in probe.parameters()], LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, options.steps)
    for step, rows in enumerate(chosen, 1):
        games = _rows(train, rows)
        features, used = read_features(nets, games), games["to_move"] != 0
        for name, probe in probes.items():
            outputs = probe(features[name.split()[1]])
            torch.stack([loss_of(label, part, games[label][used]) for label, part in outputs.items()]).sum().backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        schedule.step()
        progress("training probes, steps", step, options.steps)
    metrics: Metrics = {label: {} for label in items}
    features, used = read_features(nets, test), test["to_move"] != 0
    with torch.no_grad():
        for name, probe in probes.items():
            for label, part in probe(features[name.split()[1]]).items():
                for metric, values in metrics_of(label, part, test[label][used]).items():
                    numbers = [round(number, 5) for number in values.tolist()]
                    metrics[label].setdefault(metric, {})[name] = numbers
    return probes, metrics


class Cases(NamedTuple):
    """Positions of games, one of whose discs gets the other colour, and the legal tokens of both boards."""

    tokens: Tensor  #: the games, ``(n, length)``
    places: Tensor  #: of the last moves
    squares: Tensor  #: the actions of the changed squares
    colours: Tensor  #: of the changed discs for the side to move, 1 or -1
    before: Tensor
    after: Tensor


def make_cases(saved: SavedGPT, games: Games, count: int, seed: int) -> Cases:
    """Return random cases, at most one for each game, in which the side to move has a move on the changed board."""
    rng, size, device = np.random.default_rng(seed), saved.vocabulary.size, games["tokens"].device
    places = [rng.choice(np.flatnonzero(moves)) for moves in games["to_move"].cpu()]
    place, rows = torch.tensor(np.array(places), device=device), torch.arange(len(places), device=device)
    boards = games["relative"][rows, place] - 1
    square = torch.tensor([rng.choice(np.flatnonzero(board)) for board in boards.cpu()], device=device)
    changed = boards.clone()
    changed[rows, square] *= -1

    def legal(boards: Tensor) -> Tensor:
        own, opp = (boards_of_planes((boards == side).unflatten(1, (size, size))) for side in (1, -1))
        return of_tokens(functional.legal(functional.from_boards(own, opp, Rules(size))), saved.vocabulary)

    columns = games["tokens"], place, square, changed[rows, square], legal(boards), legal(changed)
    chosen = legal(changed).any(1).nonzero().flatten()[:count]
    return Cases(*(column[chosen] for column in columns))


def errors(logits: Tensor, legal: Tensor) -> Tensor:
    """Return the false positives and false negatives of each row when the *k* best tokens are predicted, *k* being legal."""
    ranks = logits.argsort(1, descending=True).argsort(1)
    return ((ranks < legal.sum(1, keepdim=True)) ^ legal).sum(1)


def moved(states: Tensor, direction: Tensor, bias: Tensor, wanted: Tensor) -> Tensor:
    """Return *states*, ``(n, width)``, moved along their directions until the probe reads the *wanted* numbers."""
    now = (states * direction).sum(1) + bias
    return states + ((wanted - now) / direction.square().sum(1))[:, None] * direction


@torch.no_grad()
def intervene(net: GPT, probe: Probe, cases: Cases, games: Games) -> dict[str, Any]:
    """Return mean errors on half of the cases, for the first changed layer and the scale that did best on the other half.

    From that layer on the state is moved until the probe reads the new colour at *scale* times its mean distance in *games*.
    """
    rows, layers = torch.arange(len(cases.places)), range(net.config.n_layer + 1)
    weights, biases = probe.directions()
    used = games["to_move"] != 0
    states = torch.stack(net.residual_stream(games["tokens"]))[:, used]
    discs = games["relative"][used] != 1
    distances = ((states @ weights + biases).abs() * discs).sum(1) / discs.sum(0).clamp(min=1)

    def error(legal: Tensor, first: int = len(layers), scale: float = 0.0) -> Tensor:
        """Return the error of each case with the states after the last move changed from layer *first* on."""

        def edit(layer: int, states: Tensor) -> Tensor:
            if layer >= first:
                wanted = scale * cases.colours * distances[layer, cases.squares]
                states, here = states.clone(), states[rows, cases.places]
                direction, bias = weights[layer].T[cases.squares], biases[layer, 0, cases.squares]
                states[rows, cases.places] = moved(here, direction, bias, wanted)
            return states

        return errors(net(cases.tokens, edit=edit)[0][rows, cases.places], legal).double()

    half = len(rows) // 2
    tried = {(layer, scale): error(cases.after, layer, scale) for layer in layers for scale in SCALES}
    first, scale = min(tried, key=lambda setting: tried[setting][:half].mean().item())
    results = {"real board": error(cases.before), "changed board, before": error(cases.after)}
    results["changed board, after"] = tried[first, scale]
    means = {f"mean error, {name}": round(one[half:].mean().item(), 4) for name, one in results.items()}
    return {"cases": len(rows) - half, **means, "changed from layer": first, "scale": scale}


def probe_model(
    saved: SavedGPT, options: ProbeOptions, folder: Path | None = None, *, progress: Progress = no_progress
) -> dict[str, Any]:
    """Return all results as JSON values; with a *folder*, also write them into ``probes.json``."""
    progress("labelling games", 0, options.games + options.test_games)
    train, test = held_out_games(saved, options)
    net = saved.net.to(train["tokens"].device)
    probes, metrics = train_probes(net, train, test, options, progress)
    result = {"options": options.as_dict(), "positions": int((test["to_move"] != 0).sum()), "probes": metrics}
    if options.cases and "relative" in options.labels:
        cases = make_cases(saved, test, options.cases, options.seed)
        games = _rows(train, slice(MEASURED_GAMES))
        result["interventions"] = intervene(net, probes["linear model"], cases, games)
    if folder is not None:
        write_atomically(folder / "probes.json", (json.dumps(result, indent=1) + "\n").encode())
    return result
