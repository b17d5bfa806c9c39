"""The window shows frames, keeps their pace and closes, on a machine without a screen."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

from reversi_env.rendering import Window
from tests.oracles.processes import output_of

# pygame still asks for pkg_resources, which older setuptools answer with a warning.
pytestmark = pytest.mark.filterwarnings("ignore:pkg_resources is deprecated")

FRAME = np.arange(40 * 60 * 3, dtype=np.uint32).astype(np.uint8).reshape(40, 60, 3)


@pytest.fixture
def pygame(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    module = pytest.importorskip("pygame")
    yield module
    module.display.quit()


@pytest.fixture
def window(pygame) -> Iterator[Window]:
    window = Window("a game", fps=0)
    yield window
    window.close()


def on_screen(pygame) -> np.ndarray:
    return pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)


def test_opens_with_the_first_frame_and_shows_it(pygame, window):
    assert not window.is_open
    assert pygame.display.get_surface() is None
    window.show(FRAME)
    assert window.is_open
    assert np.array_equal(on_screen(pygame), FRAME)
    assert pygame.display.get_caption()[0] == "a game"


def test_next_frame_replaces_the_last_even_at_another_size(pygame, window):
    window.show(FRAME)
    window.show(255 - FRAME)
    assert np.array_equal(on_screen(pygame), 255 - FRAME)
    window.show(FRAME[:20, :30])
    assert np.array_equal(on_screen(pygame), FRAME[:20, :30])


def test_close_takes_it_off_the_screen_for_good(pygame, window):
    window.show(FRAME)
    window.close()
    assert not window.is_open
    assert pygame.display.get_surface() is None
    window.close()
    window.show(FRAME)
    assert pygame.display.get_surface() is None


def test_closing_an_unopened_window_leaves_others_alone(pygame, window):
    window.show(FRAME)
    Window().close()
    assert np.array_equal(on_screen(pygame), FRAME)


def test_survives_the_end_of_another_window(pygame, window):
    other = Window(fps=0)
    window.show(FRAME)
    other.show(FRAME)
    other.close()
    window.show(FRAME)
    assert np.array_equal(on_screen(pygame), FRAME)


def test_user_can_close_it_and_the_program_goes_on(pygame, window):
    window.show(FRAME)
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    window.show(FRAME)
    assert not window.is_open
    window.show(FRAME)
    assert pygame.display.get_surface() is None


def test_frames_keep_the_pace(pygame):
    window = Window(fps=25)
    window.show(FRAME)
    start = time.perf_counter()
    for _ in range(3):
        window.show(FRAME)
    assert time.perf_counter() - start >= 0.1
    window.close()


def test_missing_pygame_is_named(monkeypatch):
    error = pytest.importorskip("gymnasium.error").DependencyNotInstalled
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(error, match="pip install pygame"):
        Window()


def test_prints_nothing(pygame, monkeypatch):
    monkeypatch.delenv("PYGAME_HIDE_SUPPORT_PROMPT")
    code = "import numpy; from reversi_env.rendering import Window; w = Window(fps=0); "
    code += "w.show(numpy.zeros((9, 9, 3), 'uint8')); print(w.is_open); w.close()"
    assert output_of(code) == ["True"]
