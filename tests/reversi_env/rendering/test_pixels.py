"""Rendering as RGB arrays and in a window."""

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from reversi_env import Position
from reversi_env.rendering import Window

pytest.importorskip("PIL")

from reversi_env.rendering import render_rgb


def square(frame: np.ndarray, action: int, size: int, square_px: int = 64) -> np.ndarray:
    """Return the pixels of one square as a view of *frame*."""
    row, column = divmod(action, size)
    top, left = (round(square_px / 2) + square_px * index for index in (row, column))
    return frame[top : top + square_px, left : left + square_px]


def letter_at_centre(pixels: np.ndarray) -> str:
    """Return X for dark grey, O for light grey, - for green."""
    middle = pixels.shape[0] // 2
    red, green, blue = (int(value) for value in pixels[middle, middle])
    if green > red + 20:
        return "-"
    return "X" if max(red, green, blue) < 100 else "O" if min(red, green, blue) > 200 else "?"


@pytest.mark.parametrize("square_px", [8, 31, 64])
def test_centre_of_square_shows_its_disc(position, last_move, square_px):
    frame, size = render_rgb(position, last_move, square_px=square_px), position.rules.size
    side = size * square_px + 2 * round(square_px / 2)
    assert (frame.shape, frame.dtype) == ((side, side, 3), np.uint8)
    others = [action for action in range(size * size) if action != last_move]
    letters = [letter_at_centre(square(frame, action, size, square_px)) for action in others]
    assert letters == [position.to_text()[action] for action in others]


def test_last_move_mark_changes_only_its_square(position):
    size, plain = position.rules.size, render_rgb(position)
    for action, letter in enumerate(position.to_text()):
        marked = render_rgb(position, action)
        changed = square(marked, action, size)
        assert letter_at_centre(changed) == letter
        assert (changed != square(plain, action, size)).any()
        changed[...] = square(plain, action, size)
        assert np.array_equal(marked, plain)
    expected = plain.copy()
    plain[...] = 0  # the caller may write into a frame
    assert np.array_equal(render_rgb(position, position.rules.pass_action), expected)


def test_only_legal_moves_are_marked_on_empty_squares(position):
    size = position.rules.size
    frame = render_rgb(position)
    bare = render_rgb(Position(position.rules, 0, 0))
    same = [np.array_equal(square(frame, action, size), square(bare, action, size)) for action in range(size * size)]
    empty = [i for i, letter in enumerate(position.to_text()) if letter == "-"]
    assert [i for i, unchanged in enumerate(same) if unchanged] == sorted(set(empty) - set(position.legal_actions()))


@pytest.mark.parametrize(
    ("module", "package", "call"),
    [("PIL", "pillow", lambda: render_rgb(Position.initial())), ("pygame", "pygame", Window)],
)
def test_missing_package_is_named(monkeypatch, module, package, call):
    error = pytest.importorskip("gymnasium.error").DependencyNotInstalled
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(error, match=package):
        call()


# pygame imports pkg_resources, which warns in some versions of setuptools.
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
    window = Window("a game", fps=25)
    yield window
    window.close()


def on_screen(pygame) -> np.ndarray:
    return pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)


def test_window_opens_at_first_frame_and_keeps_frame_rate(pygame, window):
    assert not window.is_open
    assert pygame.display.get_surface() is None
    ticks = []
    window._clock = SimpleNamespace(tick=ticks.append)
    for frame in (FRAME, 255 - FRAME, FRAME[:20, :30]):
        window.show(frame)
        assert window.is_open
        assert np.array_equal(on_screen(pygame), frame)
    assert pygame.display.get_caption()[0] == "a game"
    assert ticks == [25] * 3


@pytest.mark.parametrize("by_user", [False, True])
def test_closed_window_stays_closed_without_error(pygame, window, by_user):
    window.show(FRAME)
    if by_user:
        pygame.event.post(pygame.event.Event(pygame.QUIT))
        window.show(FRAME)
    else:
        window.close()
        window.close()
    assert not window.is_open
    window.show(FRAME)
    assert pygame.display.get_surface() is None
