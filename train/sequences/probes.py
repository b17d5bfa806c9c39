"""`probe_model`: what linear and two-layer probes read from each layer of a GPT, beside baselines, and interventions.

Labels with classes are read by softmax regression, numbers (mobility, values of moves) by least squares. All probes are trained at
once on the same positions, by Adam. Positions after the first and the last moves are left out, as by Nanda et al. (2023): at
the end the empty squares alone tell a model what is legal.

An intervention changes one disc of a position along the direction of the linear probe, mine minus yours as in Nanda et al. (2023).
As in Li et al. (2023), the error of a case is the number of false positives and false negatives among the most probable tokens, as
many as the changed board has legal moves.
"""

from dataclasses import replace
from itertools import pairwise, product
from typing import Any

from models.bitboards import boards_of_planes
from models.gpt import GPT, SavedGPT
from reversi_env import Rules, functional
from reversi_env.errors import TrainError, extra_libraries
from train.fitting.fit import checked_device
from train.jobs.logs import Progress, no_progress
from train.sequences.labels import label_games, of_tokens
from train.sequences.options import CLASSES, GPTOptions, ProbeOptions
from train.sequences.streams import GameStream

with extra_libraries():
    import torch
    from torch import Tensor, nn
    from torch.nn.functional import cross_entropy, mse_loss, one_hot

#: Games of a gradient step, the maximum learning rate, and positions that are evaluated at once.
BATCH, LEARNING_RATE, EVAL_ROWS = 128, 3e-3, 1 << 14
#: Log-odds of mine against yours, of a changed disc in its new colour, that are tried.
LOG_ODDS = (1.0, 2.0, 4.0, 8.0, 16.0)
#: Tensors by name, with a row for each game: ``tokens``, ``to_move``, and labels ``(games, tokens, items)``: classes from 0,
#: or standardised numbers.
Games = dict[str, Tensor]
#: By label, kind (``linear``, ``two-layer``), and source (``model``, …).
Probes = dict[tuple[str, str, str], "LayerProbes"]
#: A number for each layer by label, metric, and name of the probe, such as ``linear model``.
Metrics = dict[tuple[str, str, str], list[float]]


def held_out_games(saved: SavedGPT, options: ProbeOptions) -> tuple[Games, Games]:
    """Return games to train and to test probes on: held-out games of the model's training, or of another source."""
    trained = GPTOptions.from_dict(saved.record["options"])
    trained = replace(trained, source=options.source or trained.source)
    count, device = options.games + options.test_games, checked_device(options.device)
    if 2 * options.ends >= (moves := trained.size**2 - 4):
        raise TrainError(f"ends={options.ends}: expected at most {(moves - 1) // 2}, since a game has {moves} moves")
    tokens = GameStream(trained, count, split="validation", device=device).batch(0)[:, :-1]
    names = dict.fromkeys((*options.labels, "relative", "legal", "to_move"))
    games = {"tokens": tokens, **label_games(tokens, trained, names, empties=options.empties, depth=options.depth)}
    place = (games["to_move"] != 0).cumsum(1)
    games["to_move"][(place <= options.ends) | (place > place[:, -1:] - options.ends)] = 0
    for name in CLASSES.keys() & games.keys():
        label = games[name].reshape(*tokens.shape, -1)
        if CLASSES[name]:
            games[name] = label + (CLASSES[name] == 3)
        else:
            known = label[games["to_move"] != 0].float()
            known = known[~known.isnan()]
            games[name] = (label - known.mean()) / known.std()
    train, test = _rows(games, slice(options.games)), _rows(games, slice(options.games, None))
    train, test = (_rows(part, (part["to_move"] != 0).any(1)) for part in (train, test))
    if not len(train["tokens"]) or not len(test["tokens"]):
        raise TrainError(f"ends={options.ends}: no position is left; expected fewer, or more games")
    return train, test


def _rows(games: Games, rows: Any) -> Games:
    return {name: tensor[rows] for name, tensor in games.items()}


