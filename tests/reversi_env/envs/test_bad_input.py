"""Invalid input raises the errors of Gymnasium, with a remedy in the message, and changes no state."""

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


def expected_name(options):
    """Return a pattern of the name that the error must contain: the first option's."""
    return next(iter(options)).replace("start", "start|board|game|squares")


def fresh(**options):
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


@pytest.mark.parametrize("illegal", ["lose", "raise", "random"])
@not_actions
def test_invalid_action_is_rejected_under_every_illegal_policy(action, illegal):
    for env in (fresh(illegal=illegal), game(illegal=illegal)):
        before = str(env.get_state())
        with pytest.raises(InvalidAction, match="action"):
            env.step(action)
        assert str(env.get_state()) == before
        env.step(env.sample_legal())


@pytest.mark.parametrize("action", [*INTEGERS, torch.tensor(1), torch.tensor([1])], ids=repr)
def test_integers_of_every_type_are_accepted_as_actions(action):
    """stable-baselines3's `predict` returns a 0-d array, `sample` a numpy integer, torch's `argmax` a tensor."""
    for env in (fresh(opponent=None), fresh()):
        assert env.step(action)[-1]["illegal_action"] is False
    env = game()
    env.step(action)
    assert env.agent_selection == "player_1"


@pytest.mark.parametrize("make", [partial(fresh, opponent=None), fresh, partial(fresh, opponent=last_legal), game])
def test_illegal_action_raises_with_option_raise(make):
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
def test_illegal_action_in_batch_raises_with_option_raise(opponent, parallel, mode):
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
def test_batch_actions_of_wrong_shape_or_range_are_rejected(actions, message):
    envs = batch(opponent="random")
    before = envs.get_state()
    with pytest.raises(InvalidAction, match=message):
        envs.step(actions)
    assert (envs.get_state() == before).all()
    envs.step(np.array([1, 1, 1], np.int32))


def test_calls_before_first_reset_raise():
    text = {"render_mode": "ansi"}
    env, single, many = aec.env(**text), ReversiEnv(**text), ReversiVectorEnv(2, **text)
    made = (env, single, many, ReversiEnv(opponent=None), gymnasium.make("Reversi-v0"))
    queries = [lambda: env.observe("player_0"), env.last, env.state, env.get_state, *(one.render for one in made[:3])]
    some = {"reset_mask": np.array([True, False])}
    for call in (*queries, *(partial(one.step, 0) for one in made), partial(many.reset, options=some)):
        with pytest.raises(ResetNeeded, match="reset"):
            call()


@opponents
@pytest.mark.parametrize("lost", [False, True], ids=["played out", "lost by an illegal action"])
def test_step_after_end_of_episode_raises(opponent, lost):
    env = fresh(opponent=opponent)
    while not env.step(5 if lost else env.sample_legal())[2]:
        pass
    before = env.get_state()
    for _ in range(2):
        with pytest.raises(ResetNeeded, match="reset"):
            env.step(16)
    assert env.get_state() == before
    env.reset()
    env.step(env.sample_legal())


def test_step_after_end_of_two_player_game_raises():
    """A terminated PettingZoo agent accepts only None. After both agents' last steps, a reset is required."""
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
    envs, terminated = batch("DISABLED", opponent=None), np.zeros(3, bool)
    while not terminated.any():
        _, _, terminated, _, _ = envs.step(envs.sample_legal())
    before, actions = envs.get_state(), [16, 16, 16]
    with pytest.raises(ResetNeeded, match=f"{np.flatnonzero(terminated)[0]}.*reset_mask"):
        envs.step(actions)
    assert (envs.get_state() == before).all()
    envs.reset(options={"reset_mask": terminated})
    envs.step(envs.sample_legal())


START4 = Position.initial(Rules(4))
OTHER_GAMES = [Position.initial(Rules(4, "reversed")), Position.initial(Rules(6))]
BAD_STARTS = [
    *({"start": start} for start in ("diagonal", 3, np.zeros((4, 4)), "X" * 16, *OTHER_GAMES)),
    *({"empties": count} for count in (0, 13)),
    {"empties": 12, "start": START4.play("b1")},
    *({"opening_plies": plies} for plies in (-1, 13)),
    {"colour": "red"},
]
MASKS = [[1, 0, 1], np.array([1, 0, 1]), np.array([True, False]), np.zeros(3, bool), True]
ALL = (fresh, partial(batch, "DISABLED"), game)
BAD_RESETS = [
    *((ALL[: 2 + ("colour" not in start)], "options", start, expected_name(start)) for start in BAD_STARTS),
    *((ALL, "options", options, "options") for options in ([("empties", 3)], "empties", 3)),
    *((ALL, "seed", seed, "(?i)seed") for seed in (-1, 1.5, "seed")),
    *((ALL[1:2], "seed", seeds, "seed") for seeds in ([1, -1, 2], [1, 1.5, 2], [1, "seed", 2], [1, 2])),
    *((ALL[1:2], "options", {"reset_mask": mask}, "reset_mask") for mask in MASKS),
]


