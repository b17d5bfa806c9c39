import numpy as np
import pytest
import torch

from models.bitboards import board_tensor
from models.policy import Architecture
from models.policy.agent import PolicyAgent
from models.policy.files import SavedPolicy
from models.policy.net import (
    ILLEGAL_LOGIT,
    PolicyValueNet,
    ValueFromBoards,
    action_logits,
    mask_illegal,
    net_inputs,
    policy_logits,
    symmetry_actions,
    transformed,
)
from reversi_env import Position, Rules
from reversi_env.envs import ReversiVectorEnv
from reversi_env.errors import TrainError
from train.arena.network_players import BatchPolicy
from train.rl.opponents import discs_to_boards
from train.rl.options import faster_precision


def inputs(own, opp, size):
    return net_inputs(board_tensor(own), board_tensor(opp), size)


@pytest.mark.parametrize("size", [4, 6, 8])
def test_what_the_network_sees_is_what_the_environment_shows(size, positions):
    rules = Rules(size)
    own, opp = positions(size)
    discs, masks = inputs(own, opp, size)
    for i in range(0, own.size, 7):
        position = Position(rules, int(own[i]), int(opp[i]))
        games = ReversiVectorEnv(1, size=size, opponent=None, start=position)
        observation, infos = games.reset()
        assert np.array_equal(discs[i].numpy(), observation[0])
        assert np.array_equal(masks[i].numpy(), infos["action_mask"][0])
    back = discs_to_boards(discs.numpy(), rules)
    assert np.array_equal(back[0], own)
    assert np.array_equal(back[1], opp)


def test_boards_and_planes_give_the_same(tiny_net, positions):
    net = tiny_net(6)
    own, opp = positions(6)
    discs, masks = inputs(own, opp, 6)
    with torch.no_grad():
        numbers, values = net(discs, masks)
        assert torch.equal(net.of_boards(own, opp)[0], numbers)
        assert torch.allclose(net.values(discs, masks), values)
        assert torch.allclose(ValueFromBoards(net)(board_tensor(own), board_tensor(opp)), values)
    assert values.abs().max() <= 1


def test_the_best_moves_are_legal_and_draws_follow_the_policy(tiny_net, positions):
    net = tiny_net(4)
    own, opp = positions(4)
    discs, masks = (part.numpy() for part in inputs(own, opp, 4))
    assert masks[np.arange(own.size), BatchPolicy(net)(discs, masks)].all()
    many = (np.repeat(part[40:41], 20_000, axis=0) for part in (discs, masks))
    drawn = np.bincount(BatchPolicy(net, temperature=1.0, seed=3)(*many), minlength=17) / 20_000
    chances = torch.softmax(torch.from_numpy(policy_logits(net, own[40:41], opp[40:41])), 1)[0].numpy()
    assert np.abs(drawn - chances).max() < 0.02
    assert (drawn[masks[40] == 0] == 0).all()


def test_illegal_actions_are_lost_but_finite():
    numbers = mask_illegal(torch.zeros(1, 3), torch.tensor([[1, 0, 1]]))
    assert numbers.tolist() == [[0.0, ILLEGAL_LOGIT, 0.0]]
    assert torch.softmax(numbers, 1)[0, 1] == 0


def test_eight_views_are_the_symmetries_of_the_square():
    rules = Rules(4)
    eight = symmetry_actions(rules)
    assert len({tuple(view) for view in eight.tolist()}) == 8
    assert (np.sort(eight, axis=1) == np.arange(17)).all()
    corners = {0, 3, 12, 15}
    assert all({int(view[c]) for c in corners} == corners for view in eight)


@pytest.mark.parametrize("wrong", [{"channels": 0}, {"blocks": True}, {"channels": 2.5}])
def test_networks_that_cannot_be(wrong):
    with pytest.raises(TrainError, match="expected"):
        Architecture(**wrong)
    with pytest.raises(TrainError, match="size=5"):
        PolicyValueNet(5)


def test_the_mean_over_symmetries_is_symmetric(tiny_net, positions):
    rules = Rules(6)
    own, opp = positions(6)
    discs, masks = inputs(own, opp, 6)
    with torch.no_grad():
        numbers = action_logits(tiny_net(6), discs, masks, symmetric=True)
        for view in torch.from_numpy(symmetry_actions(rules)):
            again = action_logits(tiny_net(6), *transformed(discs, masks, view), symmetric=True)
            assert torch.allclose(again, numbers[:, view], atol=1e-4)
    best = BatchPolicy(tiny_net(6), symmetric=True)(discs.numpy(), masks.numpy())
    assert np.array_equal(best, numbers.argmax(1).numpy())
    close = (
        numbers >= numbers.max(1, keepdim=True).values - 1e-4
    ).numpy()  # images of each other in a symmetric position
    agent = PolicyAgent("unused")
    agent.saved = lambda rules: SavedPolicy(rules, tiny_net(6), {})
    for i in range(0, own.size, 9):
        assert close[i, agent.choose(Position(rules, int(own[i]), int(opp[i])))]
    assert (close.sum(1) == 1).mean() > 0.5


def test_half_precision_is_close_and_no_part_of_the_weights(tiny_net, positions):
    net = tiny_net(6)
    own, opp = positions(6)
    exact = net.of_boards(own, opp)[1]
    net.trunk.half_precision = True
    assert torch.allclose(net.of_boards(own, opp)[1], exact, atol=0.05)
    assert not any("half" in name for name in net.state_dict())


@pytest.mark.parametrize(("features", "precision"), [({}, "single"), ({"avx512bf16": True}, "bfloat16")])
def test_the_faster_precision_is_that_of_the_instructions(monkeypatch, features, precision):
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: features)
    assert (faster_precision(), faster_precision("cuda")) == (precision, "bfloat16")
