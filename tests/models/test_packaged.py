"""Baselines: the packaged networks as functions from observations and masks to logits and values."""

import numpy as np
import pytest
import torch

import models
from models.bitboards import board_tensor
from models.policy import PolicyAgent
from models.zero import ZeroAgent
from reversi_env import ReversiError, Rules, batch


def boards_and_observations(rules, plies):
    """Return boards, and an environment's observations and masks of the same positions."""
    own, opp = batch.random_positions(6, plies, rules, seed=3)
    legal = batch.legal_moves(own, opp, rules)
    squares = np.array(list(rules.squares()), np.uint64)
    planes = np.stack([(side[:, None] >> squares & np.uint64(1)).astype(np.int8) for side in (own, opp)], 1)
    masks = (legal[:, None] >> squares & np.uint64(1)).astype(np.int8)
    masks = np.concatenate([masks, legal[:, None] == 0], 1).astype(np.int8)
    return own, opp, planes.reshape(-1, 2, rules.size, rules.size), masks


NAMES = [f"zero-{game}" for game in ("6x6-normal", "6x6-reversed", "8x8-normal", "8x8-reversed")]
NAMES += ["rl-6x6-normal", "rl-6x6-reversed"]


def test_all_packaged_networks_are_baselines():
    assert [name.rpartition("-")[0] for name in models.baselines()] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_baseline_equals_packaged_network(name):
    model = models.baseline(name)
    rules, agent = model.rules, (ZeroAgent if name.startswith("zero") else PolicyAgent)()
    own, opp, boards, masks = boards_and_observations(rules, 9)
    logits, values = model(boards, masks)
    net = agent.load(rules).net
    with torch.no_grad():
        expected, discs = net(board_tensor(own), board_tensor(opp))
    legal = masks[:, : expected.shape[1]] > 0
    assert np.allclose(logits[:, : expected.shape[1]][legal], expected.numpy()[legal], atol=1e-5)
    assert np.allclose(values, (discs / rules.square_count).clamp(-1, 1).numpy(), atol=1e-5)
    assert (logits[masks == 0] < -1e8).all()
    tensors = model(torch.from_numpy(boards), torch.from_numpy(masks) > 0)
    assert all(np.array_equal(one, tensor.numpy()) for one, tensor in zip((logits, values), tensors, strict=True))
    single = model(boards[2], masks[2])
    assert (single[0].shape, single[1].shape) == (masks[2].shape, ())
    assert np.allclose(single[0], logits[2], atol=1e-4)


def test_name_without_version_works_and_unknown_name_lists_all():
    full = next(name for name in models.baselines() if name.startswith("zero-8x8-normal-"))
    assert models.baseline("zero-8x8-normal").name == models.baseline(full).name == full
    for wrong in ("zero-8x8-normal-000000000000", "zero-4x4-normal", "zero"):
        with pytest.raises(ReversiError, match=f"'{wrong}'.*{full}"):
            models.baseline(wrong)
    with pytest.raises(ReversiError, match=r"\(3, 2, 6, 6\)"):
        models.baseline("zero-8x8-normal")(np.zeros((3, 2, 6, 6)), np.zeros((3, 37)))
    assert Rules(8) == models.baseline(full).rules
