"""`Rules` and `Position`: what they say, and what they refuse."""

import contextlib
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reversi_env import BLACK, WHITE, Colour, Position, ReversiError, Rules
from reversi_env.errors import IllegalMoveError, NotationError, PositionError, RulesError

START = Position.initial()


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
    assert Colour.BLACK.other == WHITE
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


def test_printing_says_where_the_fewest_discs_win():
    """Nothing else of a board tells the two games apart."""
    position = Position.initial(Rules(4, "reversed"))
    assert str(position).splitlines()[-1] == "black to move (X 2, O 2, fewest win)"
    over = Position.from_text("X" * 12 + "O" * 4, rules=position.rules)
    assert str(over).splitlines()[-1] == "game over, white wins (X 12, O 4, fewest win)"


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


MATRICES = [[[0, 2], [0, 0]], np.zeros((8, 6)), np.zeros(64), np.full((8, 8), 3), "board", [[None] * 8] * 8]


@pytest.mark.parametrize(
    ("error", "message", "ask", "arguments"),
    [
        *((RulesError, "expected one of 4, 6, 8", Rules, [n]) for n in (0, 2, 5, 7, 10, -8, "8", 8.5, None, True)),
        (RulesError, "'anti'.*'normal' or 'reversed'", Rules, [8, "anti"]),
        (RulesError, "'diagonal'.*'standard' or 'parallel'", Rules, [8, "normal", "diagonal"]),
        (RulesError, r"rules 6", Position.initial, [6]),
        (NotationError, "expected 0 to 16", Rules(4).name_of, [17]),
        (ReversiError, "a1 by black is illegal: the legal moves are d3 c4 f5 e6", START.play, ["a1"]),
        (ReversiError, "d4 by black is illegal", START.play, ["d4"]),
        (ReversiError, "'i9' is not a square", START.play, ["i9"]),
        (ReversiError, "'' is not a square", START.play, [""]),
        (ReversiError, "is not a square", START.play, ["f5d6"]),
        *((ReversiError, "pass by black is not allowed: the legal moves are", START.play, [p]) for p in (64, "pass")),
        *((ReversiError, f"{move} is not a move: expected", START.play, [move]) for move in (65, -1, 3.0, None, True)),
        *((IllegalMoveError, "the game is over", Position.from_text("X" * 64).play, [m]) for m in ("pass", "a1")),
        (PositionError, "discs of both colours on a1", Position, [Rules(), 1, 1]),
        *((PositionError, "off the board", Position, [Rules(), own, 0]) for own in (1 << 64, -1)),
        *((PositionError, "expected an integer", Position, [Rules(), own, 0]) for own in (1.5, True, "1")),
        (PositionError, "leave the 6x6 board", Position, [Rules(6), 1, 0]),
        (PositionError, "not a colour", Position, [Rules(), 1, 2, 0]),
        (PositionError, "63 squares", Position.from_text, ["X" * 63]),
        (PositionError, "0 squares", Position.from_text, [""]),
        (PositionError, r"'\?' at square h8", Position.from_text, ["X" * 63 + "?"]),
        (PositionError, "not text", Position.from_text, [None]),
        (PositionError, "expected 36", Position.from_text, ["-" * 64, BLACK, Rules(6)]),
        *((ReversiError, ".", Position.from_matrix, [matrix]) for matrix in MATRICES),
    ],
)
def test_what_cannot_be_is_named(error, message, ask, arguments):
    with pytest.raises(error, match=message):
        ask(*arguments)


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


@pytest.mark.parametrize("colour", ["black", 0, 2, "X"])
@pytest.mark.parametrize("ask", [Position.discs, Position.disc_difference, Position.stable, Position.frontier])
def test_what_is_no_colour_is_refused(ask, colour):
    with pytest.raises(PositionError, match="expected BLACK or WHITE"):
        ask(START, colour)


def test_a_turn_may_be_the_number_of_a_colour():
    position = Position(Rules(), START.own, START.opp, -1)
    assert position == START
    assert position.turn is BLACK
    assert repr(position.play("f5")) == repr(START.play("f5"))


@pytest.mark.parametrize("size", [6.0, True, "6", None])
def test_a_size_is_a_whole_number(size):
    with pytest.raises(RulesError, match="expected one of 4, 6, 8"):
        Rules(size)
