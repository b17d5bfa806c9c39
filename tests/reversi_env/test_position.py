"""`Rules` and `Position`: results and errors."""

import contextlib
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reversi_env import BLACK, WHITE, Colour, Position, ReversiError, Rules
from reversi_env.errors import IllegalMoveError, NotationError, PositionError, RulesError

START = Position.initial()


def test_start_position():
    assert START.to_text() == "-" * 27 + "OX" + "-" * 6 + "XO" + "-" * 27
    assert Position.initial(Rules(start="parallel")).to_text() == "-" * 27 + "OO" + "-" * 6 + "XX" + "-" * 27
    assert Position.initial(Rules(4)).to_text() == "-----OX--XO-----"
    assert Position.initial(Rules(6)).turn == BLACK


WIPE_OUT = ["e6", "f4", "e3", "f6", "g5", "d6", "e7", "f5", "c5"]


def test_end_of_game_winner_and_score():
    position = START.play_all(WIPE_OUT)
    assert position.is_over()
    assert (position.discs(BLACK), position.discs(WHITE), position.disc_difference(BLACK)) == (13, 0, 13)
    assert position.score(BLACK) == -position.score() == 64
    assert position.winner() == BLACK
    assert position.legal_moves() == []
    other = Position.initial(Rules(variant="reversed")).play_all(WIPE_OUT)
    assert (other.winner(), other.score(WHITE)) == (WHITE, 64)
    drawn = Position.from_text("X" * 32 + "O" * 32)
    assert drawn.is_over()
    assert drawn.winner() is START.winner() is None
    assert drawn.score() == 0


def test_play_accepts_names_actions_and_passes():
    start = START
    assert start.play("f5") == start.play("F5") == start.play(37) == start.play(np.int64(37))
    must_pass = Position.from_text("OX--" + "-" * 12)
    passed = must_pass.play("pass")
    assert Colour.BLACK.other == WHITE
    assert must_pass.must_pass()
    assert passed == must_pass.play(16) == must_pass.play("--") == must_pass.play("PA")
    assert passed.turn == WHITE
    assert (passed.own, passed.opp) == (must_pass.opp, must_pass.own)


def test_positions_compare_hash_and_pickle_by_value():
    numbered = Position(Rules(), START.own, START.opp, -1)  # a turn may be the number of a colour
    assert (numbered, numbered.turn) == (START, BLACK)
    assert repr(numbered.play("f5")) == repr(START.play("f5"))
    a, b = START.play("f5"), START.play(37)
    assert a == b
    assert len({a, b}) == 1
    assert pickle.loads(pickle.dumps(a)) == a
    assert a != START.play("d3")
    assert Position.initial(Rules(variant="reversed")) != START
    assert a.hash64() == b.hash64() != START.hash64() == 0x5B98564F09357DA1  # on every machine
    with pytest.raises(AttributeError):
        a.own = 0


def test_str_marks_legal_moves_and_to_matrix_uses_plus_minus_one():
    board = "   a b c d|1  . + . .|2  + O X .|3  . X O +|4  . . + .||black to move (X 2, O 2)"
    assert str(Position.initial(Rules(4))).splitlines() == board.split("|")
    assert "fewest win" in str(Position.initial(Rules(4, "reversed")))
    matrix = Position.initial(Rules(4)).to_matrix()
    assert matrix.dtype == np.int8
    assert matrix.tolist() == [[0, 0, 0, 0], [0, 1, -1, 0], [0, -1, 1, 0], [0, 0, 0, 0]]


MATRICES = [
    [[0, 2], [0, 0]],
    [[0], [0, 0]],
    np.zeros((8, 6)),
    np.zeros(64),
    np.full((8, 8), 3),
    "board",
    [[None] * 8] * 8,
]
FULL = Position.from_text("X" * 64)
QUERIES = (Position.discs, Position.disc_difference, Position.stable, Position.frontier)


@pytest.mark.parametrize(
    ("error", "message", "call", "arguments"),
    [
        *((RulesError, "4, 6, 8", Rules, [size]) for size in (0, 2, 5, 7, 10, -8, "8", 8.0, 8.5, None, True)),
        (RulesError, "'anti'", Rules, [8, "anti"]),
        (RulesError, "'diagonal'", Rules, [8, "normal", "diagonal"]),
        (RulesError, "rules 6", Position.initial, [6]),
        (NotationError, "16", Rules(4).name_of, [17]),
        *((ReversiError, f"'{move}'|{move} by", START.play, [move]) for move in ("a1", "d4", "i9", "", "f5d6", "pass")),
        *((ReversiError, "pass|move", START.play, [move]) for move in (64, 65, -1, 3.0, None, True)),
        *((IllegalMoveError, "over", FULL.play, [move]) for move in ("pass", "a1")),
        (PositionError, "finished", START.score, []),
        (PositionError, "a1", Position, [Rules(), 1, 1]),
        *((PositionError, "8x8|own", Position, [Rules(), own, 0]) for own in (1 << 64, -1, 1.5, True, "1")),
        (PositionError, "6x6", Position, [Rules(6), 1, 0]),
        (PositionError, "colour", Position, [Rules(), 1, 2, 0]),
        *((PositionError, "squares", Position.from_text, [text]) for text in ("X" * 63, "")),
        (PositionError, "h8", Position.from_text, ["X" * 63 + "?"]),
        (PositionError, "None", Position.from_text, [None]),
        (PositionError, "36", Position.from_text, ["-" * 64, BLACK, Rules(6)]),
        *((PositionError, "symmetry", START.transformed, [symmetry]) for symmetry in (8, -1, 1.5, "1")),
        *((ReversiError, ".", Position.from_matrix, [matrix]) for matrix in MATRICES),
        *((PositionError, "BLACK", query, [START, colour]) for query in QUERIES for colour in ("black", 0, 2, "X")),
        *((RulesError, "depth", START.perft, [depth]) for depth in (-1, 1.5, "3", True)),
    ],
)
def test_invalid_arguments_are_named(error, message, call, arguments):
    with pytest.raises(error, match=message):
        call(*arguments)


anything = st.one_of(
    st.none(), st.integers(), st.floats(), st.text(), st.binary(), st.booleans(), st.lists(st.integers())
)


board_text = st.text("XO-", min_size=16, max_size=16)


@given(anything, anything, board_text)
def test_any_input_raises_only_reversi_errors(value, other, text):
    calls = [(Position.initial(Rules(6)).play, value), (Position, Rules(), value, other)]
    for call, *arguments in (*calls, *((Position.from_text, one) for one in (value, text))):
        with contextlib.suppress(ReversiError):
            call(*arguments)
