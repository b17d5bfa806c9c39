"""The search of one game: the results of the batched search, few network calls, time limits, stops and the cache."""

import numpy as np
import pytest
import torch

from models.bitboards import board_tensor
from models.mcts.search import TreeSearch, considered_visits_sequence
from models.mcts.single import SingleSearch, halving
from models.residual.inference import HostNetwork
from models.residual.net import ResidualNet
from reversi_env import Position, Rules, functional
from tests.models.mcts.test_search import roots_of
from tests.oracles.cuda import random_function
from tests.oracles.search import positions


class Network:
    """A network for numpy boards that counts its calls and positions."""

    def __init__(self, function):
        self.function, self.calls, self.positions = function, 0, 0

    def __call__(self, own, opp):
        self.calls, self.positions = self.calls + 1, self.positions + len(own)
        logits, values = self.function(board_tensor(own), board_tensor(opp))
        return torch.cat([logits, values[:, None]], 1).numpy()


@pytest.mark.parametrize(
    ("size", "variant", "simulations", "how"),
    [
        (4, "normal", 64, {"exact": 4}),
        (6, "reversed", 64, {}),
        (6, "normal", 33, {"max_considered_actions": 4, "max_depth": 3}),
        (8, "reversed", 50, {}),
        (8, "normal", 16, {"max_considered_actions": 1}),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float64, pytest.param(torch.float32, marks=pytest.mark.slow)])
def test_single_search_equals_batched_search(size, variant, simulations, how, dtype):
    """In float32 the batched search rounds its sums, so choices between nearly equal actions may differ."""

    def network(own, opp):
        return tuple(output.to(dtype) for output in random_function(size)(own, opp))

    rules = Rules(size, variant)
    sampled, batched = positions(*roots_of(rules, 20), rules), TreeSearch(network, rules, simulations, **how)
    noise = batched.noise(len(sampled), torch.Generator().manual_seed(5)).to(dtype)
    own, opp = roots_of(rules, 20)
    expected = batched.run(functional.from_boards(board_tensor(own), board_tensor(opp), rules), noise)
    single, tolerance, equal = SingleSearch(Network(network), rules, **how), {"rtol": 0.0, "atol": 1e-9}, 0
    for row, position in enumerate(sampled):
        result = single.run(position, simulations, noise[row].numpy())
        visits = torch.from_numpy(result.visits)
        is_equal = result.action == int(expected.action[row]) and torch.equal(visits, expected.visits[row])
        equal += is_equal
        if is_equal:
            tolerance["atol"] = 1e-9 if dtype == torch.float64 else 1e-3
            torch.testing.assert_close(torch.from_numpy(result.policy), expected.policy[row].double(), **tolerance)
            torch.testing.assert_close(result.value, float(expected.value[row]), **tolerance)
    assert equal >= len(sampled) * (1 if dtype == torch.float64 else 0.95)


def test_sequential_halving_rounds_and_time_shares():
    for actions in range(1, 17):
        for simulations in (1, 7, 64, 100):
            sequence = [visits for visits, leaves in halving(actions, simulations) for _ in range(leaves)]
            assert sequence == considered_visits_sequence(actions, simulations)
    clock = iter(range(1, 1000))
    batches = [leaves for _, leaves in halving(16, 100_000, lambda leaves: next(clock) / 80)]
    assert [batches.count(leaves) for leaves in (16, 8, 4, 2)] == [10, 10, 10, 10]


def test_round_needs_one_network_call_and_cached_positions_none():
    rules, network = Rules(8), Network(random_function(8))
    search, position = SingleSearch(network, rules), Position.initial(rules).play_all(["d3", "c3"])
    first = search.run(position, 64)
    actions = len(position.legal_actions())
    assert network.calls <= 1 + len(list(halving(actions, 64))) < 32
    after, evaluated = position.play_all(map(rules.name_of, first.pv[:2])), network.positions
    again = search.run(after, 64)
    reused = 64 + 1 - (network.positions - evaluated)
    assert reused > 3
    other = SingleSearch(Network(random_function(8)), rules).run(after, 64)
    assert (again.action, again.visits.tolist(), again.pv) == (other.action, other.visits.tolist(), other.pv)
    assert np.allclose(again.policy, other.policy, atol=1e-9)
    search.run(Position.initial(rules), 2)
    assert len(search._cache) <= 3


def test_stop_and_time_limit_keep_completed_simulations():
    rules = Rules(6)
    search, stops = SingleSearch(Network(random_function(6)), rules), iter([False] * 6)
    result = search.run(Position.initial(rules), is_stopped=lambda: next(stops, True))
    assert 0 < result.visits.sum() < 20
    assert search.run(Position.initial(rules), is_stopped=lambda: True).visits.sum() == 0
    assert search.run(Position.initial(rules), seconds=1e-9).action in Position.initial(rules).legal_actions()
    assert search.run(Position.initial(rules), 30, seconds=60).visits.sum() == 30


@pytest.mark.parametrize("channels", [8, 64])
def test_host_network_equals_residual_network(channels):
    """On some CPUs, wide networks run in bfloat16."""
    net = ResidualNet(6, channels=channels, blocks=1)
    torch.nn.init.normal_(net.value.weight, std=0.05)
    torch.nn.init.normal_(net.blocks[0].second.weight, std=0.05)
    own, opp = roots_of(Rules(6), 40)
    logits, values = net(board_tensor(own), board_tensor(opp))
    outputs, expected = HostNetwork(net)(own, opp), torch.cat([logits, values[:, None]], 1).detach().numpy()
    assert np.abs(outputs - expected).max() < (1e-4 if channels == 8 else 0.05) * max(1.0, np.abs(expected).max())
