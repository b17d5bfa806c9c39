"""Bad input gets the error that Gymnasium's users expect, in words that say what to do, and changes nothing."""

import dataclasses
import inspect
import re
from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.error import InvalidAction, ResetNeeded

from reversi_env import Position, ReversiError, Rules
from reversi_env.envs import ReversiEnv, ReversiVectorEnv, SettingsError
from reversi_env.envs import pettingzoo as aec
from reversi_env.envs.settings import Settings, UnknownOptionError
from reversi_env.errors import PositionError, RulesError
from tests.oracles.games import last_legal

TENSORS = [torch.tensor([1.0]), torch.tensor(1.0), torch.tensor(True)]
ARRAYS = [np.array([1, 2]), np.array(1.0), np.array([True])]
NOT_ACTIONS = [-1, 17, 2**70, 1.0, np.float64(3), "a1", None, True, np.bool_(True), [1], (1,), *ARRAYS, *TENSORS]
INTEGERS = [1, np.int64(1), np.uint32(1), np.array(1), np.array(1, np.uint8), np.array([1])]
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
        with pytest.raises(InvalidAction, match="action"):
            env.step(action)
        assert str(env.get_state()) == before
        env.step(env.sample_legal())


@pytest.mark.parametrize("action", [*INTEGERS, torch.tensor(1), torch.tensor([1])], ids=repr)
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
    for action in (5, 0, 16):
        with pytest.raises(InvalidAction, match=f"action {action}"):
            env.step(action)
        assert str(env.get_state()) == before
    env.step(1)
    assert env.position().empties < 12


@opponents
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_illegal_actions_may_raise_in_a_batch(opponent, parallel, mode):
    """It plays on; under NEXT_STEP the action of a finished game is ignored, and need not be legal."""
    envs = batch(mode, opponent=opponent, illegal="raise", parallel=parallel)
    before = envs.get_state()
    for actions, first in (([1, 5, 0], 1), ([16, 1, 1], 0), ([1, 1, 2], 2)):
        with pytest.raises(InvalidAction, match=f"action {actions[first]} of game {first}"):
            envs.step(actions)
        assert (envs.get_state() == before).all()
    for _ in range(60):
        envs.step(envs.sample_legal())


WRONG_SHAPES = [[1, 1], 1, [[1, 1, 1]], [1.0, 1.0, 1.0], [True, True, True], None, "abc", [[1], [1, 2], 3]]


