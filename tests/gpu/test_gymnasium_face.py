"""The tensor environment behind Gymnasium's `VectorEnv`."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from reversi_env.envs import SettingsError, TorchVectorEnv
from tests.envs.helpers import draw_legal
from tests.gpu.test_torch_vector import make_twin


def face(count=16, *, numpy=True, **options):
    return TorchVectorEnv(count, device="cpu", **options).as_gymnasium(numpy=numpy)


@pytest.mark.parametrize("layout", ["planes", "half", "packed"])
def test_results_lie_in_the_spaces(layout):
    envs = face(size=4, layout=layout, opponent="random")
    observations, _ = envs.reset(seed=1)
    assert observations in envs.observation_space
    for _ in range(30):
        actions = envs.action_space.sample()
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        assert observations in envs.observation_space
        assert (rewards.dtype, terminated.dtype, truncated.dtype) == (np.float64, np.bool_, np.bool_)
        for i in np.flatnonzero(terminated):
            assert infos["final_obs"][i] in envs.single_observation_space
            assert infos["_final_obs"][i]


def test_it_plays_the_games_of_the_vector_environment():
    envs, twin = face(size=6, opponent="greedy"), make_twin(16, size=6, opponent="greedy", seed=4)
    _, infos = envs.reset(seed=4)
    rng = np.random.default_rng(2)
    for _ in range(60):
        actions = draw_legal(rng, infos["action_mask"])
        found, expected = envs.step(actions), twin.step(actions)
        for one, other in zip(found[:4], expected[:4], strict=True):
            assert np.array_equal(one, other)
        assert ("final_obs" in found[4]) == ("final_obs" in expected[4])
        for i in np.flatnonzero(found[2]):
            assert np.array_equal(found[4]["final_obs"][i], expected[4]["final_obs"][i])
        infos = found[4]


def test_results_are_copies_and_wrappers_work():
    envs = RecordEpisodeStatistics(face(size=4, opponent="random"))
    observations, infos = envs.reset(seed=1)
    first, kept = observations, observations.copy()
    rng, episodes = np.random.default_rng(1), 0
    for _ in range(30):
        observations, _, _, _, infos = envs.step(draw_legal(rng, infos["action_mask"]))
        if "episode" in infos:
            episodes += int(infos["_episode"].sum())
            assert set(infos["episode"]["r"][infos["_episode"]]) <= {-1.0, 0.0, 1.0}
    assert np.array_equal(first, kept)
    assert episodes > 16


@pytest.mark.parametrize("numpy", [True, False])
def test_what_is_told_of_an_end_is_marked_where_a_game_has_ended(numpy):
    envs = face(numpy=numpy)
    _, infos = envs.reset(seed=1)
    names = ["winner", "final_score", "final_boards"]
    assert not any(infos[f"_{name}"].any() for name in names)
    ends = 0
    while ends < 20:
        mask = torch.as_tensor(infos["action_mask"])
        _, _, terminated, _, infos = envs.step(mask.to(torch.uint8).argmax(-1))
        ends += int(terminated.sum())
        assert all((infos[f"_{name}"] == terminated).all() for name in names)
        assert infos["_action_mask"].all()


def test_tensors_where_they_are_asked_for():
    envs = face(numpy=False)
    observations, infos = envs.reset(seed=1)
    assert observations.data_ptr() == envs.envs.observations.data_ptr()
    observations, *_ = envs.step(infos["action_mask"].to(torch.uint8).argmax(-1))
    assert isinstance(observations, torch.Tensor)


@pytest.mark.parametrize("name", ["TorchReversi-v0", "TorchReversedReversi-v0"])
def test_it_is_registered(name):
    envs = gymnasium.make_vec(name, num_envs=5, size=4, device="cpu", autoreset_mode="SAME_STEP", max_episode_steps=99)
    assert envs.autoreset_mode is envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    observations, _ = envs.reset(seed=1)
    assert observations.shape == (5, 2, 4, 4)
    assert envs.unwrapped.envs.rules.variant == ("reversed" if "Reversed" in name else "normal")


@pytest.mark.parametrize(("option", "value"), [("autoreset_mode", "NEXT_STEP"), ("max_episode_steps", 20)])
def test_what_tensors_cannot_do_is_refused(option, value):
    with pytest.raises(SettingsError, match=f"{option}={value!r}: expected"):
        gymnasium.make_vec("TorchReversi-v0", num_envs=2, device="cpu", **{option: value})
