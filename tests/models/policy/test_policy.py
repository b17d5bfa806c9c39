"""`PolicyValueNet`: its inputs and symmetries, its files, the agents that play by it, and the packaged policies."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save

from models.bitboards import board_tensor
from models.files import WeightsError
from models.policy import FOLDER, Architecture
from models.policy.agent import PolicyAgent
from models.policy.files import SavedPolicy, packaged_policy, read_policy
from models.policy.net import (
    ILLEGAL_LOGIT,
    ValueFromBoards,
    action_logits,
    mask_illegal,
    net_inputs,
    policy_logits,
    symmetry_actions,
    transformed,
)
from play.server import catalogue
from play.server.messages import Refused
from play.server.options import ServerOptions
from play.server.workers.worker import Job, Searcher
from reversi_env import Position, Rules
from reversi_env.envs import ReversiVectorEnv
from reversi_env.errors import TrainError
from search import agents
from train.arena.network_players import BatchPolicy, BatchPolicyPlayer
from train.evaluation.ladder import Ladder
from train.rl.options import faster_precision

FILES = sorted(FOLDER.glob("*.safetensors"))


def inputs(own, opp, size):
    return net_inputs(board_tensor(own), board_tensor(opp), size)


# --- the network ------------------------------------------------------------------------------------


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


def test_logits_of_illegal_actions_are_negligible_but_finite():
    logits = mask_illegal(torch.zeros(1, 3), torch.tensor([[1, 0, 1]]))
    assert logits.tolist() == [[0.0, ILLEGAL_LOGIT, 0.0]]
    assert torch.softmax(logits, 1)[0, 1] == 0


@pytest.mark.parametrize("wrong", [{"channels": 0}, {"blocks": True}, {"channels": 2.5}])
def test_impossible_networks_are_refused(wrong):
    with pytest.raises(TrainError, match=next(iter(wrong))):
        Architecture(**wrong)


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


def test_half_precision_is_close_and_no_part_of_the_weights(tiny_net, positions):
    net = tiny_net(6)
    own, opp = positions(6)
    expected = net.of_boards(own, opp)[1]
    net.trunk.half_precision = True
    assert torch.allclose(net.of_boards(own, opp)[1], expected, atol=0.05)
    assert not any("half" in name for name in net.state_dict())


@pytest.mark.parametrize(("features", "precision"), [({}, "single"), ({"avx512bf16": True}, "bfloat16")])
def test_the_faster_precision_depends_on_the_instructions(monkeypatch, features, precision):
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: features)
    assert (faster_precision(), faster_precision("cuda")) == (precision, "bfloat16")


# --- files ------------------------------------------------------------------------------------------


def test_a_policy_is_read_as_it_was_written(tiny_net, tmp_path):
    saved = SavedPolicy(Rules(6, "reversed"), tiny_net(6), {"steps": 7})
    (tmp_path / "policy").write_bytes(saved.to_bytes())
    read = read_policy(tmp_path / "policy")
    assert (read.rules, read.record, read.net.architecture) == (saved.rules, {"steps": 7}, saved.net.architecture)
    assert all(torch.equal(a, b) for a, b in zip(read.net.parameters(), saved.net.parameters(), strict=True))


def rewritten(data, **changes):
    """The file with other entries in its header, and the hash of its tensors left out."""
    length = int.from_bytes(data[:8], "little")
    description = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["policy"]) | changes
    description = {name: value for name, value in description.items() if value is not None and name != "tensors"}
    return save(load(data), metadata={"policy": json.dumps(description)})


def test_files_that_are_no_policies_are_refused(tiny_net, tmp_path):
    """What all weight files have in common is tested in ``tests/models/test_files.py``."""
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


# --- agents -----------------------------------------------------------------------------------------


def test_policies_are_agents(policy_file):
    start = Position.initial(Rules(4))
    best = agents.make_agent(f"rl:{policy_file}").choose(start)
    assert agents.make_agent(f"rl:weights={policy_file},seed=5").choose(start) == best
    sampled = [agents.make_agent(f"rl:{policy_file},temperature=9,seed={seed}").choose(start) for seed in range(30)]
    assert set(sampled) == set(start.legal_actions())
    result = agents.make_agent(f"rl-search:{policy_file},depth=2,exact=0").search(start)
    assert (result.depth, len(result.moves)) == (2, 4)
    assert agents.make_agent(f"rl-search:{policy_file},depth=1,exact=12").search(start).exact


def test_a_policy_that_must_pass_passes(policy_file):
    position = Position.initial(Rules(4))
    while not position.must_pass():
        actions = position.legal_actions()
        position = position.play(actions[2 if len(actions) > 2 else 0])
    for name in ("rl", "rl-search"):
        assert agents.make_agent(f"{name}:{policy_file}").choose(position) == position.rules.pass_action


@pytest.mark.parametrize("rules", [Rules(6), Rules(4, "reversed")], ids=str)
def test_a_policy_plays_its_own_game_only(policy_file, rules):
    with pytest.raises(WeightsError, match="4x4 normal"):
        agents.make_agent(f"rl:{policy_file}").choose(Position.initial(rules))


def test_a_game_without_a_packaged_policy_is_named():
    with pytest.raises(WeightsError, match="4x4 normal"):
        agents.make_agent("rl").choose(Position.initial(Rules(4)))


def test_a_changed_file_is_read_again(policy_file, tiny_net):
    agent = agents.make_agent(f"rl:{policy_file}")
    agent.choose(Position.initial(Rules(4)))
    policy_file.write_bytes(SavedPolicy(Rules(4), tiny_net(seed=1), {"again": True}).to_bytes())
    assert agent.load(Rules(4)).record == {"again": True}


# --- the packaged policies --------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_what_its_name_says(path):
    rules = read_policy(path).rules
    assert path == packaged_policy(rules)


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_both_games_have_a_policy_on_6x6_that_plays_by_name_and_on_the_server(variant):
    rules = Rules(6, variant)
    record, start = read_policy(packaged_policy(rules)).record, Position.initial(rules)
    assert record["training"] == "ppo"
    assert record["command"].startswith("reversi rl")
    assert record["options"]["variant"] == variant
    assert record["standing"]["rungs"]["random"]["points"] > 0.85
    assert agents.make_agent("rl").choose(start) in start.legal_actions()
    agent = catalogue.limited_agent("rl:seed=3", 6, ServerOptions())
    answer = Searcher().answer(Job("move", start, agent.spec.text, table=1, seed=3, number=1))
    assert answer.result["move"] in start.legal_moves()


@pytest.mark.slow
def test_the_normal_one_beats_the_baselines():
    rules = Rules(6)
    ladder = Ladder(rules, 200, seed=5, baselines=("random", "greedy", "cell-utility:depth=2"))
    scores = ladder.measure(BatchPolicyPlayer(read_policy(packaged_policy(rules)).net, symmetric=True)).scores
    assert scores["random"].score > 0.92
    assert scores["greedy"].score > 0.85
    assert scores["cell-utility:depth=2"].score - 2 * scores["cell-utility:depth=2"].score_error > 0.5


@pytest.mark.parametrize("spec", ["rl:/etc/passwd", "rl:weights=x", "rl:temperature=1", "rl:seed=x", "rl-search"])
def test_clients_of_the_server_name_no_files(spec):
    with pytest.raises(Refused):
        catalogue.limited_agent(spec, 6, ServerOptions())
    with pytest.raises(Refused, match="8x8"):
        catalogue.limited_agent("rl", 8, ServerOptions())
