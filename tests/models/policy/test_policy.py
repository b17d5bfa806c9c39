"""`PolicyValueNet`: its inputs and symmetries, its files, the agents that play by it, and the packaged policies."""

import numpy as np
import pytest
import torch

from models.bitboards import board_tensor
from models.files import WeightsError
from models.policy import Architecture
from models.policy.agent import PolicyAgent
from models.policy.files import SavedPolicy, packaged_policy, read_policy
from models.policy.net import ValueFromBoards, action_logits, net_inputs, policy_logits, symmetry_actions, transformed
from play.server import catalogue
from play.server.options import ServerOptions
from play.server.workers.worker import Job, Searcher
from reversi_env import Position, Rules
from reversi_env.envs import ReversiVectorEnv
from reversi_env.errors import TrainError
from reversi_env.storage.checksummed import pack_checksummed, unpack_checksummed
from search import agents
from train.arena.network_players import BatchPolicy
from train.rl.options import faster_precision


def inputs(own, opp, size):
    return net_inputs(board_tensor(own), board_tensor(opp), size)


@pytest.mark.parametrize("size", [4, 6, 8])
def test_the_network_gets_the_observations_of_the_environment(size, positions):
    rules = Rules(size)
    own, opp = positions(size)
    discs, masks = inputs(own, opp, size)
    for i in range(0, own.size, 7):
        position = Position(rules, int(own[i]), int(opp[i]))
        games = ReversiVectorEnv(1, size=size, opponent=None, start=position)
        observation, infos = games.reset()
        assert np.array_equal(discs[i].numpy(), observation[0])
        assert np.array_equal(masks[i].numpy(), infos["action_mask"][0])


def test_boards_and_planes_give_the_same(tiny_net, positions):
    net = tiny_net(6)
    own, opp = positions(6)
    discs, masks = inputs(own, opp, 6)
    with torch.no_grad():
        logits, values = net(discs, masks)
        assert torch.equal(net.of_boards(own, opp)[0], logits)
        assert torch.allclose(net.values(discs, masks), values)
        assert torch.allclose(ValueFromBoards(net)(board_tensor(own), board_tensor(opp)), values)
    assert values.abs().max() <= 1


def test_the_best_moves_are_legal_and_samples_follow_the_policy(tiny_net, positions):
    net = tiny_net(4)
    own, opp = positions(4)
    discs, masks = (part.numpy() for part in inputs(own, opp, 4))
    assert masks[np.arange(own.size), BatchPolicy(net)(discs, masks)].all()
    many = (np.repeat(part[40:41], 20_000, axis=0) for part in (discs, masks))
    shares = np.bincount(BatchPolicy(net, temperature=1.0, seed=3)(*many), minlength=17) / 20_000
    probs = torch.softmax(torch.from_numpy(policy_logits(net, own[40:41], opp[40:41])), 1)[0].numpy()
    assert np.abs(shares - probs).max() < 0.02
    assert (shares[masks[40] == 0] == 0).all()
    assert np.isfinite(policy_logits(net, own, opp)).all()  # of illegal actions, too


def test_the_mean_over_the_eight_symmetries_is_symmetric(tiny_net, positions):
    rules, net = Rules(6), tiny_net(6)
    eight = symmetry_actions(rules)
    assert len({tuple(actions) for actions in eight.tolist()}) == 8
    own, opp = positions(6)
    discs, masks = inputs(own, opp, 6)
    with torch.no_grad():
        logits = action_logits(net, discs, masks, symmetric=True)
        for actions in torch.from_numpy(eight):
            again = action_logits(net, *transformed(discs, masks, actions), symmetric=True)
            assert torch.allclose(again, logits[:, actions], atol=1e-4)
    best = BatchPolicy(net, symmetric=True)(discs.numpy(), masks.numpy())
    assert np.array_equal(best, logits.argmax(1).numpy())
    close = (logits >= logits.max(1, keepdim=True).values - 1e-4).numpy()  # several in a symmetric position
    agent = PolicyAgent("unused")
    agent.load = lambda rules: SavedPolicy(rules, net, {})
    for i in range(0, own.size, 9):
        assert close[i, agent.choose(Position(rules, int(own[i]), int(opp[i])))]
    assert (close.sum(1) == 1).mean() > 0.5