@pytest.mark.parametrize(
    ("actions", "message"),
    [*((actions, "3") for actions in WRONG_SHAPES), ([1, 17, 1], "17 of game 1"), ([1, 1, -1], "-1 of game 2")],
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
    text = {"render_mode": "ansi"}
    env, single, many = aec.env(**text), ReversiEnv(**text), ReversiVectorEnv(2, **text)
    made = (env, single, many, ReversiEnv(opponent=None), gymnasium.make("Reversi-v0"))
    looks = [
        lambda: env.observe("player_0"),
        env.last,
        env.state,
        env.get_state,
        env.render,
        single.render,
        many.render,
    ]
    some = {"reset_mask": np.array([True, False])}
    for call in (*looks, *(partial(one.step, 0) for one in made), partial(many.reset, options=some)):
        with pytest.raises(ResetNeeded, match="reset"):
            call()


@opponents
@pytest.mark.parametrize("lost", [False, True], ids=["played out", "lost by an illegal action"])
def test_stepping_a_finished_episode(opponent, lost):
    env = begun(opponent=opponent)
    while not env.step(5 if lost else env.sample_legal())[2]:
        pass
    before = env.get_state()
    for _ in range(2):
        with pytest.raises(ResetNeeded, match="reset"):
            env.step(16)
    assert env.get_state() == before
    env.reset()
    env.step(env.sample_legal())


def test_stepping_a_finished_aec_game():
    """A dead agent takes None and nothing else; when both have gone, a reset is due."""
    env = game()
    while not env.terminations[env.agent_selection]:
        env.step(env.sample_legal())
    with pytest.raises(ValueError, match="None"):
        env.step(16)
    env.step(None)
    env.step(None)
    with pytest.raises(ResetNeeded, match="reset"):
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
    with pytest.raises(ResetNeeded, match=f"{np.flatnonzero(terminated)[0]}.*reset_mask"):
        envs.step(envs.sample_legal())
    before["random"] = envs.get_state()["random"]
    assert (envs.get_state() == before).all()
    envs.reset(options={"reset_mask": terminated})
    envs.step(envs.sample_legal())


# --- resets


START4 = Position.initial(Rules(4))
OTHER_GAMES = [Position.initial(Rules(4, "reversed")), Position.initial(Rules(6))]
BAD_STARTS = [
    *({"start": start} for start in ("diagonal", 3, np.zeros((4, 4)), "X" * 16, *OTHER_GAMES)),
    *({"empties": count} for count in (0, 13)),
    {"empties": 12, "start": START4.play("b1")},
    *({"opening_plies": plies} for plies in (-1, 13)),
    {"colour": "red"},
]


@pytest.mark.parametrize("options", BAD_STARTS, ids=str)
def test_bad_starts_are_named_when_made_and_at_reset(options):
    """An error at reset leaves the running episode as it was, generators included."""
    name = next(iter(options)).replace("start", "start|board|game")
    env, envs, turns = begun(), batch(), game()
    before = env.get_state(), envs.get_state(), env.np_random.bit_generator.state
    resets = [partial(one.reset, seed=5, options=options) for one in (env, envs)]
    if "colour" not in options:
        resets.append(partial(turns.reset, options=options))
    for call in (partial(ReversiEnv, size=4, **options), *resets):
        with pytest.raises(ReversiError, match=name):
            call()
    assert env.get_state() == before[0]
    assert (envs.get_state() == before[1]).all()
    assert env.np_random.bit_generator.state == before[2]
    env.step(env.sample_legal())


@pytest.mark.parametrize("options", [[("empties", 3)], "empties", 3])
def test_options_are_a_dict(options):
    for env in (begun(), batch(), game()):
        with pytest.raises(SettingsError, match="options"):
            env.reset(options=options)


@pytest.mark.parametrize("seed", [-1, 1.5, "seed"])
def test_seeds_are_integers(seed):
    env, envs, turns = begun(), batch(), game()
    before = env.get_state(), envs.get_state(), turns.get_state()["_state"]
    for one in (env, envs, turns):
        with pytest.raises((gymnasium.error.Error, SettingsError)):
            one.reset(seed=seed)
    for seeds in ([1, seed, 2], [1, 2]):
        with pytest.raises(SettingsError, match="seed"):
            envs.reset(seed=seeds)
    assert env.get_state() == before[0]
    assert (envs.get_state() == before[1]).all()
    assert turns.get_state()["_state"] == before[2]


@pytest.mark.parametrize(
    "mask", [[1, 0, 1], np.array([1, 0, 1]), np.array([True, False]), np.zeros(3, bool), True], ids=repr
)
def test_a_reset_mask_has_a_boolean_for_each_game(mask):
    with pytest.raises(SettingsError, match="reset_mask"):
        batch("DISABLED").reset(options={"reset_mask": mask})


# --- what an environment is made with


BAD_OPTIONS = [
    *((RulesError, {"size": size}) for size in (5, "8")),
    (RulesError, {"variant": "anti"}),
    *((SettingsError, {"reward": reward, "opponent": None}) for reward in ("score", "shaped")),
    (SettingsError, {"discount": 1.5}),
    (SettingsError, {"render_mode": "svg"}),
    *((SettingsError, {"extra_planes": planes}) for planes in (None, "legal", ["legal", "legal"])),
    (SettingsError, {"dtype": "float16"}),
    (SettingsError, {"channels_last": 1}),
    (SettingsError, {"observation": "flat", "channels_last": True}),
    (SettingsError, {"start": "X" * 64}),
    (PositionError, {"start": "XO"}),
]


@pytest.mark.parametrize(("error", "options"), BAD_OPTIONS, ids=str)
def test_bad_options_are_named(error, options):
    """All errors are `ValueError`s."""
    name = next(iter(options)).replace("start", "start|squares")
    for make in (ReversiEnv, ReversiVectorEnv):
        with pytest.raises(error, match=name) as caught:
            make(**options)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("unknown", "suggested"), [("sise", "size"), ("oponent", "opponent"), ("frameskip", "size")])
@pytest.mark.parametrize("make", [ReversiEnv, ReversiVectorEnv])
def test_unknown_options_are_named_with_all_that_exist(make, unknown, suggested):
    """The error is a `TypeError` too, as of any function; the options are in the signature."""
    known = {name for name in inspect.signature(make).parameters if name != "unknown"}
    assert known >= {field.name for field in dataclasses.fields(Settings)} | {"opponent", "render_mode"}
    with pytest.raises(UnknownOptionError, match=f"{unknown}.*{suggested}") as caught:
        make(**{unknown: 4})
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, SettingsError)
    assert "did you mean" in str(caught.value) or known <= set(re.findall(r"\w+", str(caught.value)))


@pytest.mark.parametrize("make", [ReversiEnv, ReversiVectorEnv])
def test_unknown_options_of_reset_give_a_warning_that_lists_the_known_ones(make):
    env = make(size=4)
    with pytest.warns(UserWarning, match="'emptys'.*empties.*colour"):
        env.reset(options={"emptys": 5})
    aec.env(size=4).reset(options={"emptys": 5})  # PettingZoo's own tests pass unknown ones


@pytest.mark.parametrize("options", [*SINGLE_AGENT.items(), ("max_cycles", 10), ("render_mode", "svg")], ids=str)
def test_the_aec_environment_has_no_single_agent_options_and_names_unknown_ones(options):
    name, value = options
    with pytest.raises(SettingsError, match=name):
        aec.env(**{name: value})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("num_envs", [0, -1, 1.5, "2", True, None]),
        ("max_episode_steps", [0]),
        ("autoreset_mode", ["same", 3, None]),
    ],
)
def test_a_batch_has_a_size_and_a_mode(name, values):
    for value in values:
        with pytest.raises(SettingsError, match=name):
            ReversiVectorEnv(**{"num_envs": 2} | {name: value})


def test_unknown_agents_and_options_of_all_episodes_are_named():
    with pytest.raises(SettingsError, match="nobody"):
        game().observe("nobody")
    envs = ReversiVectorEnv(num_envs=2)
    with pytest.raises(SettingsError, match="empty"):
        envs.begin_with(empty=12)
    envs.begin_with(empties=12)
    envs.reset(seed=1)
    assert {position.empties for position in envs.positions()} <= {11, 12}
