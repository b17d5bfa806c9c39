"""Networks as players of many games, on a CPU or GPU: their moves, temperature sampling, equality with single agents."""

import numpy as np
import pytest
import torch

from models.residual.net import PolicyNet, ValueFromBoards
from models.torch_evaluator import TorchAgent, TorchEvaluator
from reversi_env import Position, ReversiError, Rules, batch
from search import Agent
from search.engine.solver import solve_all_moves
from tests.oracles.search import some_positions
from train import self_play
from train.arena import network_players as players
from train.arena.batch import batch_player, play_games
from train.arena.match import play_match
from train.arena.openings import Openings

RULES = Rules(6)


@pytest.fixture(params=["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"])
def device(request):
    return request.param


def corners_first(planes):
    """A policy network for 6x6 that prefers corners."""
    logits = torch.zeros(len(planes), 37)
    logits[:, [0, 5, 30, 35]] = 5.0
    return logits


class CornersFirst(torch.nn.Module):
    """``corners_first`` as a module, on the device of its weights."""

    def __init__(self):
        super().__init__()
        self.logits = torch.nn.Parameter(corners_first([None])[0])

    def forward(self, planes):
        assert planes.device == self.logits.device
        return self.logits.expand(len(planes), -1)


class Corners(Agent):
    """``corners_first`` as an agent."""

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


def test_policy_player_plays_the_games_of_the_agent(device):
    player = players.PolicyPlayer(CornersFirst().to(device), RULES)
    expected = play_match(Corners(), Corners(), 2, RULES, opening_plies=0)
    assert play_games(player, player, Openings.random(RULES, 1, 0), RULES).discs.tolist() == expected.discs.tolist()


def test_value_player_minimises_the_opponents_value(device):
    own, opp = some_positions(RULES, 50, 8)
    player = players.ValuePlayer(DiscDifference().to(device), RULES)
    squares = player.choose(own, opp, np.arange(own.size), np.arange(own.size, dtype=np.uint64))
    for mine, theirs, square in zip(own.tolist(), opp.tolist(), squares.tolist(), strict=True):
        position = Position(RULES, mine, theirs)
        left = {action: position.play(action).own.bit_count() for action in position.legal_actions()}
        assert left[RULES.action_of(square)] == min(left.values())


def test_network_self_play_is_reproducible_by_seed(device):
    player = players.PolicyPlayer(CornersFirst().to(device), RULES, temperature=1.0)
    first, again, other = (self_play(player, 20, RULES, opponent="greedy", seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.own, again.own)
    assert not np.array_equal(first.own, other.own)
    result = play_games(player, batch_player("random", RULES), Openings.random(RULES, 200), RULES, seed=1)
    assert result.score > 0.55  # corners are good


def test_moves_are_sampled_by_temperature(device):
    count = 20_000
    own, opp = batch.start(count, RULES)
    logits = torch.zeros(count, 37, device=device)
    actions = Position.initial(RULES).legal_actions()
    logits[:, actions] = torch.tensor([1.0, 2.0, 3.0, 0.0], device=device)
    states = np.random.default_rng(1).integers(0, 1 << 63, count, np.uint64)
    for temperature, chances in ((0.0, [0, 0, 1, 0]), (2.0, torch.softmax(torch.tensor([0.5, 1, 1.5, 0]), 0).tolist())):
        player = players.PolicyPlayer(lambda planes: logits, RULES, temperature)
        squares = player.choose(own, opp, np.arange(count), states.copy())
        shares = [(squares == RULES.square_of(action)).mean() for action in actions]
        assert shares == pytest.approx(chances, abs=0.02)


@pytest.mark.parametrize("temperature", [-1.0, float("nan"), "hot", True])
def test_bad_temperatures_are_refused(temperature):
    with pytest.raises(ReversiError, match="temperature="):
        players.ValuePlayer(corners_first, RULES, temperature)


def small_net(size):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = PolicyNet(size, channels=8, blocks=1).eval()
        for head in (net.policy[1], net.value):  # different values for moves and positions
            torch.nn.init.normal_(head.weight, std=0.3)
    return net


@pytest.mark.parametrize("depth", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("size", "variant", "plies"), [(4, "normal", 11), (6, "reversed", 20), (6, "normal", 31)])
def test_move_values_equal_alpha_beta_over_the_network(size, variant, plies, depth):
    rules, net = Rules(size, variant), small_net(size)
    own, opp = some_positions(rules, 12, plies)
    table = players.network_move_values(net, own, opp, rules, depth)
    evaluator = TorchEvaluator(ValueFromBoards(net), rules, inputs="boards")
    agent = TorchAgent(evaluator, depth, exact=0)
    ends = 0
    for i in range(len(own)):
        position = Position(rules, int(own[i]), int(opp[i]))
        legal = position.legal_actions()
        assert np.flatnonzero(np.isfinite(table[i])).tolist() == sorted(legal)
        assert table[i].max() == pytest.approx(agent.search(position).value, abs=1e-3)
        ends += any(position.play(action).is_over() for action in legal)
    assert ends > 0 or plies == 20


def test_value_search_player_solves_endgames():
    rules, net = Rules(6, "reversed"), small_net(6)
    own, opp = some_positions(rules, 40, 25)
    player = players.ValueSearchPlayer(net, rules, 1, exact=9)
    squares = player.choose(own, opp, np.arange(len(own)), np.arange(len(own), dtype=np.uint64))
    solved = rules.square_count - np.bitwise_count(own | opp) <= 9
    assert solved.any()
    for i in np.flatnonzero(solved):
        values = solve_all_moves(Position(rules, int(own[i]), int(opp[i])))
        assert values[rules.name_of(rules.action_of(int(squares[i])))] == max(values.values())
