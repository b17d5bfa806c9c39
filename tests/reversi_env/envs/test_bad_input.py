"""Bad input gets the error that Gymnasium's users expect, in words that say what to do, and changes nothing."""

import dataclasses
import inspect
import re
from functools import partial

import gymnasium
import numpy as np
import pettingzoo
import pytest
import torch
from gymnasium.error import InvalidAction, ResetNeeded

from reversi_env import Position, ReversiError, Rules
from reversi_env.envs import ReversiEnv, ReversiVectorEnv, SettingsError
from reversi_env.envs import pettingzoo as aec
from reversi_env.envs.settings import Settings, UnknownOptionError
from reversi_env.errors import PositionError, RulesError
from tests.oracles.games import last_legal

NOT_ACTIONS = [-1, 17, 2**70, 1.0, np.float64(3), "a1", None, True, np.bool_(True), [1], (1,)]
NOT_ACTIONS += [
    np.array([1, 2]),
    np.array(1.0),
    np.array([True]),
    torch.tensor([1.0]),
    torch.tensor(1.0),
    torch.tensor(True),
]
not_actions = pytest.mark.parametrize("action", NOT_ACTIONS, ids=repr)
SINGLE_AGENT = {"opponent": "random", "colour": "white", "observation": "flat", "reward": "shaped"}
opponents = pytest.mark.parametrize("opponent", [None, "random", last_legal])


def begun(**options):
    env = ReversiEnv(size=4, **options)
    env.reset(seed=1)
    return env


def batch(mode="NEXT_STEP", **options):
    envs = ReversiVectorEnv(3, size=4, autoreset_mode=mode, **options)
    envs.reset(seed=1)
    return envs


def game(**options):
    env = aec.env(size=4, **options)
    env.reset(seed=1)
    return env


# --- actions


@pytest.mark.parametrize("illegal", ["lose", "raise", "random"])
@not_actions
def test_what_is_not_an_action_is_refused_whatever_the_policy(action, illegal):
    for env in (begun(illegal=illegal), game(illegal=illegal)):
        before = str(env.get_state())
        with pytest.raises(InvalidAction, match=r"action .*"):
            env.step(action)
        assert str(env.get_state()) == before
        env.step(env.sample_legal())


@pytest.mark.parametrize(
    "action",
    [
        1,
        np.int64(1),
        np.uint32(1),
        np.array(1),
        np.array(1, np.uint8),
        np.array([1]),
        torch.tensor(1),
        torch.tensor([1]),
    ],
    ids=repr,
)
def test_integers_of_every_kind_are_actions(action):
    """`predict` of stable-baselines3 gives an array without axes, `sample` a numpy integer, `argmax` of torch a tensor."""
    for env in (begun(opponent=None), begun()):
        assert env.step(action)[-1]["illegal_action"] is False
    env = game()
    env.step(action)
    assert env.agent_selection == "player_1"


@pytest.mark.parametrize("make", [partial(begun, opponent=None), begun, partial(begun, opponent=last_legal), game])
def test_illegal_actions_may_raise(make):
    """The message names the action, its square and the legal ones; the game goes on where it was."""
    env = make(illegal="raise")
    before = str(env.get_state())
    for action, name in ((5, "b2"), (0, "a1"), (16, "pass")):
        message = rf"action {action} \({name}\) is illegal here"
        with pytest.raises(InvalidAction, match=message):
            env.step(action)
        assert str(env.get_state()) == before
    env.step(1)
    assert env.position().empties < 12


