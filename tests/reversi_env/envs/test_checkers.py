"""The checkers of Gymnasium, stable-baselines3 and PettingZoo pass; each expected warning is explained here."""

import itertools
import warnings

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from stable_baselines3.common.env_checker import check_env as sb3_check

from reversi_env.envs import ReversiEnv, ReversiVectorEnv
from reversi_env.envs import pettingzoo as aec
from tests.oracles.games import GAMES, IDS, draw_legal, last_legal, only_these_warnings, same, same_step

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # PettingZoo's tests import PettingZoo's own old modules
    from pettingzoo.test import api_test, render_test, seed_test
    from pettingzoo.test.state_test import test_state as state_test
    from pettingzoo.test.state_test import test_state_space as state_space_test

#: SB3 treats every three-dimensional observation as a camera image. Here it is planes of discs, for an MLP or custom
#: convolutions. With `observation="flat"` there are no warnings.
IMAGE_WARNINGS = (
    "observation .*is an image but its `dtype` is",
    "observation space .*is an image but the upper and lower bounds",
    "The minimal resolution for an image is 36x36",
)
#: PettingZoo's own board games have the same dict observations. Its checker exempts them by name.
DICT_WARNINGS = (
    "Observation space for each agent probably should be gymnasium.spaces.box",
    "Observation is not a NumPy array",
)
MODES = list(AutoresetMode)


OPPONENTS, OBSERVATIONS = (None, "random", "greedy", last_legal), ("planes", "flat", "dict")
CHECKED = [
    *({"opponent": opponent, "observation": form} for opponent, form in itertools.product(OPPONENTS, OBSERVATIONS)),
    *({"size": size, "variant": variant} for size, variant in GAMES),
    {"reward": "shaped"},  # not integers
    {"colour": "random"},
]


@pytest.mark.parametrize("options", CHECKED, ids=map(str, range(len(CHECKED))))
def test_gymnasium_and_sb3_check_env(options, unlimited_fps):
    env = gymnasium.make("Reversi-v0", **options).unwrapped
    env.action_space.seed(1)
    with only_these_warnings(()):
        gymnasium_check(env)  # the spec is set, so all render modes are checked
    with only_these_warnings(() if options.get("observation") == "flat" else IMAGE_WARNINGS):
        sb3_check(env)


@pytest.mark.parametrize(("variant", "name"), IDS.items())
def test_ids_work_with_module_prefix_and_in_pettingzoo(variant, name):
    assert gymnasium.make(f"reversi_env:{name}").unwrapped.settings.variant == variant
    assert gymnasium.make_vec(f"reversi_env:{name}", num_envs=2).unwrapped.num_envs == 2
    env = pettingzoo.make("aec", name, size=6)
    assert isinstance(env, aec.raw_env)
    assert (env.rules.size, env.rules.variant) == (6, variant)


@pytest.mark.parametrize(("size", "variant"), GAMES)
def test_pettingzoo_checks(size, variant, unlimited_fps, capsys):
    def make(**options):
        return aec.env(size=size, variant=variant, **options)

    env = make()
    env.action_space("player_0").seed(1)
    with only_these_warnings(DICT_WARNINGS):
        api_test(env, num_cycles=200)
    with only_these_warnings(()):
        seed_test(make, num_cycles=60)
        render_test(make)
        state_space_test(make())
        state_test(make(), 60)


