"""GGF games: what the properties mean, round trips, and errors that name the game and the move."""

import random

import pytest

from reversi_env import BLACK, WHITE, Position, Rules
from reversi_env.errors import IllegalMoveError, NotationError, PositionError, RulesError
from reversi_env.notation import Annotation, Game, read_ggf, read_ggf_game, write_ggf
from tests.oracles.strategies import BLACK_MUST_PASS, random_moves

START = "BO[8 -------- -------- -------- ---O*--- ---*O--- -------- -------- -------- *]"
RECORD = (
    "(;GM[Othello]PC[GGS/os]DT[2003.12.15_12:33:18.MST]PB[Ann]PW[Bob]RB[2196.37]RW[2200.35]TI[5:00//2:00]TY[8]"
    f"RE[-4.00:r]{START}B[d3//0.01]W[c5/-1.50/4.2]B[D6/2]W[E3];)"
)
BLACK_MUST_PASS_BOARD = "TY[4]BO[4 O*-- ---- ---- ---- *]"


def test_every_property_lands_in_its_place():
    game = read_ggf_game(RECORD)
    assert game.start == Position.initial()
    assert game.moves == ("d3", "c5", "d6", "e3")
    assert (game.black, game.white, game.result, game.ending) == ("Ann", "Bob", -4.0, "resigned")
    assert game.annotations == (Annotation(None, 0.01), Annotation(-1.5, 4.2), Annotation(2.0), Annotation())
    assert game.tags == {
        "PC": "GGS/os",
        "DT": "2003.12.15_12:33:18.MST",
        "RB": "2196.37",
        "RW": "2200.35",
        "TI": "5:00//2:00",
    }


def test_the_written_record_is_the_customary_one():
    expected = RECORD.replace("4.2]", "4.20]").replace("D6/2]", "d6/2.00]").replace("E3", "e3")
    assert write_ggf(read_ggf_game(RECORD)) == expected


def random_annotations(moves, dice):
    values = (None, 0.0, -12.25, 0.001, 1e-7, 64.0)
    return tuple(Annotation(dice.choice(values), dice.choice(values)) for _ in moves)


@pytest.mark.parametrize(
    "rules", [Rules(size, variant) for size in (4, 6, 8) for variant in ("normal", "reversed")], ids=str
)
@pytest.mark.parametrize("opening_plies", [0, 3, 4])
def test_random_games_from_any_start_come_back(rules, opening_plies):
    start = Position.initial(rules).play_all(random_moves(Position.initial(rules), 5, opening_plies))
    for seed in range(6):
        dice = random.Random(seed)
        moves = random_moves(start, seed)
        ending = dice.choice([None, "resigned", "timeout", "agreed"])
        result = dice.choice([None, 0, -3.5, 12.345, 64])
        annotations = random_annotations(moves, dice) if seed % 2 else ()
        game = Game(start, moves, "A]nn\\", "", result, ending, {"PC": "here", "Own_1": "a\\]b[c\nd"}, annotations)
        assert read_ggf_game(write_ggf(game)) == game


def test_passes_are_written_out():
    game = Game(BLACK_MUST_PASS, ("pass", "c1"))
    assert write_ggf(game).endswith("BO[4 O*-- ---- ---- ---- *]B[PA]W[c1];)")
    assert read_ggf_game(write_ggf(game)) == game


@pytest.mark.parametrize("moves", ["B[PA]W[c1]", "B[pass]W[C1]", "B[pa//0.5]W[c1]", "B[--]W[c1]", "W[c1]"])
def test_a_pass_may_be_spelt_in_several_ways_or_left_out(moves):
    assert read_ggf_game(f"(;{BLACK_MUST_PASS_BOARD}{moves};)").moves == ("pass", "c1")


def test_the_annotation_of_a_move_after_a_left_out_pass_stays_with_the_move():
    game = read_ggf_game(f"(;{BLACK_MUST_PASS_BOARD}W[c1/5/1];)")
    assert game.annotations == (Annotation(), Annotation(5.0, 1.0))


def test_a_side_that_must_pass_cannot_make_the_other_sides_move():
    with pytest.raises(IllegalMoveError, match="move 1, B\\['c1'\\]: c1 by black is illegal: the legal moves are pass"):
        read_ggf_game(f"(;{BLACK_MUST_PASS_BOARD}B[c1];)")


@pytest.mark.parametrize(
    ("game_type", "rules", "tag"),
    [
        ("8", Rules(8), None),
        ("8a", Rules(8, "reversed"), None),
        ("6", Rules(6), None),
        ("8r", Rules(8), "8r"),
        ("s8r20", Rules(8), "s8r20"),
        ("8kar16", Rules(8, "reversed"), "8kar16"),
        ("4b", Rules(4), "4b"),
        ("8A", Rules(8, "reversed"), "8A"),
    ],
)
def test_the_type_gives_size_and_variant_and_is_kept_if_it_says_more(game_type, rules, tag):
    game = read_ggf_game(f"(;TY[{game_type}];)")
    assert game.start == Position.initial(rules)
    assert game.tags.get("TY") == tag
    assert read_ggf_game(write_ggf(game)) == game


def test_the_board_gives_the_start_and_the_side_to_move():
    start = Position.initial().play("d3")
    text = write_ggf(Game(start))
    assert "BO[8 -------- -------- ---*---- ---**--- ---*O--- -------- -------- -------- O]" in text
    assert read_ggf_game(text).start == start
    assert read_ggf_game("(;BO[4-----O*--*O-----O];)".replace("[4", "[4 ")).start.turn == WHITE
    assert read_ggf_game(f"(;{START};)").start.turn == BLACK


