"""Rendering of every environment: as text, as pixels, in a window."""

import numpy as np
import pytest

from reversi_env import Position
from reversi_env.envs import ReversiEnv, ReversiVectorEnv
from reversi_env.envs import pettingzoo as aec
from reversi_env.rendering import render_ansi, render_rgb
from tests.oracles.games import last_legal


@pytest.mark.parametrize(("mode", "draw"), [("ansi", render_ansi), ("rgb_array", render_rgb)])
def test_all_environments_render_position_and_last_move(mode, draw):
    env, game = ReversiEnv(opponent=None, render_mode=mode), aec.env(render_mode=mode)
    against = ReversiEnv(opponent=last_legal, render_mode=mode)
    for one in (env, game, against):
        one.reset(seed=1)
        assert np.array_equal(one.render(), draw(Position.initial(), None))
        one.step(37)
    moved = Position.initial().play(37)
    assert np.array_equal(env.render(), draw(moved, 37))
    assert np.array_equal(game.render(), draw(moved, 37))
    reply = moved.legal_actions()[-1]
    assert np.array_equal(against.render(), draw(moved.play(reply), reply))
    envs = ReversiVectorEnv(3, size=4, opponent=None, render_mode=mode)
    envs.reset(seed=1)
    actions = envs.sample_legal()
    envs.step(actions)
    frames = envs.render()
    assert isinstance(frames, tuple)
    for frame, position, action in zip(frames, envs.positions(), actions, strict=True):
        assert np.array_equal(frame, draw(position, int(action)))
    while not env.step(env.sample_legal())[2]:
        pass
    assert np.array_equal(env.render()[:1], draw(env.position(), 0)[:1])  # the final position


@pytest.mark.parametrize("make", [ReversiEnv, aec.env])
def test_window_opens_stays_open_and_closes(make, unlimited_fps):
    env = make(size=4, render_mode="human")
    env.reset(seed=1)
    window = env._window
    assert window.is_open
    env.step(env.sample_legal())
    assert env.render() is None
    assert env._window is window
    env.close()
    assert not window.is_open
    env.close()


def test_render_without_mode_warns():
    for env in (ReversiEnv(), aec.env(), ReversiVectorEnv(2)):
        env.reset(seed=1)
        with pytest.warns(UserWarning, match="render_mode"):
            assert env.render() is None
