"""Games in progress can be saved, copied and pickled. Copies continue identically and share no memory."""

import copy
import itertools
import pickle
from functools import partial

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from reversi_env.envs import OpponentPool, ReversiEnv, ReversiVectorEnv, SettingsError
from reversi_env.envs import pettingzoo as aec
from tests.oracles.games import LastLegal, last_legal, same_step

OPTIONS = {
    "two players": {"opponent": None},
    "random": {"opponent": "random", "colour": "random", "observation": "dict"},
    "pool": {"opponent": ["random", "greedy", last_legal, LastLegal()], "colour": "alternate", "reward": "shaped"},
}
options = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
COPIERS = {
    "clone": lambda env: env.clone(),
    "deepcopy": copy.deepcopy,
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),
}
MAKERS = {
    "single": partial(ReversiEnv, size=6),
    "next step": partial(ReversiVectorEnv, 5, size=4, autoreset_mode="NEXT_STEP"),
    "same step, no copies": partial(ReversiVectorEnv, 5, size=4, autoreset_mode="SAME_STEP", copy=False),
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def some_steps(env, count):
    """Return copies of the results of random steps and, in single environments, of the resets between episodes."""
    results = []
    for _ in range(count):
        results.append(copy.deepcopy(env.step(env.sample_legal())))
        if results[-1][2] is True:
            results.append(env.reset())
    return results


def assert_same_results(left, right):
    assert all(same_step(a, b) for a, b in zip(left, right, strict=True))


@options
@makers
def test_copy_or_restored_state_continues_identically(options, make):
    env, other = make(**options), make(**options)
    env.reset(seed=1)
    some_steps(env, 20)
    copies, state, masks = [copier(env) for copier in COPIERS.values()], env.get_state(), env.action_masks()
    kept = pickle.loads(pickle.dumps(state))
    assert all(np.array_equal(copied.action_masks(), masks) for copied in copies)
    played = [some_steps(copied, 60) for copied in copies]
    assert np.array_equal(env.get_state(), state)
    assert np.array_equal(env.action_masks(), masks)
    expected = some_steps(env, 60)
    for results in played:
        assert_same_results(results, expected)
    if isinstance(env, ReversiEnv):
        assert len({one.np_random.integers(2**60) for one in (env, *copies)}) == 1
    for one in (env, other):
        one.set_state(state)
        assert np.array_equal(state, kept)
        assert np.array_equal(one.action_masks(), masks)
        assert_same_results(some_steps(one, 60), expected)


def test_copies_of_finished_and_new_environments_need_reset():
    env = ReversiEnv(size=4, opponent=None)
    never_reset = [copier(env) for copier in COPIERS.values()]
    env.reset(seed=1)
    while not env.step(env.sample_legal())[2]:
        pass
    for copied in (*never_reset, *(copier(env) for copier in COPIERS.values())):
        with pytest.raises(ResetNeeded):
            copied.step(0)


def test_deepcopy_copies_opponents_and_clone_shares_them():
    env = ReversiEnv(opponent=OpponentPool(["random"]))
    assert env.clone().opponents is env.opponents
    assert copy.deepcopy(env).opponents is not env.opponents


def test_window_is_not_copied(unlimited_fps):
    env = ReversiEnv(render_mode="human")
    env.reset(seed=1)
    for copier in COPIERS.values():
        copied = copier(env)
        assert copied._window is None
        copied.close()
    assert env._window.is_open
    env.close()


def test_state_of_another_game_or_opponent_is_rejected():
    big, small = (ReversiEnv(size=size, opponent=None) for size in (8, 4))
    against, among = ReversiEnv(size=4, opponent=last_legal), ReversiEnv(size=4, opponent=["random", last_legal])
    for env in (big, small, against, among):
        env.reset(seed=1)
    some_steps(big, 20)
    while among.get_state()["opponent"][0] != 1:
        among.reset()
    reversed_game, random_game = ReversiEnv(size=4, variant="reversed", opponent=None), ReversiEnv(size=4)
    other_games = [(small, big), (big, small), (reversed_game, small)]
    other_opponents = [(small, against), (random_game, small), (random_game, against), (against, among)]
    for message, pairs in (("game", other_games), ("opponent", other_opponents)):
        for env, other in pairs:
            before = env.get_state()
            with pytest.raises(SettingsError, match=message):
                env.set_state(other.get_state())
            assert env.get_state() == before
    with pytest.raises(SettingsError, match="2"):
        ReversiVectorEnv(2, size=4, opponent=None).set_state(small.get_state())
    for env, bad in itertools.product((big, ReversiVectorEnv(2), aec.env()), (None, 3, {}, np.zeros(1), "state")):
        env.reset(seed=1)
        with pytest.raises(SettingsError, match="get_state"):
            env.set_state(bad)
    batch = ReversiVectorEnv(1, size=4, opponent=None)
    batch.set_state(small.get_state())
    assert batch.positions() == [small.position()]


def aec_game(env):
    """Play to the end, with the last steps of terminated agents; return everything that was observed."""
    seen = []
    for agent in env.agent_iter():
        observation, reward, terminated, _, info = env.last()
        seen.append((agent, {key: value.tolist() for key, value in observation.items()}, reward, terminated, info))
        env.step(None if terminated else env.sample_legal())
    return seen


@pytest.mark.parametrize("turns", [0, 5, 1000], ids=["at the start", "in the middle", "between the last two steps"])
def test_copied_aec_game_continues_identically(turns):
    env, other = aec.env(size=4), aec.env(size=4)
    never_reset = [copier(env) for copier in COPIERS.values()]
    env.reset(seed=3)
    for _ in range(turns):
        if env.terminations[env.agent_selection]:
            env.step(None)  # the other agent's last step is still missing
            break
        env.step(env.sample_legal())
    copies, state = [copier(env) for copier in COPIERS.values()], env.get_state()
    before = copy.deepcopy(state)
    seen = [aec_game(copied) for copied in copies]
    assert str(env.get_state()) == str(before)
    expected = aec_game(env)
    for one in (env, other, *never_reset):
        one.set_state(state)
        seen.append(aec_game(one))
    assert seen == [expected] * len(seen)
    assert str(state) == str(before)


def assert_fresh(arrays):
    assert all(array.flags.writeable for array in arrays)
    assert not any(np.shares_memory(one, other) for one, other in itertools.combinations(arrays, 2))


@options
def test_step_returns_new_arrays_and_plain_numbers(options):
    """Rewards and infos are plain floats, bools and ints, as SB3 and JSON need; arrays share no memory."""
    env = ReversiEnv(size=4, **options)
    arrays, terminated = [], True
    for _ in range(30):
        if terminated:
            observation, info = env.reset(seed=1)
        observation, reward, terminated, truncated, info = env.step(env.sample_legal())
        assert (type(reward), type(terminated), truncated) == (float, bool, False)
        assert (type(info["to_move"]), type(info["illegal_action"])) == (int, bool)
        assert type(info.get("agent", 0)) is int
        assert all(type(reward) is float for reward in info.get("rewards", ()))
        assert info["action_mask"].dtype == np.int8
        arrays += [*(observation.values() if isinstance(observation, dict) else [observation]), info["action_mask"]]
        arrays.append(env.action_masks())
    assert_fresh(arrays)


def test_aec_returns_new_arrays_and_state_by_colour():
    env = aec.env(size=4)
    env.reset(seed=1)
    arrays = []
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        assert (type(reward), type(terminated), type(truncated)) == (float, bool, bool)
        assert type(info["illegal_action"]) is bool
        state = env.state()
        arrays += [*observation.values(), *env.observe("player_0").values(), state]
        assert state in env.state_space
        assert np.array_equal(state[:2], observation["observation"][:: 1 if agent == "player_0" else -1])
        assert terminated or (state[2] == int(agent[-1])).all()
        observation["observation"][...] = 1
        env.step(None if terminated else env.sample_legal())
    assert_fresh(arrays)


def test_restored_episodes_have_all_their_steps_again():
    env = ReversiVectorEnv(2, size=6, max_episode_steps=3)
    env.reset(seed=1)
    env.step(env.sample_legal())
    env.set_state(env.get_state())
    assert [env.step(env.sample_legal())[3].tolist() for _ in range(3)] == [[False] * 2] * 2 + [[True] * 2]
