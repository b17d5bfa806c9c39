"""One reader of positions for all commands that take one."""

import pytest

BOARD = "OXOOOOOOXXXOOXOXXXOOXXXXXXXXXXXXOXXXXXXXOOXXXOXXOOXX-OX-OXOO--XX"
OBF = f"{BOARD} X;"
GGF = (
    "(;GM[Othello]PC[x]DT[2020]PB[a]PW[b]TY[8]BO[8 -------- -------- -------- ---O*--- ---*O--- -------- -------- "
    "-------- *]B[F5]W[D6]B[C3];)"
)
#: Texts of one position after f5d6c3, and of one with four empties.
GAMES = {"moves": "f5d6c3", "ggf": GGF}
BOARDS = {"board": BOARD, "obf": OBF}


def analysed(json_lines, *arguments, stdin=""):
    """Return the move and value of the only position."""
    [result] = json_lines("analyse", *arguments, "--depth", 3, stdin=stdin)
    return result["move"], result["value"]


@pytest.mark.parametrize("texts", [GAMES, BOARDS])
def test_a_position_is_the_same_typed_in_a_file_and_on_standard_input(json_lines, tmp_path, texts):
    expected = analysed(json_lines, next(iter(texts.values())))
    for name, text in texts.items():
        (tmp_path / name).write_text(f"{text}\n")
        assert analysed(json_lines, text) == expected
        assert analysed(json_lines, tmp_path / name) == expected
        assert analysed(json_lines, "-", stdin=f"{text}\n") == expected


def test_all_commands_read_the_same(json_lines, tmp_path):
    file = tmp_path / "game.ggf"
    file.write_text(GGF + "\n" + GGF.replace("B[C3]", "B[C4]") + "\n")
    by_moves, by_file = (json_lines("book", "show", *asked) for asked in (["f5d6c4"], [file, "--game", 2]))
    assert by_moves == by_file
    reviews = [json_lines("review", *asked, "--depth", 2) for asked in (["f5d6c4"], [file, "--game", 2])]
    assert reviews[0][0]["moves"] == reviews[1][0]["moves"]
    [solved] = json_lines("solve", BOARD, "--table", 1)
    assert solved["empties"] == 4


def test_a_recorded_tournament_game(json_lines, external_data):
    file = next(iter(sorted(external_data.glob("**/*.wtb"))))
    start = json_lines("analyse", "start", "--depth", 2)
    assert json_lines("analyse", file, "--game", 2, "--after", 0, "--depth", 2)[0]["value"] == start[0]["value"]


def test_a_board_that_begins_with_a_hyphen(json_lines):
    assert analysed(json_lines, "-XO-XXXXOOOO-OX-", "--side", "white")[0] in {"a1", "d1", "a4", "d4", "pass"}
    assert json_lines("solve", "-XO-XXXXOOOO-OX-", "--table", 1)[0]["line"] == 1


@pytest.mark.parametrize("command", ["analyse", "solve"])
def test_lines_that_cannot_be_read_are_reported_with_their_number(reversi, json_lines, tmp_path, command):
    file = tmp_path / "positions.obf"
    file.write_text(f"% a comment\n{OBF}\nhello\n{OBF}\n")
    results = json_lines(command, file, status=1)
    assert [result["line"] for result in results] == [2, 3, 4]
    assert "error" in results[1]
    code, out, err = reversi(command, file)
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith("line 3: ")
    assert "line 4" in out