@pytest.mark.parametrize(("features", "precision"), [({}, "float32"), ({"avx512bf16": True}, "bfloat16")])
def test_the_faster_precision_depends_on_the_instructions_and_half_is_close(
    monkeypatch, tiny_net, positions, features, precision
):
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: features)
    assert (faster_precision(), faster_precision("cuda")) == (precision, "bfloat16")
    net, boards = tiny_net(6), positions(6)
    expected = net.of_boards(*boards)[1]
    net.trunk.half_precision = True
    assert torch.allclose(net.of_boards(*boards)[1], expected, atol=0.05)
    assert not any("half" in name for name in net.state_dict())


def test_a_policy_is_read_as_it_was_written(tiny_net, tmp_path):
    saved = SavedPolicy(Rules(6, "reversed"), tiny_net(6), {"steps": 7})
    (tmp_path / "policy").write_bytes(saved.to_bytes())
    read = read_policy(tmp_path / "policy")
    assert (read.rules, read.record, read.net.architecture) == (saved.rules, {"steps": 7}, saved.net.architecture)
    assert all(torch.equal(a, b) for a, b in zip(read.net.parameters(), saved.net.parameters(), strict=True))


def rewritten(data, **changes):
    """The file with other entries in its header."""
    header, tensors = unpack_checksummed(data)
    return pack_checksummed(tensors, header | changes)


def test_files_that_are_no_policies_are_refused(tiny_net, tmp_path):
    path = tmp_path / "policy.safetensors"
    whole = SavedPolicy(Rules(4), tiny_net(), {}).to_bytes()
    for data, reason in (
        (whole[:-10] + bytes([whole[-10] ^ 1]) + whole[-9:], "damaged"),
        (rewritten(whole, size=5), "5"),
        (rewritten(whole, size=6), ""),
        (rewritten(whole, architecture={"layers": 3}), ""),
        (rewritten(whole, architecture={"kind": "q"}), "kind"),
        (rewritten(whole, record=["none"]), "record"),
    ):
        path.write_bytes(data)
        with pytest.raises(WeightsError, match=rf"policy\.safetensors.*{reason}"):
            read_policy(path)
    for wrong in ({"channels": 0}, {"blocks": True}, {"channels": 2.5}):
        with pytest.raises(TrainError, match=next(iter(wrong))):
            Architecture(**wrong)


def test_policies_are_agents(policy_file, tiny_net):
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
    policy_file.write_bytes(SavedPolicy(Rules(4), tiny_net(seed=1), {"again": True}).to_bytes())
    assert agent.load(Rules(4)).record == {"again": True}  # a changed file is read again


@pytest.mark.parametrize(
    ("weights", "rules"), [("file", Rules(6)), ("file", Rules(4, "reversed")), ("packaged", Rules(4))], ids=str
)
def test_a_policy_plays_its_own_game_only_and_not_every_game_has_a_packaged_one(policy_file, weights, rules):
    spec = f"rl:{policy_file}" if weights == "file" else "rl"
    with pytest.raises(WeightsError, match="4x4 normal"):
        agents.make_agent(spec).choose(Position.initial(rules))


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_both_games_have_a_policy_on_6x6_that_plays_by_name_and_on_the_server(variant):
    rules = Rules(6, variant)
    policy, start = read_policy(packaged_policy(rules)), Position.initial(rules)
    assert (policy.rules, policy.record["options"]["variant"]) == (rules, variant)
    assert policy.record["standing"]["rungs"]["random"]["points"] > 0.85
    assert agents.make_agent("rl").choose(start) in start.legal_actions()
    agent = catalogue.limited_agent("rl:seed=3", 6, ServerOptions())
    answer = Searcher().answer(Job("move", start, agent.spec.text, table=1, seed=3, number=1))
    assert answer.result["move"] in start.legal_moves()
