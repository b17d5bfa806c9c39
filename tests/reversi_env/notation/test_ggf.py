"""GGF games: properties, round trips, and errors that name the game and the move."""

import random

import pytest

from reversi_env import BLACK, WHITE, Position, Rules
from reversi_env.errors import IllegalMoveError, NotationError, PositionError, RulesError
from reversi_env.notation import Annotation, Game, read_ggf, read_ggf_game, write_ggf
from tests.oracles.strategies import ALL_RULES, BLACK_MUST_PASS, random_moves

START = "BO[8 -------- -------- -------- ---O*--- ---*O--- -------- -------- -------- *]"
RECORD = (
    "(;GM[Othello]PC[GGS/os]DT[2003.12.15_12:33:18.MST]PB[Ann]PW[Bob]RB[2196.37]RW[2200.35]TI[5:00//2:00]TY[8]"
    f"RE[-4.00:r]{START}B[d3//0.01]W[c5/-1.50/4.2]B[D6/2]W[E3];)"
)
BLACK_MUST_PASS_BOARD = "TY[4]BO[4 O*-- ---- ---- ---- *]"


def test_all_properties_are_read_and_written():
    game = read_ggf_game(RECORD)
    assert game.start == Position.initial()
    assert game.moves == ("d3", "c5", "d6", "e3")
    assert (game.black, game.white, game.result, game.ending) == ("Ann", "Bob", -4.0, "resigned")
    assert game.annotations == (Annotation(None, 0.01), Annotation(-1.5, 4.2), Annotation(2.0), Annotation())
    tags = {"PC": "GGS/os", "DT": "2003.12.15_12:33:18.MST", "RB": "2196.37", "RW": "2200.35", "TI": "5:00//2:00"}
    assert game.tags == tags
    assert read_ggf_game(r"(;PB[a\]b\\c[d\e];)").black == r"a]b\c[de"
    assert write_ggf(game) == RECORD.replace("4.2]", "4.20]").replace("D6/2]", "d6/2.00]").replace("E3", "e3")


@pytest.mark.parametrize("rules", [rules for rules in ALL_RULES if rules.start == "standard"], ids=str)
@pytest.mark.parametrize("opening_plies", [0, 3, 4])
def test_random_games_round_trip(rules, opening_plies):
    start = Position.initial(rules).play_all(random_moves(Position.initial(rules), 5, opening_plies))
    values = (None, 0.0, -12.25, 0.001, 1e-7, 64.0)
    for seed in range(6):
        rng = random.Random(seed)
        moves = random_moves(start, seed)
        ending = rng.choice([None, "resigned", "timeout", "agreed"])
        result = rng.choice([None, 0, -3.5, 12.345, 64])
        annotations = [Annotation(rng.choice(values), rng.choice(values)) for _ in moves] * (seed % 2)
        tags = {"PC": "here", "Own_1": "a\\]b[c\nd"}
        game = Game(start, moves, "A]nn\\", "", result, ending, tags, tuple(annotations))
        assert read_ggf_game(write_ggf(game)) == game


@pytest.mark.parametrize("moves", [f"{spelt}W[C1/5/1]" for spelt in ("B[PA]", "B[pass]", "B[pa]", "B[--]", "")])
def test_pass_spellings_and_omitted_pass_are_accepted(moves):
    """The annotation stays with its move; a pass is written explicitly."""
    game = read_ggf_game(f"(;{BLACK_MUST_PASS_BOARD}{moves};)")
    assert game == Game(BLACK_MUST_PASS, ("pass", "c1"), annotations=(Annotation(), Annotation(5.0, 1.0)))
    assert "B[PA]W[c1/" in write_ggf(game)


@pytest.mark.parametrize(
    ("game_type", "rules", "tag"),
    [
        *(("8", Rules(8), None), ("8a", Rules(8, "reversed"), None), ("6", Rules(6), None), ("8r", Rules(8), "8r")),
        *(("s8r20", Rules(8), "s8r20"), ("8kar16", Rules(8, "reversed"), "8kar16"), ("4b", Rules(4), "4b")),
        ("8A", Rules(8, "reversed"), "8A"),
    ],
)
def test_game_type_sets_size_and_variant(game_type, rules, tag):
    game = read_ggf_game(f"(;TY[{game_type}];)")
    assert game.start == Position.initial(rules)
    assert game.tags.get("TY") == tag
    assert read_ggf_game(write_ggf(game)) == game


