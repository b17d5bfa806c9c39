"""A network as a player of many games, by its policy and by a search over its value; the exam of a policy."""

import numpy as np
import pytest
import torch

from models.policy import Architecture
from models.policy.files import packaged_policy
from models.policy.net import ILLEGAL_LOGIT, PolicyValueNet, ValueFromBoards, policy_logits
from models.torch_evaluator import TorchAgent, TorchEvaluator
from reversi_env import Position, Rules, batch
from search.engine.solver import solve_all_moves
from train.arena.network_players import (
    NEVER,
    BatchPolicy,
    BatchPolicyPlayer,
    ValueSearchPlayer,
    network_move_values,
)
from train.evaluation.exact_set import action_table
from train.evaluation.policy_score import examine


def small_net(size, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = PolicyValueNet(size, Architecture(channels=8, blocks=1)).eval()
        for head in (net.policy, net.value):  # moves and positions that differ
            torch.nn.init.normal_(head.weight, std=0.3)
    return net


def some_positions(rules, count, plies, seed=0):
    """Positions in which a move can be made."""
    own, opp = batch.random_positions(count, plies, rules, seed=seed)
    chosen = batch.legal_moves(own, opp, rules) != 0
    return own[chosen], opp[chosen]


@pytest.mark.parametrize("depth", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("size", "variant", "plies"), [(4, "normal", 11), (6, "reversed", 20), (6, "normal", 31)])
def test_the_networks_own_search_is_alpha_beta_over_its_value(size, variant, plies, depth):
    """Passes and games that end are among the positions below."""
    rules, net = Rules(size, variant), small_net(size)
    own, opp = some_positions(rules, 12, plies)
    table = network_move_values(net, own, opp, rules, depth)
    evaluator = TorchEvaluator(ValueFromBoards(net), rules, inputs="boards", scale=rules.square_count)
    agent = TorchAgent(evaluator, depth, exact=0)
    ends = 0
    for i in range(len(own)):
        position = Position(rules, int(own[i]), int(opp[i]))
        legal = position.legal_actions()
        assert np.flatnonzero(table[i] > NEVER).tolist() == sorted(legal)
        found = agent.search(position)
        assert table[i].max() == pytest.approx(found.value, abs=1e-3)
        ends += any(position.play(action).is_over() for action in legal)
    assert ends > 0 or plies == 20


def test_the_policy_as_a_player_is_that_of_the_agents():
    rules, net = Rules(6), small_net(6)
    own, opp = some_positions(rules, 30, 12)
    squares = BatchPolicyPlayer(net).choose(own, opp, np.arange(len(own)), np.zeros(len(own), np.uint64))
    discs, masks = (part.numpy() for part in net.inputs(own, opp))
    assert action_table(rules)[squares].tolist() == BatchPolicy(net)(discs, masks).tolist()


def test_moves_are_drawn_as_the_temperature_says():
    rules, net = Rules(4), small_net(4)
    own, opp = some_positions(rules, 1, 4)
    many = 20_000
    numbers = policy_logits(net, own, opp)[0, :-1]
    legal = numbers != ILLEGAL_LOGIT
    states = np.random.default_rng(0).integers(0, 1 << 63, many, np.uint64)
    before = states.copy()
    drawn = {}
    for temperature, noise in ((0.5, 0.0), (2.0, 0.0), (0.0, 0.25)):
        player = BatchPolicyPlayer(net, np.full(many, temperature), noise)
        squares = player.choose(np.repeat(own, many), np.repeat(opp, many), np.arange(many), states)
        shares = np.bincount(action_table(rules)[squares], minlength=16) / many
        if temperature:
            expected = np.where(legal, np.exp((numbers - numbers.max()) / temperature), 0)
            expected /= expected.sum()
        else:
            expected = noise * legal / legal.sum()
            expected[numbers.argmax()] += 1 - noise
        assert shares == pytest.approx(expected, abs=0.02)
        drawn[temperature] = shares
    assert (states != before).all()
    assert drawn[0.5].max() > drawn[2.0].max()


def test_the_value_as_a_player_solves_endgames():
    rules, net = Rules(6, "reversed"), small_net(6)
    own, opp = some_positions(rules, 40, 25)
    player = ValueSearchPlayer(net, rules, 1, exact=9)
    squares = player.choose(own, opp, np.arange(len(own)), np.arange(len(own), dtype=np.uint64))
    solved = rules.square_count - np.bitwise_count(own | opp) <= 9
    assert solved.any()
    for i in np.flatnonzero(solved):
        values = solve_all_moves(Position(rules, int(own[i]), int(opp[i])))
        assert values[rules.name_of(rules.action_of(int(squares[i])))] == max(values.values())


@pytest.mark.slow
def test_an_exam_compares_play_with_and_without_search(tmp_path):
    results = examine(packaged_policy(Rules(6)), games=10, exact=8, threads=1, cache=tmp_path)
    players, searches = results["players"], ("1 ply", "2 plies", "2 plies, solver 8")
    names = [f"{name}, {search}" for name in ("value", "network") for search in searches]
    assert list(players) == ["policy alone", "policy, 8 symmetries", *names]
    assert players["value, 2 plies, solver 8"]["regret"] < players["policy alone"]["regret"]
    assert set(players["policy alone"]["rungs"]) >= {"random", "greedy"}