@opponents
@pytest.mark.parametrize("parallel", [False, True])
def test_illegal_actions_may_raise_in_a_batch(opponent, parallel):
    envs = batch(opponent=opponent, illegal="raise", parallel=parallel)
    before = envs.get_state()
    for actions, first in (([1, 5, 0], 1), ([16, 1, 1], 0), ([1, 1, 2], 2)):
        with pytest.raises(InvalidAction, match=f"action {actions[first]} of game {first} is illegal"):
            envs.step(actions)
        assert (envs.get_state() == before).all()
    envs.step([1, 1, 1])


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_a_batch_that_raises_plays_on_through_the_ends_of_games(mode):
    """Under NEXT_STEP the action of a finished game is ignored, and need not be legal."""
    envs = batch(mode, opponent="random", illegal="raise")
    for _ in range(60):
        envs.step(envs.sample_legal())


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([1, 1], r"shape \(2,\)"),
        (1, r"shape \(\)"),
        ([[1, 1, 1]], r"shape \(1, 3\)"),
        ([1.0, 1.0, 1.0], "float64 .*expected 3 integers"),
        ([True, True, True], "bool .*expected 3 integers"),
        (None, "expected 3 integers"),
        ("abc", "expected 3 integers"),
        ([[1], [1, 2], 3], "expected 3 integers"),
        ([1, 17, 1], "action 17 of game 1"),
        ([1, 1, -1], "action -1 of game 2"),
    ],
)
def test_actions_of_a_batch_have_a_shape_and_a_range(actions, message):
    envs = batch(opponent="random")
    before = envs.get_state()
    with pytest.raises(InvalidAction, match=message):
        envs.step(actions)
    assert (envs.get_state() == before).all()
    envs.step(np.array([1, 1, 1], np.int32))


# --- the order of calls


def test_what_needs_a_reset_first():
    for env in (ReversiEnv(), ReversiEnv(opponent=None), ReversiVectorEnv(2), aec.env(), gymnasium.make("Reversi-v0")):
        with pytest.raises(ResetNeeded, match="reset"):
            env.step(0)
    text = {"render_mode": "ansi"}
    env = aec.env(**text)
    looks = [lambda: env.observe("player_0"), env.last, env.state, env.get_state]
    for look in (*looks, env.render, ReversiEnv(**text).render, ReversiVectorEnv(2, **text).render):
        with pytest.raises(ResetNeeded, match="reset"):
            look()
    with pytest.raises(ResetNeeded, match="reset all games before resetting some"):
        ReversiVectorEnv(2).reset(options={"reset_mask": np.array([True, False])})


@opponents
@pytest.mark.parametrize("lost", [False, True], ids=["played out", "lost by an illegal action"])
def test_stepping_a_finished_episode(opponent, lost):
    env = begun(opponent=opponent)
    while not env.step(5 if lost else env.sample_legal())[2]:
        pass
    before = env.get_state()
    for _ in range(2):
        with pytest.raises(ResetNeeded, match=r"call reset\(\) before step\(\)"):
            env.step(16)
    assert env.get_state() == before
    env.reset()
    env.step(env.sample_legal())


def test_stepping_a_finished_aec_game():
    """A dead agent takes None and nothing else; when both have gone, a reset is due."""
    env = game()
    while not env.terminations[env.agent_selection]:
        env.step(env.sample_legal())
    with pytest.raises(ValueError, match="the only valid action is None"):
        env.step(16)
    env.step(None)
    env.step(None)
    with pytest.raises(ResetNeeded, match=r"call reset\(\) before step\(\)"):
        env.step(None)
    env.reset()
    with pytest.raises(InvalidAction):
        env.step(None)


def test_stepping_finished_games_without_autoreset():
    envs = batch("DISABLED", opponent=None)
    terminated = np.zeros(3, bool)
    while not terminated.any():
        _, _, terminated, _, _ = envs.step(envs.sample_legal())
    before = envs.get_state()
    with pytest.raises(ResetNeeded, match=rf"episodes of games \[{np.flatnonzero(terminated)[0]}.*reset_mask"):
        envs.step(envs.sample_legal())
    before["random"] = envs.get_state()["random"]
    assert (envs.get_state() == before).all()
    envs.reset(options={"reset_mask": terminated})
    envs.step(envs.sample_legal())