def test_board_property_sets_start_and_side_to_move():
    start = Position.initial().play("d3")
    text = write_ggf(Game(start))
    assert "BO[8 -------- -------- ---*---- ---**--- ---*O--- -------- -------- -------- O]" in text
    assert read_ggf_game(text).start == start
    assert read_ggf_game("(;BO[4-----O*--*O-----O];)".replace("[4", "[4 ")).start.turn == WHITE
    assert read_ggf_game(f"(;{START};)").start.turn == BLACK
    game = read_ggf_game(
        "(;GM[Othello]TY[0]BO[4 ---- -O*- -*O- ---- *]B[b1];)"
    )  # with this type, the board sets the size
    assert game.start == Position.initial(Rules(4))
    assert read_ggf_game(write_ggf(game)).moves == game.moves


@pytest.mark.parametrize(
    ("value", "result", "ending"),
    [
        *(("+12.00", 12.0, None), ("-64", -64.0, None), ("0", 0.0, None), ("+0.5:t", 0.5, "timeout")),
        *(("-40.00:r", -40.0, "resigned"), ("2.000:s", 2.0, "agreed"), ("?", None, None), ("?:r", None, "resigned")),
    ],
)
def test_result_formats(value, result, ending):
    game = read_ggf_game(f"(;RE[{value}];)")
    assert (game.result, game.ending) == (result, ending)


def test_file_with_many_games_is_read(tmp_path):
    text = f"1 {RECORD}\n2 {RECORD}{RECORD}\n\n(;GM[othello]\n  PB [Eve]\n B[f5]\n W[d6]\n;)\n"
    path = tmp_path / "games.ggf"
    path.write_text(text)
    games = list(read_ggf(path))
    for source in (str(path), text.splitlines(), text.splitlines(True)):
        assert list(read_ggf(source)) == games
    assert [game.black for game in games] == ["Ann", "Ann", "Ann", "Eve"]
    assert games[-1].moves == ("f5", "d6")


BAD_GAMES = {
    NotationError: [
        *(None, "", "garbage", "(;GM[Othello]", "(;GM[Othello;)", "(;PB[Ann\\];)", "(;PB[Ann] oops ;)", "(;;) (;;)"),
        *("(;GM[Chess];)", "(;PB[a]PB[b];)", "(;TY[x];)", "(;TY[6]BO[8 *];)", "(;BO[];)", "(;BO[8];)"),
        *("(;BO[4 -----O*--*O----- -];)", "(;RE[won];)", "(;RE[+2:x];)", "(;RE[1e999];)"),
        *("(;B[f5]B[d6];)", "(;B[f9];)", "(;B[];)", "(;B[f5/x];)", "(;B[f5/nan];)", "(;B[f5/1/2/3];)"),
    ],
    RulesError: ["(;TY[10];)", "(;TY[88];)", "(;GM[Othello]TY[0]B[b1];)"],
    PositionError: ["(;BO[4 -----O*--*O---- *];)", "(;BO[4 -----O?--*O----- *];)"],
    IllegalMoveError: ["(;B[f5]W[a1];)", "(;B[PA];)", f"(;{BLACK_MUST_PASS_BOARD}B[c1];)"],
}


@pytest.mark.parametrize(("error", "text"), [(error, text) for error in BAD_GAMES for text in BAD_GAMES[error]])
def test_invalid_game_is_rejected(error, text):
    with pytest.raises(error, match="^GGF game "):
        read_ggf_game(text)


def test_error_in_file_names_the_game():
    games = read_ggf([RECORD, "(;B[a1];)"])
    assert next(games).black == "Ann"
    with pytest.raises(IllegalMoveError, match="GGF game 2: move 1"):
        next(games)


@pytest.mark.parametrize(
    "changes",
    [
        *({"tags": tags} for tags in ({"PB": "Ann"}, {"no name": "x"}, {"PC": 5}, {"TY": "6"})),
        {"result": float("nan")},
        {"moves": ("a1",)},
    ],
    ids=str,
)
def test_writing_rejects_games_that_would_not_round_trip(changes):
    with pytest.raises((NotationError, IllegalMoveError)):
        write_ggf(Game(Position.initial(), **changes))
