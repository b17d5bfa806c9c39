"""The pixels show each square's disc, and marks change nothing but their own square."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from reversi_env import Position, ReversiError, Rules

pytest.importorskip("PIL")

from reversi_env.rendering import render_rgb


def square(frame: np.ndarray, action: int, size: int, square_px: int = 64) -> np.ndarray:
    """The pixels of one square: a view into *frame*."""
    row, column = divmod(action, size)
    top, left = (round(square_px / 2) + square_px * index for index in (row, column))
    return frame[top : top + square_px, left : left + square_px]


def letter_at_centre(pixels: np.ndarray) -> str:
    """X for dark grey, O for light grey, - for green."""
    middle = pixels.shape[0] // 2
    red, green, blue = (int(value) for value in pixels[middle, middle])
    if green > red + 20:
        return "-"
    return "X" if max(red, green, blue) < 100 else "O" if min(red, green, blue) > 200 else "?"


@pytest.mark.parametrize("square_px", [8, 31, 64])
@pytest.mark.parametrize("size", [4, 6, 8])
def test_shape_and_type(size, square_px):
    frame = render_rgb(Position.initial(Rules(size)), square_px=square_px)
    side = size * square_px + 2 * round(square_px / 2)
    assert (frame.shape, frame.dtype) == ((side, side, 3), np.uint8)


@pytest.mark.parametrize("square_px", [8, 31, 64])
def test_centres_tell_the_discs(position, last_move, square_px):
    frame, size = render_rgb(position, last_move, square_px=square_px), position.rules.size
    others = [action for action in range(size * size) if action != last_move]
    letters = [letter_at_centre(square(frame, action, size, square_px)) for action in others]
    assert letters == [position.to_text()[action] for action in others]


def test_last_move_changes_its_square_alone(position):
    size = position.rules.size
    plain = render_rgb(position)
    for action in range(size * size):
        marked = render_rgb(position, action)
        changed = square(marked, action, size)
        assert (changed != square(plain, action, size)).any()
        changed[...] = square(plain, action, size)
        assert np.array_equal(marked, plain)


def test_ring_leaves_the_centre_of_its_disc_in_sight(position):
    for action, letter in enumerate(position.to_text()):
        assert letter_at_centre(square(render_rgb(position, action), action, position.rules.size)) == letter


def test_pass_leaves_no_mark(position):
    assert np.array_equal(render_rgb(position, position.rules.pass_action), render_rgb(position))


def test_legal_moves_are_marked_and_other_empty_squares_are_bare(position):
    size = position.rules.size
    frame = render_rgb(position)
    bare = render_rgb(Position(position.rules, 0, 0))
    same = [np.array_equal(square(frame, action, size), square(bare, action, size)) for action in range(size * size)]
    empty = [i for i, letter in enumerate(position.to_text()) if letter == "-"]
    assert [i for i, unchanged in enumerate(same) if unchanged] == sorted(set(empty) - set(position.legal_actions()))


def test_a_frame_is_the_callers_own():
    start = Position.initial()
    first = render_rgb(start)
    expected = first.copy()
    first[...] = 0
    assert np.array_equal(render_rgb(start), expected)


@pytest.mark.parametrize("square_px", [0, 7, 64.0, "64", True])
def test_bad_size_is_refused(square_px):
    with pytest.raises(ReversiError, match="square_px"):
        render_rgb(Position.initial(), square_px=square_px)


def test_missing_pillow_is_named(monkeypatch):
    error = pytest.importorskip("gymnasium.error").DependencyNotInstalled
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(error, match="pip install pillow"):
        render_rgb(Position.initial())