def info_of(infos, i):
    """Return the info of game *i* from Gymnasium's vector infos."""
    return {key: infos[key][i] for key in infos if not key.startswith(("_", "final")) and infos[f"_{key}"][i]}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("opponent", "observation", "options"),
    [
        (None, "planes", {}),
        ("random", "flat", {"colour": "random", "reward": "shaped", "discount": 0.9}),
        ("greedy", "dict", {"colour": "alternate", "variant": "reversed"}),
        (last_legal, "dict", {"colour": "white", "opening_plies": 3}),
        (["random", last_legal], "planes", {"colour": "alternate", "empties": 5, "reward": "shaped"}),
        (["random", "greedy"], "flat", {"max_episode_steps": 5}),
        ("random", "dict", {"extra_planes": ["last_move", "legal"], "dtype": "float32", "channels_last": True}),
    ],
)
def test_vector_env_matches_gymnasium_sync_vector_env(mode, opponent, observation, options):
    count, rng = 6, np.random.default_rng(5)
    options = {"size": 4, "opponent": opponent, "observation": observation, **options}
    limit = options.pop("max_episode_steps", 99)
    ours = ReversiVectorEnv(count, autoreset_mode=mode, max_episode_steps=limit if limit < 99 else None, **options)
    theirs = SyncVectorEnv([lambda: TimeLimit(ReversiEnv(**options), limit)] * count, autoreset_mode=mode)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    results, expected = (ours.reset(seed=11), theirs.reset(seed=11)), 0
    for _ in range(80):
        (our_obs, *our_rest, our_infos), (their_obs, *their_rest, their_infos) = results
        assert same(our_obs, their_obs)
        for mine, other in zip(our_rest, their_rest, strict=True):
            assert (mine.dtype, mine.tolist()) == (other.dtype, other.tolist())
        for i in range(count):
            other = info_of(their_infos, i)
            other.pop("rewards", None)
            assert ("score" in info_of(our_infos, i)) == ("score" in other)
            assert all(np.array_equal(info_of(our_infos, i)[key], other[key]) for key in other)
        assert ("final_obs" in our_infos) == ("final_obs" in their_infos)
        if "final_obs" in our_infos:
            expected += 1
            assert np.array_equal(our_infos["_final_obs"], their_infos["_final_obs"])
            assert np.array_equal(our_infos["_final_info"], their_infos["_final_info"])
            for i in np.flatnonzero(their_infos["_final_obs"]):
                assert same(our_infos["final_obs"][i], their_infos["final_obs"][i])
                final, other = info_of(our_infos["final_info"], i), info_of(their_infos["final_info"], i)
                assert all(np.array_equal(final[key], other[key]) for key in other if key != "rewards")
        ended = our_rest[1] | our_rest[2] if our_rest else np.zeros(count, bool)
        if mode == AutoresetMode.DISABLED and ended.any():
            results = [envs.reset(options={"reset_mask": ended.copy()}) for envs in (ours, theirs)]
            continue
        actions = draw_legal(rng, our_infos["action_mask"])
        if rng.random() < 0.05:
            actions[rng.integers(count)] = 0
        results = ours.step(actions), theirs.step(actions)
    assert (expected > 10) == (mode == AutoresetMode.SAME_STEP)


def test_results_are_copies_by_default():
    envs = ReversiVectorEnv(4, size=4, opponent=["random", last_legal], colour="random", observation="dict")
    kept = []

    def keep(result):
        observations, infos = result[0], result[-1]
        arrays = [*observations.values(), infos["action_mask"], infos["to_move"], infos["agent"]]
        kept.extend((array, array.copy()) for array in arrays)

    keep(envs.reset(seed=1))
    keep(envs.reset())
    state = envs.get_state()
    for _ in range(20):
        keep(envs.step(envs.sample_legal()))
    envs.set_state(state)
    keep(envs.reset(options={"reset_mask": np.array([True, False, False, True])}))
    assert all(np.array_equal(array, copied) for array, copied in kept)
    assert not any(np.shares_memory(a[0], b[0]) for a, b in itertools.combinations(kept, 2))


def test_copy_false_reuses_buffers_and_keeps_the_games():
    copied, reused = (ReversiVectorEnv(4, size=4, opponent=None, copy=copy) for copy in (True, False))
    copied.reset(seed=1)
    first, _ = reused.reset(seed=1)
    for _ in range(30):
        actions = copied.sample_legal()
        assert np.array_equal(actions, reused.sample_legal())
        ours, theirs = copied.step(actions), reused.step(actions)
        assert theirs[0] is first or np.shares_memory(theirs[0], first)
        assert same_step(ours, theirs)
