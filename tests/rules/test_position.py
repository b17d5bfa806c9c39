"""`Rules` and `Position`: what they say, and what they refuse."""

import contextlib
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reversi_env import BLACK, WHITE, Colour, Position, ReversiError, Rules
from reversi_env.errors import IllegalMoveError, NotationError, PositionError, RulesError


def test_the_start_is_the_books():
    assert Position.initial().to_text() == "-" * 27 + "OX" + "-" * 6 + "XO" + "-" * 27
    assert Position.initial(Rules(start="parallel")).to_text() == "-" * 27 + "OO" + "-" * 6 + "XX" + "-" * 27
    assert Position.initial(Rules(4)).to_text() == "-----OX--XO-----"
    assert Position.initial(Rules(6)).turn == BLACK


def test_a_short_game_to_its_end():
    """The shortest wipe-out: after nine moves no white disc is left."""
    position = Position.initial().play_all(["e6", "f4", "e3", "f6", "g5", "d6", "e7", "f5", "c5"])
    assert position.is_over()
    assert position.discs(WHITE) == 0
    assert position.discs(BLACK) == 13
    assert position.disc_difference(BLACK) == 13
    assert position.score(BLACK) == 64
    assert position.score() == -64
    assert position.winner() == BLACK
    assert position.legal_moves() == []
    assert "black wins" in str(position)


def test_the_reversed_game_turns_the_result():
    moves = ["e6", "f4", "e3", "f6", "g5", "d6", "e7", "f5", "c5"]
    position = Position.initial(Rules(variant="reversed")).play_all(moves)
    assert position.winner() == WHITE
    assert position.score(WHITE) == 64


def test_a_draw_has_no_winner():
    position = Position.from_text("X" * 32 + "O" * 32)
    assert position.is_over()
    assert position.winner() is None
    assert position.score() == 0
    assert "draw" in str(position)


def test_a_running_game_has_no_score_and_no_winner():
    assert Position.initial().winner() is None
    with pytest.raises(PositionError, match="not over"):
        Position.initial().score()


def test_moves_by_name_number_and_pass():
    start = Position.initial()
    assert start.play("f5") == start.play("F5") == start.play(37) == start.play(np.int64(37))
    must_pass = Position.from_text("OX--" + "-" * 12)
    passed = must_pass.play("pass")
    assert must_pass.must_pass()
    assert passed == must_pass.play(16) == must_pass.play("--") == must_pass.play("PA")
    assert passed.turn == WHITE
    assert (passed.own, passed.opp) == (must_pass.opp, must_pass.own)


def test_positions_compare_hash_and_pickle_by_value():
    a, b = Position.initial().play("f5"), Position.initial().play(37)
    assert a == b
    assert len({a, b}) == 1
    assert pickle.loads(pickle.dumps(a)) == a
    assert a != Position.initial().play("d3")
    assert Position.initial(Rules(variant="reversed")) != Position.initial()
    assert a.hash64() == b.hash64() != Position.initial().hash64()
    with pytest.raises(AttributeError):
        a.own = 0


def test_the_hash_is_the_same_on_every_machine():
    """Tables that are written on one machine are read on another."""
    assert Position.initial().hash64() == 0x5B98564F09357DA1


def test_printing_marks_the_legal_moves():
    assert str(Position.initial(Rules(4))).splitlines() == [
        "  a b c d",
        "1 - · - -",
        "2 · O X -",
        "3 - X O ·",
        "4 - - · -",
        "black to move (X 2, O 2)",
    ]


def test_the_matrix_follows_the_fields_convention():
    matrix = Position.initial(Rules(4)).to_matrix()
    assert matrix.dtype == np.int8
    assert matrix.tolist() == [[0, 0, 0, 0], [0, 1, -1, 0], [0, -1, 1, 0], [0, 0, 0, 0]]


def test_actions_and_squares_of_small_boards():
    rules = Rules(4)
    assert [rules.name_of(action) for action in (0, 3, 15, 16)] == ["a1", "d1", "d4", "pass"]
    assert rules.square_of(0) == 18
    assert [rules.action_of(sq) for sq in rules.squares()] == list(range(16))
    assert rules.playable.bit_count() == 16
    assert Rules(8).playable == 2**64 - 1


