"""`PolicyNet`: inputs and outputs, files, the agents `rl` and `rl-search`, and the packaged policies."""

import numpy as np
import pytest
import torch

from models.bitboards import board_tensor, boards_of_planes
from models.files import WeightsError
from models.policy import PolicyAgent
from models.residual.net import PolicyNet, SavedResidual, read_residual, symmetrised
from play.server import catalogue
from play.server.options import ServerOptions
from play.server.workers.worker import Job, Searcher
from reversi_env import Position, Rules
from reversi_env.envs import ReversiVectorEnv
from search import agents
from train.rl.options import faster_precision


@pytest.mark.parametrize("size", [4, 6, 8])
def test_boards_of_planes_inverts_observations(size, positions):
    rules = Rules(size)
    own, opp = positions(size)
    for i in range(0, own.size, 7):
        games = ReversiVectorEnv(1, size=size, opponent=None, start=Position(rules, int(own[i]), int(opp[i])))
        boards = boards_of_planes(torch.from_numpy(games.reset()[0][0]))
        assert torch.equal(boards, board_tensor(np.array([own[i], opp[i]])))


def test_values_are_scaled_and_passes_have_a_logit(tiny_net, positions):
    net, boards = tiny_net(6), [board_tensor(side) for side in positions(6)]
    with torch.no_grad():
        (logits, discs), (actions, values) = net(*boards), net.of_actions(*boards)
    assert torch.equal(actions, torch.nn.functional.pad(logits, (0, 1)))
    assert torch.allclose(36 * values, discs)
    assert 0.1 < values.abs().max() <= 1


def test_agent_plays_best_move_of_symmetrised_policy(tiny_net, positions):
    rules, net = Rules(6), tiny_net(6)
    own, opp = positions(6)
    with torch.no_grad():
        logits = symmetrised(net, rules)(board_tensor(own), board_tensor(opp))[0].numpy()
    agent = PolicyAgent("unused")
    agent.load = lambda rules: SavedResidual(rules, net, {})
    for i in range(0, own.size, 9):
        position = Position(rules, int(own[i]), int(opp[i]))
        if not position.must_pass():
            assert logits[i, agent.choose(position)] >= logits[i, position.legal_actions()].max() - 1e-4


@pytest.mark.parametrize(("features", "precision"), [({}, "float32"), ({"avx512bf16": True}, "bfloat16")])
def test_faster_precision_depends_on_cpu_and_is_accurate(monkeypatch, tiny_net, positions, features, precision):
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: features)
    assert (faster_precision(), faster_precision("cuda")) == (precision, "bfloat16")
    net, boards = tiny_net(6), [board_tensor(side) for side in positions(6)]
    expected = net.of_actions(*boards)[1]
    net.half_precision = True
    assert torch.allclose(net.of_actions(*boards)[1], expected, atol=0.05)
    assert not any("half" in name for name in net.state_dict())


def test_policy_round_trips_through_file(policy_file, tiny_net):
    read, net = read_residual(policy_file), tiny_net()
    assert (read.rules, read.record, type(read.net)) == (Rules(4), {"made": "by a test"}, PolicyNet)
    for mine, theirs in zip(read.net.parameters(), net.parameters(), strict=True):
        assert torch.equal(mine, theirs.half().float())


def test_policy_agents_play_and_search(policy_file, tiny_net):
    position = start = Position.initial(Rules(4))
    agent = agents.make_agent(f"rl:{policy_file}")
    assert agents.make_agent(f"rl:weights={policy_file},seed=5").choose(start) == agent.choose(start)
    sampled = [agents.make_agent(f"rl:{policy_file},temperature=9,seed={seed}").choose(start) for seed in range(30)]
    assert set(sampled) == set(start.legal_actions())
    result = agents.make_agent(f"rl-search:{policy_file},depth=2,exact=0").search(start)
    assert (result.depth, len(result.moves)) == (2, 4)
    assert agents.make_agent(f"rl-search:{policy_file},depth=1,exact=12").search(start).exact
    while not position.must_pass():
        actions = position.legal_actions()
        position = position.play(actions[2 if len(actions) > 2 else 0])
    for name in ("rl", "rl-search"):
        assert agents.make_agent(f"{name}:{policy_file}").choose(position) == position.rules.pass_action
    policy_file.write_bytes(SavedResidual(Rules(4), tiny_net(seed=1), {"again": True}).to_bytes())
    assert agent.load(Rules(4)).record == {"again": True}  # a changed file is read again


@pytest.mark.parametrize(
    ("weights", "rules"), [("file", Rules(6)), ("file", Rules(4, "reversed")), ("packaged", Rules(4))], ids=str
)
def test_policy_of_another_game_or_missing_policy_is_rejected(policy_file, weights, rules):
    spec = f"rl:{policy_file}" if weights == "file" else "rl"
    with pytest.raises(WeightsError, match="4x4 normal"):
        agents.make_agent(spec).choose(Position.initial(rules))


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_packaged_6x6_policies_play_by_name_and_on_server(variant):
    rules = Rules(6, variant)
    policy, start = PolicyAgent().load(rules), Position.initial(rules)
    assert (policy.rules, policy.record["options"]["variant"]) == (rules, variant)
    assert policy.record["standing"]["rungs"]["random"]["points"] > 0.85
    assert agents.make_agent("rl").choose(start) in start.legal_actions()
    agent = catalogue.limited_agent("rl:seed=3", 6, ServerOptions())
    answer = Searcher().answer(Job("move", start, agent.spec.text, table=1, seed=3, number=1))
    assert answer.result["move"] in start.legal_moves()