@pytest.mark.parametrize(
    ("value", "result", "ending"),
    [
        ("+12.00", 12.0, None),
        ("-64", -64.0, None),
        ("0", 0.0, None),
        ("+0.5:t", 0.5, "timeout"),
        ("-40.00:r", -40.0, "resigned"),
        ("2.000:s", 2.0, "agreed"),
        ("?", None, None),
        ("?:r", None, "resigned"),
    ],
)
def test_results_in_all_forms(value, result, ending):
    game = read_ggf_game(f"(;RE[{value}];)")
    assert (game.result, game.ending) == (result, ending)


def test_a_file_holds_many_games_with_or_without_counts_and_line_breaks(tmp_path):
    text = f"1 {RECORD}\n2 {RECORD}{RECORD}\n\n(;GM[othello]\n  PB [Eve]\n B[f5]\n W[d6]\n;)\n"
    path = tmp_path / "games.ggf"
    path.write_text(text)
    games = list(read_ggf(path))
    assert (
        games == list(read_ggf(str(path))) == list(read_ggf(text.splitlines())) == list(read_ggf(text.splitlines(True)))
    )
    assert [game.black for game in games] == ["Ann", "Ann", "Ann", "Eve"]
    assert games[-1].moves == ("f5", "d6")


def test_escapes_keep_brackets_and_backslashes():
    assert read_ggf_game(r"(;PB[a\]b\\c[d\e];)").black == r"a]b\c[de"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", NotationError, "end of the text"),
        ("garbage", NotationError, "'garbage' at character 1"),
        ("(;GM[Othello]", NotationError, "end of the text"),
        ("(;GM[Othello;)", NotationError, "at character 3"),
        ("(;PB[Ann\\];)", NotationError, "at character 3"),
        ("(;PB[Ann] oops ;)", NotationError, "' oops ;\\)' at character 10"),
        ("(;;) (;;)", NotationError, "after the game"),
        ("(;GM[Chess];)", NotationError, "GM\\['Chess'\\] is another game"),
        ("(;PB[a]PB[b];)", NotationError, "PB\\['b'\\] after PB\\['a'\\]"),
        ("(;TY[x];)", NotationError, "TY\\['x'\\]: not a game type"),
        ("(;TY[10];)", RulesError, "size 10 is not supported"),
        ("(;TY[88];)", RulesError, "size 88 is not supported"),
        ("(;TY[6]BO[8 *];)", NotationError, "size 8 contradicts TY\\['6'\\]"),
        ("(;BO[];)", NotationError, "expected the size, the squares and the side to move"),
        ("(;BO[8];)", NotationError, "expected the size, the squares and the side to move"),
        ("(;BO[4 -----O*--*O---- *];)", PositionError, "has 15 squares"),
        ("(;BO[4 -----O*--*O----- -];)", NotationError, "side to move '-'"),
        ("(;BO[4 -----O?--*O----- *];)", PositionError, "'\\?' at square c2"),
        ("(;RE[won];)", NotationError, "'won' is not a number"),
        ("(;RE[+2:x];)", NotationError, "flag 'x'"),
        ("(;RE[1e999];)", NotationError, "'1e999' is not a number"),
        (
            "(;B[f5]W[a1];)",
            IllegalMoveError,
            "move 2, W\\['a1'\\]: a1 by white is illegal: the legal moves are f4 d6 f6",
        ),
        ("(;B[f5]B[d6];)", NotationError, "move 2, B\\['d6'\\]: it is not black's turn"),
        ("(;B[PA];)", IllegalMoveError, "pass by black is not allowed"),
        ("(;B[f9];)", NotationError, "'f9' is not a square of the 8x8 board"),
        ("(;B[];)", NotationError, "'' is not a square"),
        ("(;B[f5/x];)", NotationError, "'x' is not a number"),
        ("(;B[f5/nan];)", NotationError, "'nan' is not a number"),
        ("(;B[f5/1/2/3];)", NotationError, "expected a move, an evaluation and seconds"),
        (None, NotationError, "is not text"),
    ],
)
def test_bad_games_are_named_with_what_was_expected(text, error, message):
    with pytest.raises(error, match=message) as caught:
        read_ggf_game(text)
    assert str(caught.value).startswith("GGF game ")


def test_an_error_in_a_file_names_the_game_after_the_good_ones_were_read():
    games = read_ggf([RECORD, "(;B[a1];)"])
    assert next(games).black == "Ann"
    with pytest.raises(IllegalMoveError, match="GGF game 2: move 1, B\\['a1'\\]"):
        next(games)


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (Game(Position.initial(), tags={"PB": "Ann"}), "tag 'PB'"),
        (Game(Position.initial(), tags={"no name": "x"}), "tag 'no name'"),
        (Game(Position.initial(), tags={"PC": 5}), "value 5"),
        (Game(Position.initial(), tags={"TY": "6"}), "contradicts the rules"),
        (Game(Position.initial(), result=float("nan")), "number nan cannot be written"),
        (Game(Position.initial(), ("a1",)), "move 1: a1 by black is illegal"),
    ],
)
def test_writing_refuses_what_would_not_read_back(game, message):
    with pytest.raises((NotationError, IllegalMoveError), match=message):
        write_ggf(game)


def test_a_type_of_0_leaves_the_size_to_the_board():
    game = read_ggf_game("(;GM[Othello]TY[0]BO[4 ---- -O*- -*O- ---- *]B[b1];)")
    assert game.start == Position.initial(Rules(4))
    assert read_ggf_game(write_ggf(game)).moves == game.moves
    with pytest.raises(RulesError, match="size 0 is not supported"):
        read_ggf_game("(;GM[Othello]TY[0]B[b1];)")
