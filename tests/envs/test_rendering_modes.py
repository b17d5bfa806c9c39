"""Every environment shows its board: as text, as pixels, in a window; and Gymnasium's `RecordVideo` films it.

(What the pictures look like is tested in `tests/rendering`.)
"""

import gymnasium
import numpy as np
import pytest

from reversi_env import Position, aec
from reversi_env.envs import ReversiEnv, ReversiVectorEnv
from reversi_env.rendering import render_ansi, render_rgb
from tests.envs.helpers import last_legal


def test_the_text_shows_the_position_and_the_last_move():
    env = ReversiEnv(opponent=None, render_mode="ansi")
    env.reset(seed=1)
    assert env.render() == render_ansi(Position.initial(), None)
    env.step(37)
    assert env.render() == render_ansi(Position.initial().play(37), 37)


def test_the_last_move_is_the_opponents_reply():
    env = ReversiEnv(opponent=last_legal, render_mode="ansi")
    env.reset(seed=1)
    env.step(37)
    moved = Position.initial().play(37)
    reply = moved.legal_actions()[-1]
    assert env.render() == render_ansi(moved.play(reply), reply)


def test_pixels():
    env = ReversiEnv(size=6, render_mode="rgb_array")
    env.reset(seed=1)
    frame = env.render()
    assert (frame.dtype, frame.ndim, frame.shape[2]) == (np.uint8, 3, 3)
    assert np.array_equal(frame, render_rgb(env.position(), None))
    env.step(env.sample_legal())
    assert not np.array_equal(env.render(), frame)


def test_the_end_is_shown_too():
    env = ReversiEnv(size=4, render_mode="ansi")
    env.reset(seed=1)
    while not env.step(env.sample_legal())[2]:
        pass
    assert env.render()


@pytest.mark.parametrize("make", [ReversiEnv, aec.env])
def test_the_window_opens_shows_every_move_and_closes(make, hasty_window):
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


def test_the_aec_environment_draws_the_same_pictures():
    single = ReversiEnv(opponent=None, render_mode="rgb_array")
    game = aec.env(render_mode="rgb_array")
    text = aec.env(render_mode="ansi")
    for env in (single, game, text):
        env.reset(seed=1)
        env.step(37)
    assert np.array_equal(single.render(), game.render())
    assert text.render() == render_ansi(Position.initial().play(37), 37)


def test_a_batch_is_drawn_game_by_game():
    for mode, draw in (("ansi", render_ansi), ("rgb_array", render_rgb)):
        envs = ReversiVectorEnv(3, size=4, opponent=None, render_mode=mode)
        envs.reset(seed=1)
        actions = envs.sample_legal()
        envs.step(actions)
        frames = envs.render()
        assert isinstance(frames, tuple)
        for frame, position, action in zip(frames, envs.positions(), actions, strict=True):
            assert np.array_equal(frame, draw(position, int(action)))


def test_a_batch_has_no_window():
    with pytest.raises(ValueError, match=r"render_mode='human': expected one of \['ansi', 'rgb_array'\]"):
        ReversiVectorEnv(2, render_mode="human")


def test_without_a_mode_rendering_warns_and_does_nothing():
    for env in (ReversiEnv(), aec.env(), ReversiVectorEnv(2)):
        env.reset(seed=1)
        with pytest.warns(UserWarning, match="render_mode"):
            assert env.render() is None


def test_record_video_films_an_episode(tmp_path):
    pytest.importorskip("moviepy", reason="Gymnasium's RecordVideo needs moviepy: pip install moviepy")
    env = gymnasium.wrappers.RecordVideo(
        gymnasium.make("Reversi-v0", size=4, render_mode="rgb_array"),
        str(tmp_path / "films"),
        episode_trigger=lambda _: True,
    )
    for _ in range(2):
        _, info = env.reset(seed=1)
        terminated = False
        while not terminated:
            _, _, terminated, _, info = env.step(int(info["action_mask"].argmax()))
    env.close()
    films = sorted(tmp_path.glob("films/*.mp4"))
    assert [film.name for film in films] == ["rl-video-episode-0.mp4", "rl-video-episode-1.mp4"]
    assert all(film.stat().st_size > 1000 for film in films)