@torch.no_grad()
def read_features(nets: dict[str, GPT], games: Games) -> dict[str, Tensor]:
    """Return what probes read in the positions in which a side is to move, ``(layers, positions, width)`` for each source.

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
    return {source: x[:, games["to_move"] != 0] for source, x in features.items()}


class LayerProbes(nn.Module):
    """A probe of each layer, linear or with one layer of *hidden* units; *features* are an example of what they read.

    The features of a layer are centred and divided by one number, so that rare ones of one-hot features stay small.
    """

    def __init__(self, features: Tensor, outputs: int, hidden: int = 0) -> None:
        super().__init__()
        self.mean = features.mean(1, keepdim=True)
        self.std = (features - self.mean).square().mean((1, 2), keepdim=True).sqrt().clamp(min=1e-6)
        shapes = [*pairwise([features.shape[2], *[hidden] * (hidden > 0), outputs])]
        weights = [torch.empty(len(features), *shape).uniform_(-1, 1) / shape[0] ** 0.5 for shape in shapes]
        self.weights = nn.ParameterList(weights).to(features.device)
        self.biases = nn.ParameterList(torch.zeros(len(features), 1, width) for _, width in shapes).to(features.device)

    def forward(self, features: Tensor) -> Tensor:
        x, *weights = (features - self.mean) / self.std, *self.weights
        for bias, weight in zip(self.biases, weights, strict=True):
            x = torch.baddbmm(bias, x if weight is weights[0] else x.relu(), weight)
        return x


def loss_of(outputs: Tensor, target: Tensor) -> Tensor:
    """Return the mean cross entropy of a label with classes, or the mean squared error of numbers."""
    if not target.is_floating_point():
        return cross_entropy(outputs.reshape(target.numel(), -1), target.long().flatten())
    known = ~target.isnan()
    return mse_loss(outputs[known], target[known], reduction="sum") / max(1, int(known.sum()))


def metrics_of(outputs: Tensor, target: Tensor) -> dict[str, float]:
    """Return the accuracy of a label with classes; of numbers R², and the share of pairs of moves ranked as their values."""
    if not target.is_floating_point():
        predicted = outputs.unflatten(1, (target.shape[1], -1)).argmax(2)
        return {"accuracy": (predicted == target).double().mean().item()}
    known, gaps = ~target.isnan(), target[:, :, None] - target[:, None]
    metrics = {"R²": 1 - (mse_loss(outputs[known], target[known]) / target[known].var(correction=0)).item()}
    if (pairs := int((gaps.abs() > 0).sum())) > 0:
        metrics["pairs"] = int(((outputs[:, :, None] - outputs[:, None]) * gaps > 0).sum()) / pairs
    return metrics


def train_probes(
    net: GPT, train: Games, test: Games, options: ProbeOptions, progress: Progress = no_progress
) -> tuple[Probes, Metrics]:
    """Return probes of all labels in each layer of the *net*, and of the baselines, and their metrics on *test*."""
    device = train["tokens"].device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        nets = {"model": net, "untrained": GPT(net.config).to(device)}
        features = read_features(nets, _rows(train, slice(BATCH)))
        kinds = [("linear", 0), ("two-layer", options.hidden)][: 2 if options.hidden else 1]
        probes: Probes = {}
        for label, (kind, hidden), source in product(options.labels, kinds, features):
            outputs = train[label].shape[2] * max(1, CLASSES[label])
            probes[label, kind, source] = LayerProbes(features[source], outputs, hidden)
        batches = torch.randint(len(train["tokens"]), (options.steps, BATCH)).to(device)
    optimiser = torch.optim.Adam([one for probe in probes.values() for one in probe.parameters()], LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, options.steps)
    for step, rows in enumerate(batches, 1):
        games = _rows(train, rows)
        features, used = read_features(nets, games), games["to_move"] != 0
        for (label, _, source), probe in probes.items():
            outputs = probe(features[source])
            loss_of(outputs, games[label][used].expand(len(outputs), -1, -1)).backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        schedule.step()
        progress("training probes, steps", step, options.steps)
    metrics: Metrics = {}
    features, used = read_features(nets, test), test["to_move"] != 0
    with torch.no_grad():
        for (label, kind, source), probe in probes.items():
            for outputs in torch.cat([probe(part) for part in features[source].split(EVAL_ROWS, 1)], 1):
                for metric, value in metrics_of(outputs, test[label][used]).items():
                    metrics.setdefault((label, metric, f"{kind} {source}"), []).append(round(value, 5))
    return probes, metrics


def make_cases(saved: SavedGPT, games: Games, count: int, seed: int) -> Games:
    """Return random positions, at most one per game, one of whose discs gets the other colour, so that a move stays legal.

    ``tokens``: the games; ``places``: of the last moves; ``squares``, ``colours``: actions of the changed squares, and new colours
    for the side to move, 1 or -1; ``before``, ``after``: legal tokens of both boards.
    """
    size, device = saved.vocabulary.size, games["tokens"].device
    generator, rows = torch.Generator(device).manual_seed(seed), torch.arange(len(games["tokens"]), device=device)
    places = torch.multinomial((games["to_move"] != 0).float(), 1, generator=generator)[:, 0]
    boards = games["relative"][rows, places] - 1
    squares = torch.multinomial((boards != 0).float(), 1, generator=generator)[:, 0]
    changed = boards.clone()
    changed[rows, squares] *= -1

    def legal(boards: Tensor) -> Tensor:
        own, opp = (boards_of_planes((boards == side).unflatten(1, (size, size))) for side in (1, -1))
        return of_tokens(functional.legal(functional.from_boards(own, opp, Rules(size))), saved.vocabulary)

    cases = {"tokens": games["tokens"], "places": places, "squares": squares, "colours": changed[rows, squares]}
    cases |= {"before": legal(boards), "after": legal(changed)}
    return _rows(cases, cases["after"].any(1).nonzero().flatten()[:count])


def errors(logits: Tensor, legal: Tensor) -> Tensor:
    """Return the false positives and false negatives of each row when the *k* best tokens are predicted, *k* being legal."""
    ranks = logits.argsort(1, descending=True).argsort(1)
    return ((ranks < legal.sum(1, keepdim=True)) ^ legal).sum(1)


def steered(probes: LayerProbes, layer: int, states: Tensor, squares: Tensor, log_odds: Tensor) -> Tensor:
    """Return *states*, ``(n, width)``, moved until the layer's probe reads these log-odds of mine against yours at *squares*."""
    weight = (probes.weights[0][layer] / probes.std[layer]).unflatten(1, (-1, 3))[:, squares]
    outputs = ((states - probes.mean[layer]).T[..., None] * weight).sum(0) + probes.biases[0][layer].unflatten(
        1, (-1, 3)
    )[0, squares]
    direction, missing = (weight[..., 2] - weight[..., 0]).T, log_odds - (outputs[:, 2] - outputs[:, 0])
    return states + (missing / direction.square().sum(1))[:, None] * direction