# --- resets


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": "diagonal"}, "board 'diagonal'"),
        (
            {"start": Position.initial(Rules(4, "reversed"))},
            "reversed game",
        ),
        ({"start": 3}, "start=3"),
        ({"start": np.zeros((4, 4))}, "(?s)start=array.*"),
        ({"start": Position.initial(Rules(6))}, "start is a 6x6 position"),
        ({"start": "X" * 16}, "start is a finished game"),
        ({"empties": 0}, "empties=0"),
        ({"empties": 13}, "empties=13"),
        ({"start": Position.initial(Rules(4)).play("b1"), "empties": 12}, "empties=12: the start has 11"),
        ({"opening_plies": -1}, "opening_plies=-1"),
        ({"opening_plies": 13}, "opening_plies=13"),
        ({"colour": "red"}, "colour='red'"),
    ],
)
def test_bad_starts_are_named_when_made_and_at_reset(options, message):
    """An error at reset leaves the running episode as it was, generators included."""
    with pytest.raises(ReversiError, match=message):
        ReversiEnv(size=4, **options)
    env, envs = begun(), batch()
    before = env.get_state(), envs.get_state(), env.np_random.bit_generator.state
    for one in (env, envs):
        with pytest.raises(ReversiError, match=message):
            one.reset(seed=5, options=options)
    assert env.get_state() == before[0]
    assert (envs.get_state() == before[1]).all()
    assert env.np_random.bit_generator.state == before[2]
    env.step(env.sample_legal())
    if "colour" not in options:
        with pytest.raises(ReversiError, match=message):
            game().reset(options=options)


@pytest.mark.parametrize("options", [[("empties", 3)], "empties", 3])
def test_options_are_a_dict(options):
    for env in (begun(), batch(), game()):
        with pytest.raises(SettingsError, match="options=.*expected a dict"):
            env.reset(options=options)


@pytest.mark.parametrize("seed", [-1, 1.5, "seed"])
def test_seeds_are_integers(seed):
    env, envs, turns = begun(), batch(), game()
    before = env.get_state(), envs.get_state(), turns.get_state()["_state"]
    for one in (env, envs, turns):
        with pytest.raises((gymnasium.error.Error, SettingsError)):
            one.reset(seed=seed)
    with pytest.raises(SettingsError, match="seed .*"):
        envs.reset(seed=[1, seed, 2])
    with pytest.raises(SettingsError, match="2 seeds"):
        envs.reset(seed=[1, 2])
    assert env.get_state() == before[0]
    assert (envs.get_state() == before[1]).all()
    assert turns.get_state()["_state"] == before[2]


@pytest.mark.parametrize(
    "mask", [[1, 0, 1], np.array([1, 0, 1]), np.array([True, False]), np.zeros(3, bool), True], ids=repr
)
def test_a_reset_mask_has_a_boolean_for_each_game(mask):
    with pytest.raises(SettingsError, match="reset_mask .*"):
        batch("DISABLED").reset(options={"reset_mask": mask})


# --- what an environment is made with


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"size": 5}, RulesError, "size 5 is not supported"),
        ({"size": "8"}, RulesError, "size '8' is not supported"),
        ({"variant": "anti"}, RulesError, "variant 'anti' is unknown"),
        ({"reward": "score"}, SettingsError, "reward='score'"),
        ({"discount": 1.5}, SettingsError, "discount=1.5"),
        ({"render_mode": "svg"}, SettingsError, "render_mode='svg'"),
        ({"opponent": "nobody"}, SettingsError, "opponent 'nobody'"),
        ({"opponent": None, "reward": "shaped"}, SettingsError, "in two-player mode does not keep the best policies"),
        (
            {"sise": 6},
            UnknownOptionError,
            r"got an unexpected keyword argument 'sise' \(did you mean 'size'\?\)",
        ),
        (
            {"oponent": "greedy"},
            SettingsError,
            r"got an unexpected keyword argument 'oponent' \(did you mean 'opponent'\?\)",
        ),
        ({"frameskip": 4}, SettingsError, "got an unexpected keyword argument 'frameskip'"),
        ({"start": "X" * 64}, SettingsError, "start is a finished game"),
        ({"start": "XO"}, PositionError, "2 squares"),
    ],
)
def test_bad_options_are_named(options, error, message):
    """All of them are `ValueError`s; an option that does not exist is a `TypeError` too, as of any function."""
    for make in (ReversiEnv, ReversiVectorEnv):
        with pytest.raises(error, match=message) as caught:
            make(**options)
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, TypeError) == ("unexpected keyword argument" in message)


