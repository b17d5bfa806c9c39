"""A game in progress can be kept, copied and pickled, and goes on in the copy exactly as it would have; nothing is shared."""

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
WAYS = {
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
    """Random steps, and a reset wherever the episode of a single environment ends; copies of everything that was returned."""
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
def test_a_copy_or_a_state_goes_on_in_the_same_way_and_alone(options, make):
    env, other = make(**options), make(**options)
    env.reset(seed=1)
    some_steps(env, 20)
    twins, state, masks = [way(env) for way in WAYS.values()], env.get_state(), env.action_masks()
    kept = pickle.loads(pickle.dumps(state))
    assert all(np.array_equal(twin.action_masks(), masks) for twin in twins)
    played = [some_steps(twin, 60) for twin in twins]
    assert np.array_equal(env.get_state(), state)
    assert np.array_equal(env.action_masks(), masks)
    expected = some_steps(env, 60)
    for results in played:
        assert_same_results(results, expected)
    if isinstance(env, ReversiEnv):
        assert len({one.np_random.integers(2**60) for one in (env, *twins)}) == 1
    for one in (env, other):
        one.set_state(state)
        assert np.array_equal(state, kept)
        assert np.array_equal(one.action_masks(), masks)
        assert_same_results(some_steps(one, 60), expected)


def test_a_finished_and_an_unbegun_episode_stay_what_they_are():
    env = ReversiEnv(size=4, opponent=None)
    unbegun = [way(env) for way in WAYS.values()]
    env.reset(seed=1)
    while not env.step(env.sample_legal())[2]:
        pass
    for twin in (*unbegun, *(way(env) for way in WAYS.values())):
        with pytest.raises(ResetNeeded):
            twin.step(0)


def test_deepcopy_copies_the_opponents_and_a_clone_shares_them():
    env = ReversiEnv(opponent=OpponentPool(["random"]))
    assert env.clone().opponents is env.opponents
    assert copy.deepcopy(env).opponents is not env.opponents


def test_a_window_is_not_copied(hasty_window):
    env = ReversiEnv(render_mode="human")
    env.reset(seed=1)
    for way in WAYS.values():
        twin = way(env)
        assert twin._window is None
        twin.close()
    assert env._window.is_open
    env.close()


def test_states_of_other_games_are_refused():
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
    """Play to the end, the dead agents' steps included; everything that was seen."""
    seen = []
    for agent in env.agent_iter():
        observation, reward, terminated, _, info = env.last()
        seen.append((agent, {key: value.tolist() for key, value in observation.items()}, reward, terminated, info))
        env.step(None if terminated else env.sample_legal())
    return seen


@pytest.mark.parametrize("turns", [0, 5, 1000], ids=["at the start", "in the middle", "between the last two steps"])
def test_a_copied_aec_game_goes_on_in_the_same_way(turns):
    env, other = aec.env(size=4), aec.env(size=4)
    unbegun = [way(env) for way in WAYS.values()]
    env.reset(seed=3)
    for _ in range(turns):
        if env.terminations[env.agent_selection]:
            env.step(None)  # one agent has gone, the other is still to be stepped
            break
        env.step(env.sample_legal())
    twins, state = [way(env) for way in WAYS.values()], env.get_state()
    before = copy.deepcopy(state)
    seen = [aec_game(twin) for twin in twins]
    assert str(env.get_state()) == str(before)
    expected = aec_game(env)
    for one in (env, other, *unbegun):
        one.set_state(state)
        seen.append(aec_game(one))
    assert seen == [expected] * len(seen)
    assert str(state) == str(before)


def assert_fresh(arrays):
    assert all(array.flags.writeable for array in arrays)
    assert not any(np.shares_memory(one, other) for one, other in itertools.combinations(arrays, 2))


@options
def test_what_a_step_returns_is_fresh_and_plain(options):
    """Plain floats, bools and ints, as SB3 and JSON want them, in objects that nobody else holds."""
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


def test_what_the_aec_environment_returns_is_fresh_and_plain_and_its_state_in_colours():
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
