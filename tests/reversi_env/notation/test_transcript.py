"""Games, their annotations, and transcripts such as `f5d6c3`."""

import pickle

import pytest

from reversi_env import Position, Rules
from reversi_env.errors import IllegalMoveError, NotationError
from reversi_env.notation import Annotation, Game, read_transcript, write_transcript
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


START = Position.initial()


def test_positions_are_the_start_and_one_more_for_every_move_pass_included():
    game = Game(BLACK_MUST_PASS, ("pass", "c1"))
    positions = list(game.positions())
    assert positions[0] == BLACK_MUST_PASS
    assert [str(position.turn) for position in positions] == ["black", "white", "black"]
    assert game.final() == positions[-1]
    assert game.final().to_text() == "OOO-" + "-" * 12


def test_a_game_without_moves_ends_where_it_starts():
    assert Game(START).final() == START


def test_move_names_are_kept_in_one_spelling():
    assert Game(START, ("F5", " d6")).moves == ("f5", "d6")


def test_replaying_an_illegal_move_names_its_number_and_the_legal_ones():
    with pytest.raises(IllegalMoveError, match="move 2: f5 by white is illegal: the legal moves are f4 d6 f6"):
        Game(START, ("f5", "f5")).final()


def test_a_name_off_the_board_is_refused_at_once():
    with pytest.raises(NotationError, match="'h8' is not a square of the 6x6 board"):
        Game(Position.initial(Rules(6)), ("h8",))


def test_annotations_must_be_as_many_as_moves():
    with pytest.raises(NotationError, match="1 annotations for 2 moves"):
        Game(START, ("f5", "d6"), annotations=(Annotation(1.0),))


def test_games_compare_by_value_tags_included_and_can_be_dictionary_keys():
    game = Game(START, ("f5",), tags={"DT": "1999"})
    assert game == Game(START, ("f5",), tags={"DT": "1999"})
    assert game != Game(START, ("f5",), tags={"DT": "2000"})
    assert len({game, Game(START, ("f5",), tags={"DT": "1999"})}) == 1


def test_changing_the_callers_dictionary_does_not_change_the_game():
    tags = {"DT": "1999"}
    game = Game(START, tags=tags)
    tags["DT"] = "2000"
    assert game.tags == {"DT": "1999"}


def test_games_can_be_sent_to_another_process():
    game = Game(START, ("f5",), black="Ann", tags={"DT": "1999"}, annotations=(Annotation(1.5, 2.0),))
    assert pickle.loads(pickle.dumps(game)) == game