@pytest.mark.parametrize("make", [ReversiEnv, ReversiVectorEnv])
def test_options_are_in_the_signature_and_an_unknown_one_lists_them_all(make):
    known = {name for name in inspect.signature(make).parameters if name != "unknown"}
    assert known >= {field.name for field in dataclasses.fields(Settings)} | {"opponent", "render_mode"}
    with pytest.raises(UnknownOptionError) as caught:
        make(frameskip=4)
    assert known <= set(re.findall(r"\w+", str(caught.value)))


@pytest.mark.parametrize("make", [ReversiEnv, ReversiVectorEnv])
def test_unknown_options_of_reset_give_a_warning_that_lists_the_known_ones(make):
    env = make(size=4)
    with pytest.warns(UserWarning, match="'emptys'.*empties.*colour"):
        env.reset(options={"emptys": 5})
    aec.env(size=4).reset(options={"emptys": 5})  # PettingZoo's own tests pass unknown ones


def test_gymnasium_and_pettingzoo_pass_the_errors_on():
    with pytest.raises(RulesError, match="expected one of 4, 6, 8"):
        gymnasium.make("Reversi-v0", size=10)
    with pytest.raises(SettingsError, match="opponent 'nobody'"):
        gymnasium.make_vec("Reversi-v0", num_envs=2, opponent="nobody")
    with pytest.raises(RulesError, match="expected one of 4, 6, 8"):
        pettingzoo.make("aec", "Reversi-v0", size=10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({name: value}, "belong to ReversiEnv") for name, value in SINGLE_AGENT.items()),
        ({"max_cycles": 10}, "got an unexpected keyword argument 'max_cycles'"),
        ({"render_mode": "svg"}, "render_mode='svg'"),
    ],
)
def test_the_aec_environment_has_no_single_agent_options_and_names_unknown_ones(options, message):
    with pytest.raises(SettingsError, match=message):
        aec.env(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"num_envs": count}, "integer of at least 1") for count in (0, -1, 1.5, "2", True, None)),
        ({"max_episode_steps": 0}, "integer of at least 1"),
        *(({"autoreset_mode": mode}, "NEXT_STEP, SAME_STEP, DISABLED") for mode in ("same", 3, None)),
    ],
)
def test_a_batch_has_a_size_and_a_mode(options, message):
    with pytest.raises(SettingsError, match=f"{next(iter(options))}=.*{message}"):
        ReversiVectorEnv(**{"num_envs": 2} | options)


def test_nobody_elses_side_is_shown():
    with pytest.raises(SettingsError, match="agent 'nobody'"):
        game().observe("nobody")


def test_planes_that_are_none_are_refused():
    with pytest.raises(SettingsError, match="extra_planes=None"):
        ReversiEnv(extra_planes=None)


def test_options_of_all_episodes_that_are_unknown_are_named():
    envs = ReversiVectorEnv(num_envs=2)
    with pytest.raises(SettingsError, match=r"begin_with\(empty=…\)"):
        envs.begin_with(empty=12)
    envs.begin_with(empties=12)
    envs.reset(seed=1)
    assert {position.empties for position in envs.positions()} <= {11, 12}