@torch.no_grad()
def intervene(net: GPT, probes: Probes, cases: Games) -> dict[str, Any]:
    """Return mean errors on half of the cases, for the first changed layer and the log-odds that did best on the other half.

    From that layer on, the state after the last move is moved until the linear probe reads the new colour with these log-odds.
    """
    places, layers = cases["places"], range(net.config.n_layer + 1)
    rows, linear = torch.arange(len(places)), probes["relative", "linear", "model"]

    def error(legal: Tensor, first: int = len(layers), log_odds: float = 0.0) -> Tensor:
        """Return the error of each case with the states changed from layer *first* on."""

        def hook(layer: int, states: Tensor) -> Tensor:
            if layer >= first:
                states, new_colours = states.clone(), (cases["squares"], log_odds * cases["colours"])
                states[rows, places] = steered(linear, layer, states[rows, places], *new_colours)
            return states

        return errors(net(cases["tokens"], hook=hook)[0][rows, places], legal).double()

    half = len(rows) // 2
    tried = {setting: error(cases["after"], *setting) for setting in product(layers, LOG_ODDS)}
    best = min(tried, key=lambda setting: tried[setting][:half].mean().item())
    results = {"real board": error(cases["before"]), "changed board, before": error(cases["after"])}
    results["changed board, after"] = tried[best]
    means = {f"mean error, {name}": round(one[half:].mean().item(), 4) for name, one in results.items()}
    return {"cases": len(rows) - half, **means, "changed from layer": best[0], "log-odds": best[1]}


def probe_model(saved: SavedGPT, options: ProbeOptions, *, progress: Progress = no_progress) -> dict[str, Any]:
    """Return all results as JSON values."""
    progress("labelling games", 0, options.games + options.test_games)
    train, test = held_out_games(saved, options)
    net = saved.net.to(train["tokens"].device)
    probes, metrics = train_probes(net, train, test, options, progress)
    rows = [
        dict(zip(("label", "metric", "probe", "layers"), (*name, one), strict=True)) for name, one in metrics.items()
    ]
    result = {"options": options.as_dict(), "positions": int((test["to_move"] != 0).sum()), "probes": rows}
    if options.cases and "relative" in options.labels:
        result["interventions"] = intervene(net, probes, make_cases(saved, test, options.cases, options.seed))
    return result
