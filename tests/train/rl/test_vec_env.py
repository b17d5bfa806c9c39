"""stable-baselines3 and sb3-contrib learn on the environments; the batch adapter behaves like DummyVecEnv."""

import gymnasium
import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from reversi_env.envs import ReversiEnv, SettingsError
from reversi_env.envs.wrappers import SymmetryAugmentation
from reversi_env.errors import TrainError
from tests.oracles.games import draw_legal, last_legal, same
from train.rl.board_policy import BoardPolicy
from train.rl.vec_env import ReversiVecEnv

pytestmark = pytest.mark.usefixtures("one_torch_thread")
POLICIES = {"planes": "MlpPolicy", "flat": "MlpPolicy", "dict": "MultiInputPolicy"}


def single(**options):
    return gymnasium.make("Reversi-v0", size=4, **options)


def wrapped(**options):
    return SymmetryAugmentation(single(**options))


def batch(**options):
    return ReversiVecEnv(8, size=4, **options)


@pytest.mark.parametrize(
    ("make", "observation"),
    [(single, "dict"), (wrapped, "planes"), *((batch, observation) for observation in POLICIES)],
)
def test_maskable_ppo_learns(make, observation):
    env = make(observation=observation, colour="random")
    steps = 64 if make is batch else 512
    model = MaskablePPO(POLICIES[observation], env, n_steps=steps, batch_size=256, n_epochs=2, seed=1, device="cpu")
    before = [parameter.detach().clone() for parameter in model.policy.parameters()]
    model.learn(512)
    assert model.num_timesteps == 512
    assert any(not torch.equal(old, new) for old, new in zip(before, model.policy.parameters(), strict=True))
    assert len(model.ep_info_buffer) > 50
    assert all(-1 <= episode["r"] <= 1 and 0 < episode["l"] <= 14 for episode in model.ep_info_buffer)


@pytest.mark.parametrize(
    "options",
    [
        {"observation": "planes", "colour": "alternate"},
        {"observation": "dict", "reward": "shaped", "discount": 0.95, "opponent": "greedy", "colour": "random"},
        {"observation": "flat", "opponent": ["random", last_legal], "colour": "white", "opening_plies": 2},
    ],
)
def test_the_batch_adapter_equals_dummy_vec_env(options):
    options |= {"size": 4}
    ours, theirs = ReversiVecEnv(5, **options), DummyVecEnv([lambda: Monitor(ReversiEnv(**options))] * 5)
    ours.seed(3)
    theirs.seed(3)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert same(ours.reset(), theirs.reset())
    rng, ended = np.random.default_rng(2), 0
    for _ in range(80):
        masks = get_action_masks(ours)
        assert masks.dtype == np.bool_
        assert np.array_equal(masks, get_action_masks(theirs))
        actions = draw_legal(rng, masks)
        if rng.random() < 0.1:
            actions[0] = 5
        (observations, rewards, dones, infos), expected = ours.step(actions), theirs.step(actions)
        assert same(observations, expected[0])
        assert (rewards.dtype, dones.dtype) == (np.float32, np.bool_)
        assert rewards.tolist() == expected[1].tolist()
        assert dones.tolist() == expected[2].tolist()
        for done, info, other in zip(dones, infos, expected[3], strict=True):
            assert ("terminal_observation" in info) == ("episode" in info) == done
            if done:
                ended += 1
                assert same(info["terminal_observation"], other["terminal_observation"])
                assert info["TimeLimit.truncated"] == other["TimeLimit.truncated"] is False
                assert all(info[name] == other[name] for name in ("score", "winner", "opponent"))
                assert info["episode"]["r"] == pytest.approx(other["episode"]["r"], abs=1e-6)
                assert info["episode"]["l"] == other["episode"]["l"]
                assert info["episode"]["t"] >= 0
    assert ended > 20


def test_attributes_of_the_batch_adapter():
    env = batch(opponent="greedy", render_mode="rgb_array")
    env.reset()
    assert env.get_attr("num_envs", indices=[0, 1]) == [8, 8]
    assert env.get_attr("opponents", indices=0) == [env.opponents]
    assert len(env.env_method("sample_legal")) == 8
    masks = env.env_method("action_masks")
    assert np.array_equal(env.action_masks(), masks)
    assert np.array_equal(env.env_method("action_masks", indices=[2, 5]), [masks[2], masks[5]])
    assert env.env_is_wrapped(Monitor) == [True] * 8
    assert env.env_is_wrapped(gymnasium.Wrapper, indices=[1]) == [False]
    assert not env.has_attr("nothing")
    with pytest.raises(AttributeError, match="copy"):
        env.set_attr("copy", True)
    with pytest.raises(SettingsError, match="copy=False"):
        batch(copy=False)
    assert env.render().dtype == np.uint8


def test_reset_options_and_seeds_are_used_once():
    env = batch(opponent="random")
    env.set_options({"empties": 5})
    env.seed(1)
    discs = env.reset().reshape(8, -1).sum(1)
    assert ((discs >= 11) & (discs <= 12)).all()
    assert (env.reset().reshape(8, -1).sum(1) == 4).all()
    env.set_options([{"empties": 5}] * 7 + [{}])
    with pytest.raises(SettingsError, match="options"):
        env.reset()
    env = batch(opponent="random", opening_plies=4)  # seeds are used once, too
    env.seed(5)
    first, second = env.reset(), env.reset()
    assert not np.array_equal(first, second)
    env.seed(5)
    assert np.array_equal(first, env.reset())
    assert np.array_equal(second, env.reset())


def test_one_model_plays_both_sides():
    env, sides = batch(opponent=None), set()
    before, black = env.reset(), np.ones(8, bool)
    for _ in range(30):
        actions = env.games.sample_legal()
        observations, rewards, dones, infos = env.step(actions)
        passed = actions == 16
        assert np.array_equal(before[passed], observations[passed][:, ::-1])
        for i in np.flatnonzero(dones):
            assert rewards[i] == np.sign(infos[i]["score"])
            assert infos[i]["winner"] == (-1 if rewards[i] == 0 else int((rewards[i] > 0) != black[i]))
            assert "opponent" not in infos[i]
            sides.add(bool(black[i]))
        before, black = observations, np.where(dones, True, ~black)
    assert sides == {True, False}


def test_board_policy_learns_and_plays_legally():
    env = ReversiVecEnv(8, size=4, observation="dict", colour="random")
    shape = {"architecture": {"channels": 4, "blocks": 1}}
    model = MaskablePPO(BoardPolicy, env, n_steps=8, batch_size=32, policy_kwargs=shape, seed=1, device="cpu")
    before = [parameter.detach().clone() for parameter in model.policy.parameters()]
    model.learn(64)
    assert any(not torch.equal(old, new) for old, new in zip(before, model.policy.parameters(), strict=True))
    observations = env.reset()
    actions, _ = model.predict(observations, action_masks=env.action_masks(), deterministic=True)
    assert env.action_masks()[np.arange(8), actions].all()
    with pytest.raises(TrainError, match="observation="):
        MaskablePPO(BoardPolicy, batch())
