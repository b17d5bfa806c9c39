"""Move transcripts: what is read, what is written, what is refused and how the error says so."""

import pytest

from reversi_env import Position, Rules
from reversi_env.errors import IllegalMoveError, NotationError
from reversi_env.notation import Game, read_transcript, write_transcript
from tests.oracles.strategies import ALL_RULES, BLACK_MUST_PASS, random_moves

MOVES = ("f5", "d6", "c3", "d3", "c4")


@pytest.mark.parametrize(
    "text",
    [
        "f5d6c3d3c4",
        "F5D6C3D3C4",
        "f5 d6\tc3\nd3\r\nc4\n",
        "f5-d6-c3-d3-c4",
        "f5, d6; c3 / d3 | c4.",
        "1. f5 d6 2. c3 d3 3. c4",
        "1.f52.d63.c34.d35.c4",
        "\u00a0f5\u3000d6c3d3c4",
    ],
)
def test_spelling_and_separators_do_not_matter(text):
    assert read_transcript(text) == Game(Position.initial(), MOVES)


@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
@pytest.mark.parametrize("passes", ["implicit", "explicit"])
def test_random_games_of_every_size_and_variant_come_back(rules, passes):
    start = Position.initial(rules)
    with_passes = 0
    for seed in range(12):
        moves = random_moves(start, seed)
        with_passes += "pass" in moves
        assert read_transcript(write_transcript(moves, passes), start) == Game(start, moves)
    assert with_passes, "no game had a pass: the round trip would not have tested passes"


def test_a_game_is_written_like_its_moves():
    assert write_transcript(Game(Position.initial(), MOVES)) == write_transcript(MOVES) == "f5d6c3d3c4"


def test_a_forced_pass_may_be_left_out():
    assert read_transcript("c1", BLACK_MUST_PASS).moves == ("pass", "c1")


@pytest.mark.parametrize("spelling", ["--", "pa", "PA", "ps", "Ps", "pass", "PASS"])
def test_a_forced_pass_may_be_spelt_out(spelling):
    assert read_transcript(f"{spelling}c1", BLACK_MUST_PASS).moves == ("pass", "c1")


def test_passes_are_written_as_two_dashes_or_not_at_all():
    assert write_transcript(("pass", "c1"), "explicit") == "--c1"
    assert write_transcript(("pass", "c1"), "implicit") == "c1"


def test_a_pass_that_ends_the_record_is_kept_if_explicit():
    assert read_transcript("--", BLACK_MUST_PASS).moves == ("pass",)
    assert read_transcript("", BLACK_MUST_PASS).moves == ()


def test_the_start_may_be_any_position_with_either_side_to_move():
    white_to_move = Position.initial().play("f5")
    assert read_transcript("d6c3", white_to_move).final() == read_transcript("f5d6c3").final()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f5a1", "move 2: a1 by white is illegal: the legal moves are f4 d6 f6"),
        ("f5d6f5", "move 3: f5 by black is illegal: the legal moves are c3"),
        ("f5--", "move 2: pass by white is not allowed: the legal moves are f4 d6 f6"),
    ],
)
def test_an_illegal_move_is_named_with_its_number_and_what_was_legal(text, message):
    with pytest.raises(IllegalMoveError, match=f"^transcript '{text}': {message}"):
        read_transcript(text)


@pytest.mark.parametrize("move", ["a1", "--"])
def test_nothing_may_be_played_after_the_end_of_the_game(move):
    whole_game = write_transcript(random_moves(Position.initial(), seed=1))
    with pytest.raises(IllegalMoveError, match="the game is over"):
        read_transcript(whole_game + move)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f5xyz", "'xyz' at character 3 is not a move"),
        ("f5d", "'d' at character 3 is not a move"),
        ("f5d9", "'d9' at character 3 is not a move"),
        ("i5", "'i5' at character 1 is not a move"),
        ("f5pſ", "'pſ' at character 3 is not a move"),
        ("f5d6 12", "'12' at character 6 is not a move"),
        ("f５", "'f５' at character 1 is not a move"),
    ],
)
def test_what_is_not_a_move_is_named_with_its_place(text, message):
    with pytest.raises(NotationError, match=message):
        read_transcript(text)


def test_squares_of_a_larger_board_are_refused_on_a_smaller_one():
    with pytest.raises(NotationError, match="move 1: 'f5' is not a square of the 4x4 board"):
        read_transcript("f5", Position.initial(Rules(4)))


@pytest.mark.parametrize("text", [None, b"f5", 5, ["f5"]])
def test_what_is_not_text_is_refused(text):
    with pytest.raises(NotationError, match="is not text"):
        read_transcript(text)


def test_writing_refuses_an_unknown_way_of_passing_and_unknown_names():
    with pytest.raises(NotationError, match="passes 'never'"):
        write_transcript(MOVES, "never")
    with pytest.raises(NotationError, match="'z9' is not a square"):
        write_transcript(["z9"])
