"""Rendering as text, and errors of all renderers."""

import re
from itertools import product

import numpy as np
import pytest

from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import IllegalMoveError
from reversi_env.rendering import render_ansi, render_rgb, render_svg


def expected_squares(position: Position) -> str:
    """Return the expected characters of the squares, with legal moves marked."""
    squares = list(position.to_text().replace("-", "."))
    for action in position.legal_actions():
        if action != position.rules.pass_action:
            squares[action] = "+"
    return "".join(squares)


def test_every_square_shows_its_disc_or_mark(position, last_move):
    size, expected = position.rules.size, expected_squares(position)
    plain = render_ansi(position, last_move).splitlines()[1 : size + 1]
    assert "".join(line[3 : 3 + 2 * size : 2] for line in plain) == expected
    assert coloured_squares(render_ansi(position, last_move, colour=True), size)[0] == expected


@pytest.mark.parametrize(
    ("text", "variant", "expected"),
    [
        *(("XO" + "-" * 14, "normal", "black to move"), ("OX" + "-" * 14, "normal", "black must pass")),
        *(("X" * 12 + "O" * 4, "normal", "black wins"), ("X" * 12 + "O" * 4, "reversed", "white wins")),
        ("X" * 8 + "O" * 8, "normal", "draw"),
    ],
)
def test_status_line_describes_the_game(text, variant, expected):
    assert expected in render_ansi(Position.from_text(text, rules=Rules(4, variant))).splitlines()[-1]


def test_pass_as_last_move_has_no_mark(before_pass):
    text = render_ansi(before_pass.play("pass"), before_pass.rules.pass_action)
    assert "white passed" in text
    assert "[" not in text


def test_brackets_surround_only_the_last_move_square(position):
    size = position.rules.size
    plain = render_ansi(position).splitlines()
    for action in range(size * size):
        row, column = divmod(action, size)
        lines = render_ansi(position, np.int64(action)).splitlines()
        before, mark, after = lines[row + 1].partition(plain[row + 1][3 + 2 * column].join("[]"))
        assert (len(before), len(mark)) == (2 + 2 * column, 3)
        assert "[" not in before + after
        assert lines[: row + 1] + lines[row + 2 :] == plain[: row + 1] + plain[row + 2 :]


COLOURED_SQUARE = re.compile(r"\x1b\[48;5;(\d+)m(?:\x1b\[38;5;(\d+)m)? ([●• ]) ")
BLACK_INK, WHITE_INK = "16", "231"


def coloured_squares(text: str, size: int) -> tuple[str, list[str]]:
    """Return the board in the characters of plain text, and the background of every square."""
    squares, backgrounds = "", []
    for line in text.splitlines()[1 : size + 1]:
        cells = COLOURED_SQUARE.findall(line)
        assert len(cells) == size
        backgrounds += [background for background, _, _ in cells]
        letters = {("●", BLACK_INK): "X", ("●", WHITE_INK): "O"}
        squares += "".join(letters.get((glyph, ink), "+" if glyph == "•" else ".") for _, ink, glyph in cells)
    return squares, backgrounds


BAD_ARGUMENTS = [
    *((render_svg, {"size_px": pixels}, "size_px") for pixels in (0, -1, 2.5, "400", True)),
    *((render_rgb, {"square_px": pixels}, "square_px") for pixels in (0, 7, 64.0, "64", True)),
    *(
        (render, {"last_move": move}, "move")
        for render, move in product((render_ansi, render_svg, render_rgb), (-1, 17, 64, True, 3.0, "a1"))
    ),
]


@pytest.mark.parametrize(("render", "arguments", "message"), BAD_ARGUMENTS)
def test_invalid_size_or_last_move_is_rejected(render, arguments, message):
    if render is render_rgb:
        pytest.importorskip("PIL")
    with pytest.raises(IllegalMoveError if message == "move" else ReversiError, match=message):
        render(Position.initial(Rules(4)), **arguments)