def state_of(env):
    generator = getattr(env, "np_random", None)  # Gymnasium's environments have one
    return str(env.get_state()), generator and generator.bit_generator.state


@pytest.mark.parametrize(("makers", "name", "value", "message"), BAD_RESETS)
def test_rejected_reset_keeps_the_running_episode(makers, name, value, message):
    for make in makers:
        env = make()
        before = state_of(env)
        with pytest.raises((ReversiError, gymnasium.error.Error), match=message):
            env.reset(**{"seed": 5} | {name: value})
        assert state_of(env) == before
        env.step(env.sample_legal())


BOTH = (ReversiEnv, ReversiVectorEnv)
NO_AEC_OPTIONS = [*SINGLE_AGENT.items(), ("max_cycles", 10), ("render_mode", "svg")]
BAD_OPTIONS = [
    *((BOTH, RulesError, {"size": size}) for size in (5, "8")),
    (BOTH, RulesError, {"variant": "anti"}),
    *((BOTH, SettingsError, {"reward": reward, "opponent": None}) for reward in ("score", "shaped")),
    (BOTH, SettingsError, {"discount": 1.5}),
    (BOTH, SettingsError, {"render_mode": "svg"}),
    *((BOTH, SettingsError, {"extra_planes": planes}) for planes in (None, "legal", ["legal", "legal"])),
    (BOTH, SettingsError, {"dtype": "float16"}),
    (BOTH, SettingsError, {"channels_last": 1}),
    (BOTH, SettingsError, {"observation": "flat", "channels_last": True}),
    (BOTH, SettingsError, {"start": "X" * 64}),
    (BOTH, PositionError, {"start": "XO"}),
    *((BOTH, ReversiError, {**start, "size": 4}) for start in BAD_STARTS),
    *((BOTH[1:], SettingsError, {"num_envs": count}) for count in (0, -1, 1.5, "2", True, None)),
    (BOTH[1:], SettingsError, {"max_episode_steps": 0}),
    *((BOTH[1:], SettingsError, {"autoreset_mode": mode}) for mode in ("same", 3, None)),
    *(((aec.env,), SettingsError, {name: value}) for name, value in NO_AEC_OPTIONS),
]


@pytest.mark.parametrize(("makers", "error", "options"), BAD_OPTIONS)
def test_invalid_option_is_named_in_error(makers, error, options):
    for make in makers:
        with pytest.raises(error, match=expected_name(options)) as caught:
            make(**options)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("unknown", "suggested"), [("sise", "size"), ("oponent", "opponent"), ("frameskip", "size")])
@pytest.mark.parametrize("make", [ReversiEnv, ReversiVectorEnv])
def test_unknown_option_error_suggests_known_options(make, unknown, suggested):
    """The error is also a `TypeError`, as for any function, and the signature lists the options."""
    known = {name for name in inspect.signature(make).parameters if name != "unknown"}
    assert known >= {field.name for field in dataclasses.fields(Settings)} | {"opponent", "render_mode"}
    with pytest.raises(UnknownOptionError, match=f"{unknown}.*{suggested}") as caught:
        make(**{unknown: 4})
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, SettingsError)
    assert "did you mean" in str(caught.value) or known <= set(re.findall(r"\w+", str(caught.value)))


@pytest.mark.parametrize("make", [ReversiEnv, ReversiVectorEnv])
def test_unknown_reset_option_warns_and_lists_known_options(make):
    env = make(size=4)
    with pytest.warns(UserWarning, match="'emptys'.*empties.*colour"):
        env.reset(options={"emptys": 5})
    aec.env(size=4).reset(options={"emptys": 5})  # PettingZoo's own tests pass unknown ones


def test_unknown_agent_and_unknown_episode_option_are_named():
    with pytest.raises(SettingsError, match="nobody"):
        game().observe("nobody")
    envs = ReversiVectorEnv(num_envs=2)
    with pytest.raises(SettingsError, match="empty"):
        envs.begin_with(empty=12)
    envs.begin_with(empties=12)
    envs.reset(seed=1)
    assert {position.empties for position in envs.positions()} <= {11, 12}
