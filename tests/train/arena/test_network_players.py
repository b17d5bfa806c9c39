"""Networks as players of many games: the moves that they like, lots by temperature, the same games as agents play.

On the CPU, and on a GPU where torch has one.
"""

import numpy as np
import pytest
import torch

from models.bitboards import board_planes, board_tensor
from reversi_env import Position, ReversiError, Rules, batch
from search import Agent
from train import self_play
from train.arena.batch import batch_player, play_games
from train.arena.match import play_match
from train.arena.network_players import PolicyPlayer, ValuePlayer
from train.arena.openings import Openings

RULES = Rules(6)


@pytest.fixture(params=["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"])
def device(request):
    return request.param


def corners_first(planes):
    """A policy network for 6x6 that likes corners."""
    logits = torch.zeros(len(planes), 37)
    logits[:, [0, 5, 30, 35]] = 5.0
    return logits


class CornersFirst(torch.nn.Module):
    """The same as a module, on the device of its weights."""

    def __init__(self):
        super().__init__()
        self.logits = torch.nn.Parameter(corners_first([None])[0])

    def forward(self, planes):
        assert planes.device == self.logits.device
        return self.logits.expand(len(planes), -1)


class Corners(Agent):
    """The same as an agent."""

    def choose(self, position):
        legal = position.legal_actions()
        return next((action for action in (0, 5, 30, 35) if action in legal), legal[0])


class DiscDifference(torch.nn.Module):
    """A value network: own discs minus the opponent's, times a weight of 1 in half precision."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones((), dtype=torch.bfloat16))

    def forward(self, planes):
        assert (planes.dtype, planes.device) == (torch.bfloat16, self.weight.device)
        return self.weight * (planes[:, 0].sum((1, 2)) - planes[:, 1].sum((1, 2)))


def test_the_games_are_those_of_a_match_of_agents(device):
    player = PolicyPlayer(CornersFirst().to(device), RULES)
    expected = play_match(Corners(), Corners(), 2, RULES, opening_plies=0)
    assert play_games(player, player, Openings.random(RULES, 1, 0), RULES).discs.tolist() == expected.discs.tolist()


def test_a_player_against_itself_is_even_with_colours_exchanged():
    """At temperature 0 both games of a pair are the same game, A being to move in one and B in the other."""
    player = PolicyPlayer(corners_first, RULES)
    result = play_games(player, player, Openings.random(RULES, 50), RULES)
    assert np.array_equal(result.discs[::2], -result.discs[1::2])


def test_a_value_player_plays_to_the_least_discs_of_the_opponent(device):
    """Which is greedy: every choice turns the most discs."""
    own, opp = batch.random_positions(50, 8, RULES, seed=2)
    movable = batch.legal_moves(own, opp, RULES) != 0
    own, opp = own[movable], opp[movable]
    player = ValuePlayer(DiscDifference().to(device), RULES)
    squares = player.choose(own, opp, np.arange(own.size), np.arange(own.size, dtype=np.uint64))
    for mine, theirs, square in zip(own.tolist(), opp.tolist(), squares.tolist(), strict=True):
        position = Position(RULES, mine, theirs)
        left = {action: position.play(action).own.bit_count() for action in position.legal_actions()}
        assert left[RULES.action_of(square)] == min(left.values())


def test_positions_of_networks_come_with_results_and_the_seed_decides(device):
    player = PolicyPlayer(CornersFirst().to(device), RULES, temperature=1.0)
    first, again, other = (self_play(player, 20, RULES, opponent="greedy", seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.own, again.own)
    assert not np.array_equal(first.own, other.own)
    planes = board_planes(board_tensor(first.own), RULES.size)
    assert int(planes.sum()) == int(np.bitwise_count(first.own).sum())
    result = play_games(player, batch_player("random", RULES), Openings.random(RULES, 200), RULES, seed=1)
    assert result.score > 0.55  # corners are good


def test_moves_are_drawn_by_temperature(device):
    count = 20_000
    own, opp = batch.start(count, RULES)
    logits = torch.zeros(count, 37, device=device)
    actions = Position.initial(RULES).legal_actions()
    logits[:, actions] = torch.tensor([1.0, 2.0, 3.0, 0.0], device=device)
    lots = np.random.default_rng(1).integers(0, 1 << 63, count, np.uint64)
    for temperature, chances in ((0.0, [0, 0, 1, 0]), (2.0, torch.softmax(torch.tensor([0.5, 1, 1.5, 0]), 0).tolist())):
        player = PolicyPlayer(lambda planes: logits, RULES, temperature)
        squares = player.choose(own, opp, np.arange(count), lots.copy())
        found = [(squares == RULES.square_of(action)).mean() for action in actions]
        assert found == pytest.approx(chances, abs=0.02)


@pytest.mark.parametrize("temperature", [-1.0, float("nan"), "hot", True])
def test_bad_temperatures(temperature):
    with pytest.raises(ReversiError, match="temperature="):
        ValuePlayer(corners_first, RULES, temperature)
