"""Boards as text, and what all renderers have in common."""

import re

import numpy as np
import pytest

from reversi_env import WHITE, Position, Rules
from reversi_env.errors import IllegalMoveError
from reversi_env.rendering import render_ansi, render_rgb, render_svg
from tests.oracles.processes import output_of

PASS_4X4 = 16


def plain_squares(text: str, size: int) -> str:
    """The board's characters row by row, read from where the columns' letters stand."""
    return "".join(line[3 : 3 + 2 * size : 2] for line in text.splitlines()[1 : size + 1])


def expected_squares(position: Position, empty: str, legal: str) -> str:
    """What the board should show, derived from the names of the legal moves."""
    squares = list(position.to_text().replace("-", empty))
    for action in position.legal_actions():
        if action != position.rules.pass_action:
            squares[action] = legal
    return "".join(squares)


def test_start_in_full():
    assert render_ansi(Position.initial(Rules(4))) == (
        "   a b c d\n1  . + . .\n2  + O X .\n3  . X O +\n4  . . + .\n\nblack to move (X 2, O 2)"
    )


def test_every_square_shows_its_disc_or_mark(position, last_move):
    text = render_ansi(position, last_move)
    assert plain_squares(text, position.rules.size) == expected_squares(position, ".", "+")


def test_plain_text_is_ascii_without_escapes_or_trailing_blanks(position, last_move):
    text = render_ansi(position, last_move)
    assert text.isascii()
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_brackets_surround_only_the_last_move(position):
    size = position.rules.size
    plain = render_ansi(position).splitlines()
    for action in range(size * size):
        row, column = divmod(action, size)
        lines = render_ansi(position, action).splitlines()
        before, mark, after = lines[row + 1].partition(plain[row + 1][3 + 2 * column].join("[]"))
        assert (len(before), len(mark)) == (2 + 2 * column, 3)
        assert "[" not in before + after
        assert [line for i, line in enumerate(lines) if i != row + 1] == [
            line for i, line in enumerate(plain) if i != row + 1
        ]


def test_numpy_last_move_is_accepted():
    start = Position.initial()
    assert render_ansi(start, np.int64(27)) == render_ansi(start, 27) != render_ansi(start)


def test_status_tells_of_passes(before_pass):
    assert render_ansi(before_pass).splitlines()[-1] == "white must pass (X 1, O 1)"
    after = render_ansi(before_pass.play("pass"), PASS_4X4)
    assert after.splitlines()[-1] == "white passed, black to move (X 1, O 1)"
    assert "[" not in after


def test_status_tells_the_result():
    def status(text: str, rules: Rules) -> str:
        return render_ansi(Position.from_text(text, rules=rules)).splitlines()[-1]

    assert status("X" * 12 + "O" * 4, Rules(4)) == "game over, black wins (X 12, O 4)"
    assert status("X" * 8 + "O" * 8, Rules(4)) == "game over, draw (X 8, O 8)"
    assert status("X" * 12 + "O" * 4, Rules(4, "reversed")) == "game over, white wins (X 12, O 4, fewest win)"


COLOURED_SQUARE = re.compile(r"\x1b\[48;5;(\d+)m(?:\x1b\[38;5;(\d+)m)? ([●• ]) ")
BLACK_INK, WHITE_INK = "16", "231"


def coloured_squares(text: str, size: int) -> tuple[str, list[str]]:
    """The board's characters in the plain alphabet, and every square's background."""
    squares, backgrounds = "", []
    for line in text.splitlines()[1 : size + 1]:
        cells = COLOURED_SQUARE.findall(line)
        assert len(cells) == size
        backgrounds += [background for background, _, _ in cells]
        letters = {("●", BLACK_INK): "X", ("●", WHITE_INK): "O"}
        squares += "".join(letters.get((glyph, ink), "+" if glyph == "•" else ".") for _, ink, glyph in cells)
    return squares, backgrounds


def test_coloured_squares_show_their_disc_or_mark(position, last_move):
    squares, _ = coloured_squares(render_ansi(position, last_move, colour=True), position.rules.size)
    assert squares == expected_squares(position, ".", "+")


def test_coloured_last_move_lies_on_its_own_background(position):
    size = position.rules.size
    _, unmarked = coloured_squares(render_ansi(position, colour=True), size)
    for action in range(size * size):
        _, marked = coloured_squares(render_ansi(position, action, colour=True), size)
        assert marked[action] not in unmarked
        assert marked[:action] + marked[action + 1 :] == unmarked[:action] + unmarked[action + 1 :]


def test_coloured_neighbours_differ_in_background(position):
    size = position.rules.size
    _, backgrounds = coloured_squares(render_ansi(position, colour=True), size)
    assert backgrounds[0] != backgrounds[1] == backgrounds[size] != backgrounds[size + 1]


def test_coloured_lines_leave_the_terminal_as_it_was(position):
    lines = render_ansi(position, colour=True).splitlines()
    assert all(re.findall(r"\x1b\[[\d;]*m", line)[-1] == "\x1b[0m" for line in lines[: position.rules.size + 1])
    assert "\x1b" not in lines[-1]


def test_coloured_letters_stand_over_their_columns(position):
    header, row, *_ = (re.sub(r"\x1b\[[\d;]*m", "", line) for line in render_ansi(position, colour=True).splitlines())
    names = "abcdefgh"[: position.rules.size]
    assert [header.index(name) for name in names] == [3 + 3 * i for i in range(len(names))]
    assert len(row) == 2 + 3 * len(names)


def test_coloured_status_names_the_colours():
    turn = Position.initial().play("d3")
    assert turn.turn == WHITE
    assert render_ansi(turn, colour=True).splitlines()[-1] == "white to move (black 4, white 1)"


@pytest.mark.parametrize("render", [render_ansi, render_svg, render_rgb])
@pytest.mark.parametrize("last_move", [-1, 17, 64, True, 3.0, "a1"])
def test_last_move_off_the_board_is_refused(render, last_move):
    if render is render_rgb:
        pytest.importorskip("PIL")
    with pytest.raises(IllegalMoveError, match="expected a number from 0 to 16"):
        render(Position.initial(Rules(4)), last_move)


@pytest.mark.parametrize("module", ["reversi_env", "reversi_env.rendering"])
def test_import_leaves_optional_packages_alone(module):
    code = f"import sys, {module}; print(sorted({{'PIL', 'pygame'}} & set(sys.modules)))"
    assert output_of(code) == ["[]"]