@pytest.mark.parametrize("size", [0, 2, 5, 7, 10, -8, "8", 8.5, None, True])
def test_unsupported_sizes_are_named(size):
    with pytest.raises(RulesError, match="expected one of 4, 6, 8"):
        Rules(size)


def test_unknown_variants_and_starts_are_named():
    with pytest.raises(RulesError, match="'anti'.*'normal' or 'reversed'"):
        Rules(variant="anti")
    with pytest.raises(RulesError, match="'diagonal'.*'standard' or 'parallel'"):
        Rules(start="diagonal")


@pytest.mark.parametrize(
    ("move", "message"),
    [
        ("a1", "a1 by black is illegal: the legal moves are d3 c4 f5 e6"),
        ("d4", "d4 by black is illegal"),
        ("i9", "'i9' is not a square"),
        ("", "'' is not a square"),
        ("f5d6", "is not a square"),
        (64, "pass by black is not allowed: the legal moves are"),
        ("pass", "pass by black is not allowed"),
        (65, "65 is not a move: expected"),
        (-1, "-1 is not a move"),
        (3.0, "3.0 is not a move"),
        (None, "None is not a move"),
        (True, "True is not a move"),
    ],
)
def test_bad_moves_are_named(move, message):
    with pytest.raises(ReversiError, match=message):
        Position.initial().play(move)


def test_no_move_is_legal_after_the_end():
    over = Position.from_text("X" * 64)
    with pytest.raises(IllegalMoveError, match="the game is over"):
        over.play("pass")
    with pytest.raises(IllegalMoveError, match="the game is over"):
        over.play("a1")


@pytest.mark.parametrize(
    ("own", "opp", "message"),
    [
        (1, 1, "discs of both colours on a1"),
        (1 << 64, 0, "off the board"),
        (-1, 0, "off the board"),
        (1.5, 0, "expected an integer"),
        (True, 0, "expected an integer"),
        ("1", 0, "expected an integer"),
    ],
)
def test_impossible_boards_are_named(own, opp, message):
    with pytest.raises(PositionError, match=message):
        Position(Rules(), own, opp)


def test_discs_on_the_rim_of_a_small_board_are_refused():
    with pytest.raises(PositionError, match="leave the 6x6 board"):
        Position(Rules(6), 1, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [("X" * 63, "63 squares"), ("", "0 squares"), ("X" * 63 + "?", r"'\?' at square h8"), (None, "not text")],
)
def test_bad_board_texts_are_named(text, message):
    with pytest.raises(PositionError, match=message):
        Position.from_text(text)


def test_a_board_text_must_fit_the_rules():
    with pytest.raises(PositionError, match="expected 36"):
        Position.from_text("-" * 64, rules=Rules(6))


@pytest.mark.parametrize(
    "matrix", [[[0, 2], [0, 0]], np.zeros((8, 6)), np.zeros(64), np.full((8, 8), 3), "board", [[None] * 8] * 8]
)
def test_bad_matrices_are_refused(matrix):
    with pytest.raises(ReversiError):
        Position.from_matrix(matrix)


def test_a_turn_must_be_a_colour():
    with pytest.raises(PositionError, match="not a colour"):
        Position(Rules(), 1, 2, 0)
    assert Colour.BLACK.other == WHITE


def test_names_of_actions_are_checked():
    with pytest.raises(NotationError, match="expected 0 to 16"):
        Rules(4).name_of(17)


anything = st.one_of(
    st.none(), st.integers(), st.floats(), st.text(), st.binary(), st.booleans(), st.lists(st.integers())
)


@given(anything)
def test_whatever_is_played_only_our_errors_escape(move):
    with contextlib.suppress(ReversiError):
        Position.initial(Rules(6)).play(move)


@given(st.one_of(st.text(), st.text("XO-", min_size=16, max_size=16), anything))
def test_whatever_text_is_read_only_our_errors_escape(text):
    with contextlib.suppress(ReversiError):
        Position.from_text(text)


@given(anything, anything)
def test_whatever_boards_are_given_only_our_errors_escape(own, opp):
    with contextlib.suppress(ReversiError):
        Position(Rules(), own, opp)
