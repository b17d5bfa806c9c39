"""The tensor environment as a Gymnasium `VectorEnv`, and its arrays through Gymnasium's own wrapper."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import ArrayConversion, RecordEpisodeStatistics

from reversi_env import batch
from reversi_env.envs import SettingsError, TorchVectorEnv
from tests.oracles.games import draw_legal
from tests.reversi_env.envs.test_torch_vector import make_twin


def arrays(**options):
    return ArrayConversion(TorchVectorEnv(16, device="cpu", **options), env_xp=torch, target_xp=np)


@pytest.mark.parametrize("layout", ["planes", "half", "packed"])
def test_results_lie_in_the_spaces(layout):
    envs = arrays(size=4, layout=layout, opponent="random")
    observations, _ = envs.reset(seed=1)
    assert observations in envs.observation_space
    for _ in range(30):
        observations, _, terminated, truncated, _ = envs.step(envs.action_space.sample())
        assert observations in envs.observation_space
        assert (terminated.dtype, truncated.dtype) == (np.bool_, np.bool_)


def test_arrays_are_those_of_the_vector_environment():
    envs, twin = arrays(size=6, opponent="greedy"), make_twin(16, size=6, opponent="greedy", seed=4)
    _, infos = envs.reset(seed=4)
    rng = np.random.default_rng(2)
    ends = 0
    for _ in range(60):
        actions = draw_legal(rng, infos["action_mask"])
        (*results, infos), (*expected, expected_infos) = envs.step(actions), twin.step(actions)
        for one, other in zip(results, expected, strict=True):
            assert np.array_equal(one, other)
        own, opp = infos["final_boards"].view(np.uint64).T
        for i in np.flatnonzero(results[2]):
            ends += 1
            assert np.array_equal(batch.planes(own, opp, twin.rules)[i], expected_infos["final_obs"][i])
    assert ends > 16


def test_wrappers_work():
    envs = RecordEpisodeStatistics(arrays(size=4, opponent="random"))
    _, infos = envs.reset(seed=1)
    rng, episodes = np.random.default_rng(1), 0
    for _ in range(30):
        *_, infos = envs.step(draw_legal(rng, infos["action_mask"]))
        if "episode" in infos:
            episodes += int(infos["_episode"].sum())
            assert set(infos["episode"]["r"][infos["_episode"]]) <= {-1.0, 0.0, 1.0}
    assert episodes > 16


@pytest.mark.parametrize("name", ["TorchReversi-v0", "TorchReversedReversi-v0"])
def test_it_is_registered(name):
    envs = gymnasium.make_vec(name, num_envs=5, size=4, device="cpu", autoreset_mode="SAME_STEP", max_episode_steps=99)
    assert envs.autoreset_mode is envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    observations, _ = envs.reset(seed=1)
    assert observations.shape == (5, 2, 4, 4)
    assert envs.unwrapped.rules.variant == ("reversed" if "Reversed" in name else "normal")


@pytest.mark.parametrize(("option", "value"), [("autoreset_mode", "NEXT_STEP"), ("max_episode_steps", 20)])
def test_what_tensors_cannot_do_is_refused(option, value):
    with pytest.raises(SettingsError, match=f"{option}={value!r}"):
        gymnasium.make_vec("TorchReversi-v0", num_envs=2, device="cpu", **{option: value})
