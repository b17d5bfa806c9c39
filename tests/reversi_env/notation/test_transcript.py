"""Games, their annotations, transcripts such as `f5d6c3`, and names of openings."""

import pickle
from functools import partial

import pytest

from reversi_env import Position, Rules
from reversi_env.batch import SYMMETRIES, square_image
from reversi_env.errors import IllegalMoveError, NotationError
from reversi_env.notation import Annotation, Game, read_transcript, write_transcript
from reversi_env.notation.openings import name_of_game, name_of_positions, opening_name, openings
from tests.oracles.strategies import ALL_RULES, BLACK_MUST_PASS, random_moves

START = Position.initial()
MOVES = ("f5", "d6", "c3", "d3", "c4")


SPELLINGS = ["f5d6c3d3c4", "F5D6C3D3C4", "f5 d6\tc3\nd3\r\nc4\n", "f5-d6-c3-d3-c4", "f5, d6; c3 / d3 | c4."]
SPELLINGS += ["1. f5 d6 2. c3 d3 3. c4", "1.f52.d63.c34.d35.c4", "\u00a0f5\u3000d6c3d3c4"]


@pytest.mark.parametrize("text", SPELLINGS)
def test_spelling_and_separators_do_not_matter(text):
    assert read_transcript(text) == Game(START, MOVES)


@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
@pytest.mark.parametrize("passes", ["implicit", "explicit"])
def test_random_games_round_trip(rules, passes):
    start = Position.initial(rules)
    with_passes = 0
    for seed in range(12):
        moves = random_moves(start, seed)
        with_passes += "pass" in moves
        assert read_transcript(write_transcript(moves, passes), start) == Game(start, moves)
    assert with_passes


@pytest.mark.parametrize("spelling", ["", "--", "pa", "PA", "ps", "Ps", "pass", "PASS"])
def test_pass_spellings_and_omitted_pass_are_accepted(spelling):
    """At the end of the record, a pass is kept only if it is written explicitly."""
    assert read_transcript(f"{spelling}c1", BLACK_MUST_PASS).moves == ("pass", "c1")
    assert read_transcript(spelling, BLACK_MUST_PASS).moves == ("pass",) * bool(spelling)


def test_writing_of_games_moves_and_passes():
    assert write_transcript(Game(START, MOVES)) == write_transcript(MOVES) == "f5d6c3d3c4"
    assert write_transcript(("pass", "c1"), "explicit") == "--c1"
    assert write_transcript(("pass", "c1"), "implicit") == "c1"


@pytest.mark.parametrize(("text", "number"), [("f5a1", 2), ("f5d6f5", 3), ("f5--", 2)])
def test_illegal_move_error_has_move_number(text, number):
    with pytest.raises(IllegalMoveError, match=f"'{text}': move {number}"):
        read_transcript(text)
    with pytest.raises(IllegalMoveError, match=f"move {number}"):
        Game(START, [text[i : i + 2] for i in range(0, len(text), 2)]).final()
    for move in ("a1", "--"):
        with pytest.raises(IllegalMoveError, match="the game is over"):
            read_transcript(write_transcript(random_moves(START, seed=1)) + move)


@pytest.mark.parametrize(
    ("text", "place"), [("f5xyz", 3), ("f5d", 3), ("f5d9", 3), ("i5", 1), ("f5pſ", 3), ("f5d6 12", 6), ("f５", 1)]
)
def test_invalid_move_text_error_has_character_position(text, place):
    with pytest.raises(NotationError, match=f"at character {place}"):
        read_transcript(text)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        *((read_transcript, [text]) for text in (None, b"f5", 5, ["f5"])),
        (read_transcript, ["f5", Position.initial(Rules(4))]),
        *((write_transcript, [MOVES, "never"]), (write_transcript, [["z9"]])),
        (Game, [Position.initial(Rules(6)), ("h8",)]),
        (partial(Game, annotations=(Annotation(1.0),)), [START, ("f5", "d6")]),
    ],
)
def test_invalid_arguments_are_rejected(function, arguments):
    with pytest.raises(NotationError):
        function(*arguments)


def test_positions_has_start_and_position_after_each_move():
    game = Game(BLACK_MUST_PASS, ("pass", "C1"))
    positions = list(game.positions())
    assert positions[0] == BLACK_MUST_PASS == Game(BLACK_MUST_PASS).final()
    assert [str(position.turn) for position in positions] == ["black", "white", "black"]
    assert game.final() == positions[-1]
    assert game.final().to_text() == "OOO-" + "-" * 12


def test_games_compare_hash_and_pickle_by_value():
    tags = {"DT": "1999"}
    game, same, other = (Game(START, ("F5",), tags=tags | change) for change in ({}, {}, {"DT": "2000"}))
    assert game == same == pickle.loads(pickle.dumps(game)) != other
    assert len({game, same, other}) == 2
    kept = Game(START, (" f5",), tags=tags)
    tags["DT"] = "2000"
    assert kept == game


def images(moves):
    """Yield the moves under the symmetries that keep the four discs of the start position."""
    start, rules = Position.initial(), Rules()
    for symmetry in range(SYMMETRIES):
        if start.transformed(symmetry) == start:
            actions = [rules.action_from_name(move) for move in moves]
            yield [rules.name_of(square_image(action, symmetry)) for action in actions]


def test_every_opening_is_named_in_every_symmetric_image():
    assert len(openings()) == 76
    named = {}
    for opening in openings():
        lines = list(images(opening.moves))
        assert len({moves[0] for moves in lines}) == 4
        assert {name_of_game(moves) for moves in lines} == {opening.name}
        after = Position.initial().play_all(opening.moves)
        named |= {after.transformed(symmetry): opening.name for symmetry in range(SYMMETRIES)}
    for opening in openings()[::6]:  # a position outside the line has another name or none
        before = Position.initial().play_all(opening.moves[:-1])
        for move in before.legal_moves():
            assert opening_name(before.play(move)) == named.get(before.play(move))


def test_game_keeps_last_opening_name_under_transposition():
    tiger = ["f5", "d6", "c3", "d3", "c4"]
    named = [name_of_game(tiger[:count]) for count in range(6)]
    assert named == [None, None, "Perpendicular Opening", "Perpendicular Opening", "Perpendicular Opening", "Tiger"]
    assert name_of_game([*tiger, "f3"]) == name_of_game(["f5", "d6", "c4", "d3", "c3"]) == "Tiger"
    assert name_of_positions([]) is None


@pytest.mark.parametrize("rules", [Rules(6), Rules(8, "reversed"), Rules(8, "normal", "parallel")], ids=str)
def test_openings_of_other_rules_have_no_name(rules):
    start = Position.initial(rules)
    move = start.legal_moves()[0]
    assert name_of_game([move, start.play(move).legal_moves()[0]], start) is None
