"""Causal interventions on a GPT: one square of the board is changed along the direction of a probe, and predictions are compared.

A case is a position of a held-out game with one disc of the other colour, in which the side to move still has a move. As in Li et
al. (2023), the error of a case is the number of false positives and false negatives among the most probable tokens, as many as the
changed board has legal moves. The direction is that of Nanda et al. (2023), mine minus yours.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from models.gpt.files import SavedGPT
from reversi_env import Rules, batch
from reversi_env.errors import extra_libraries
from train.sequences.options import ProbeOptions
from train.sequences.probes import LabelledGames, Probe, Probed

with extra_libraries():
    import torch
    from torch import Tensor

#: Multiples of the mean distance of occupied squares from the probe's boundary that are tried.
SCALES = (0.5, 1.0, 2.0, 4.0, 8.0)
#: Games from which the mean distances of the directions are measured.
MEASURED_GAMES = 256


@dataclass
class Cases:
    """Positions of games, one of whose discs gets the other colour.

    ``tokens``: the games, ``(n, length)``; ``places``: the index of the last move; ``squares``: the action of the changed square;
    ``colours``: the new colour for the side to move, 1 or -1; ``before``, ``after``: legal tokens of the real and the changed
    board, ``(n, num_tokens)``.
    """

    tokens: Tensor
    places: Tensor
    squares: Tensor
    colours: Tensor
    before: Tensor
    after: Tensor

    def part(self, rows: slice) -> "Cases":
        return Cases(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def make_cases(saved: SavedGPT, games: LabelledGames, count: int, seed: int) -> Cases:
    """Return random cases, at most one for each game."""
    rng, rules = np.random.default_rng(seed), saved.rules
    relative, to_move = (games.labels[name].cpu().numpy() for name in ("relative", "to_move"))
    rows = [(game, rng.choice(np.flatnonzero(moves))) for game, moves in enumerate(to_move) if moves.any()]
    game, place = np.array(rows).T
    boards = relative[game, place].astype(np.int8)
    square = np.array([rng.choice(np.flatnonzero(board)) for board in boards])
    changed = boards.copy()
    changed[np.arange(len(boards)), square] *= -1
    legal, may_follow = (_legal_tokens(saved, rules, one) for one in (boards, changed))
    chosen = np.flatnonzero(may_follow.any(1))[:count]
    colours = changed[chosen, square[chosen]]
    columns = place[chosen], square[chosen], colours, legal[chosen], may_follow[chosen]
    return Cases(games.tokens[game[chosen]], *(torch.from_numpy(one).to(games.tokens.device) for one in columns))


def _legal_tokens(saved: SavedGPT, rules: Rules, boards: np.ndarray) -> np.ndarray:
    """Return the legal tokens of relative boards, ``(n, num_tokens)``."""
    bits = np.uint64(1) << np.array(list(rules.squares()), np.uint64)
    own, opp = (np.where(boards == colour, bits, np.uint64(0)).sum(1, dtype=np.uint64) for colour in (1, -1))
    legal = batch.legal_moves(own, opp, rules)[:, None] & bits != 0
    actions = saved.vocabulary.action_of_token
    is_square = (actions >= 0) & (actions < rules.square_count)
    return legal[:, np.where(is_square, actions, 0)] & is_square


def errors(logits: Tensor, legal: Tensor) -> Tensor:
    """Return the false positives and false negatives of each row when the *k* best tokens are predicted, *k* being legal."""
    ranks = logits.argsort(1, descending=True).argsort(1)
    return ((ranks < legal.sum(1, keepdim=True)) ^ legal).sum(1)


class Directions:
    """For each layer and square the mine-minus-yours direction of a linear probe, and its mean distance in occupied squares."""

    def __init__(self, probed: Probed, states: Tensor, relative: Tensor) -> None:
        probe: Probe = probed.probes["linear"]["model"]
        weights, biases = (probed.heads.split(one.detach())["relative"] for one in (probe.weights[0], probe.biases[0]))
        self._weights = (weights[..., 2] - weights[..., 0]) / probe.scale  # (layers, width, squares)
        self._biases = (biases[..., 2] - biases[..., 0]) - probe.mean @ self._weights
        difference = torch.baddbmm(self._biases, states, self._weights)
        self._distance = (difference.abs() * (relative != 0)).sum(1) / (relative != 0).sum(0).clamp(min=1)

    def set_colours(self, layer: int, states: Tensor, squares: Tensor, colours: Tensor, scale: float) -> Tensor:
        """Return states, ``(n, width)``, moved along each square's direction until the probe reads the colour at the distance."""
        weights = self._weights[layer].T[squares]
        now = (states * weights).sum(1) + self._biases[layer, 0][squares]
        wanted = scale * colours * self._distance[layer][squares]
        return states + ((wanted - now) / weights.square().sum(1))[:, None] * weights


@torch.no_grad()
def intervene(
    saved: SavedGPT, probed: Probed, train: LabelledGames, test: LabelledGames, options: ProbeOptions
) -> dict[str, Any]:
    """Return mean errors before and after, for the first layer and scale that did best on half of the cases, on the other half."""
    net, cases = saved.net, make_cases(saved, test, options.cases, options.seed)
    measured = train.rows(slice(MEASURED_GAMES))
    used = measured.labels["to_move"] != 0
    states = net.residual_stream(measured.tokens)[:, used]
    directions = Directions(probed, states, measured.labels["relative"][used])
    half = len(cases.places) // 2
    chosen, held = cases.part(slice(half)), cases.part(slice(half, None))
    tried = {
        (layer, scale): _mean_error(saved, directions, chosen, layer, scale)
        for layer in range(net.config.n_layer + 1)
        for scale in SCALES
    }
    first, scale = min(tried, key=lambda setting: tried[setting])
    logits = _logits(saved, held)
    return {
        "cases": len(held.places),
        "changed_sets": int((held.before != held.after).any(1).sum()),
        "error_unchanged_board": round(errors(logits, held.before).double().mean().item(), 4),
        "error_before": round(errors(logits, held.after).double().mean().item(), 4),
        "error_after": round(_mean_error(saved, directions, held, first, scale), 4),
        "first_layer": first,
        "scale": scale,
        "trials": [{"first_layer": of[0], "scale": of[1], "error": error} for of, error in tried.items()],
    }


def _mean_error(saved: SavedGPT, directions: Directions, cases: Cases, layer: int, scale: float) -> float:
    return errors(_logits(saved, cases, directions, layer, scale), cases.after).double().mean().item()


def _logits(
    saved: SavedGPT, cases: Cases, directions: Directions | None = None, first: int = 0, scale: float = 0.0
) -> Tensor:
    """Return the logits after the last move of each case, ``(n, num_tokens)``, with the states changed from layer *first* on."""
    rows = torch.arange(len(cases.places), device=cases.places.device)

    def edit(layer: int, states: Tensor) -> Tensor:
        if directions is not None and layer >= first:
            states = states.clone()
            here = states[rows, cases.places]
            states[rows, cases.places] = directions.set_colours(layer, here, cases.squares, cases.colours, scale)
        return states

    net = saved.net
    return net.forward_from(0, net.embed(cases.tokens), edit)[rows, cases.places]
