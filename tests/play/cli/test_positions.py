"""Positions of all commands: every form of a position, as an argument, in a file and on standard input."""

import pytest

from play.game import Game
from reversi_env import BLACK, WHITE, Position, Rules
from search import evaluators, solve
from tests.oracles.strategies import wthor_file, wthor_record
from tests.play.cli.test_contract import check_refusal

#: Games whose last positions all commands answer; `book show` needs 8x8, and `solve` a small board.
LARGE = Game.from_transcript("f5d6c3d3")
SMALL = Game.from_transcript("b1a1a2c1", Rules(4))
#: The commands with options for short runs.
COMMANDS = {
    "analyse": (LARGE, ("--agent", "six-factor", "--depth", 0)),
    "book show": (LARGE, ()),
    "play": (LARGE, ("--agent", "random", "--colour", "both", "--plain")),
    "solve": (SMALL, ("--table", 1)),
}


def texts(game):
    """Return the position after a game, black to move, in every form."""
    board = game.position.to_text()
    return {"moves": game.to_transcript(), "GGF": game.to_ggf(), "board": board, "OBF": f"{board} X;"}


@pytest.fixture
def answer(reversi, json_lines, tmp_path, monkeypatch):
    """Run a command and return what it prints about a position, without times."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(command, text, *options, stdin=""):
        words = [*command.split(), text, *COMMANDS[command][1], *options]
        if command == "play":
            status, out, _ = reversi(*words)
            assert status == 0
            rows = [line[1:] for line in out.splitlines() if line[:1].isdigit() and line[1:2] == " "]
            return "".join(mark if mark in "XO" else "-" for mark in "".join(rows) if mark in "XO.+*")
        [result] = json_lines(*words, stdin=stdin)
        return {key: value for key, value in result.items() if key not in ("line", "nodes", "seconds")}

    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_reads_every_form(command, answer, tmp_path):
    game, _ = COMMANDS[command]
    expected = answer(command, game.position.to_text())
    size = ("--size", game.rules.size)
    for name, text in texts(game).items():
        (tmp_path / name).write_text(f"{text}\n")
        assert answer(command, text, *size) == expected, name
        assert answer(command, tmp_path / name, *size) == expected, name
        if command != "play":  # reads moves from standard input
            assert answer(command, "-", *size, stdin=f"{text}\n") == expected, name


def test_positions_are_read_correctly(answer, reversi, tmp_path, monkeypatch):
    value = evaluators.get_evaluator("six-factor").static_value
    assert answer("analyse", "f5d6c3d3") == {"value": value(LARGE.position)}
    assert answer("analyse", "start", "--variant", "reversed", "--size", 6) == {
        "value": value(Position.initial(Rules(6, "reversed")))
    }
    for after in range(5):
        position = LARGE.positions[after]
        assert answer("analyse", "f5d6c3d3", "--after", after) == {"value": value(position)}
        assert answer("play", "f5d6c3d3", "--after", after) == position.to_text()
    assert reversi("play", "-")[:2] == (2, "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g2.txt").write_text("f5\nd6\n")  # file names may look like moves
    assert answer("analyse", "g2.txt") == answer("analyse", "f5d6")


def test_games_of_a_file_are_selected_by_number(answer, json_lines, reversi, tmp_path):
    file, wthor = tmp_path / "games.ggf", tmp_path / "games.wtb"
    games = [LARGE, Game.from_transcript("f5f6e6f4")]
    file.write_text("".join(f"{game.to_ggf()}\n" for game in games))
    wthor.write_bytes(wthor_file(*(wthor_record(game.moves) for game in games)))
    for source in (file, wthor):
        for number, game in enumerate(games, start=1):
            for command in ("analyse", "book show", "play"):
                assert answer(command, source, "--game", number) == answer(command, game.to_transcript())
            [review] = json_lines("review", source, "--game", number, "--depth", 2)
            assert [move["move"] for move in review["moves"]] == list(game.moves)
        assert "game 3" in reversi("analyse", source, "--game", 3)[2]
        assert f"the first of 2 games in {source}" in reversi("analyse", source, "--depth", 0, "--agent", "discs")[2]


def test_the_side_to_move_on_a_board(answer):
    board = SMALL.positions[1].to_text()
    assert board.startswith("-")
    for side in (BLACK, WHITE):
        position = Position.from_text(board, side)
        assert answer("solve", board, "--side", side)["move"] in position.legal_moves()
        assert answer("solve", board, "--side", side)["score"] == solve(position).score


def test_options_that_contradict_a_file_are_refused(reversi, tmp_path):
    file = tmp_path / "game.ggf"
    file.write_text(LARGE.to_ggf())
    for command in ("analyse", "review"):
        for options in (("--variant", "reversed"), ("--size", 6)):
            check_refusal(reversi, (command, file, *options), options[0])


@pytest.mark.parametrize("command", ["analyse", "book show", "solve"])
def test_a_file_of_many_positions_is_answered_line_by_line(command, reversi, json_lines, tmp_path):
    game, options = COMMANDS[command]
    line = texts(game)["OBF"]
    file = tmp_path / "positions.obf"
    file.write_text(f"\ufeff% a comment\n\n{line}\nhello\n{line}\r\n")
    results = json_lines(*command.split(), file, *options, status=1)
    assert [result["line"] for result in results] == [3, 4, 5]
    assert ["error" in result for result in results] == [False, True, False]
    code, out, err = reversi(*command.split(), file, *options)
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith("line 4: ")
    assert "line 5" in out


@pytest.mark.parametrize(("bad", "last"), [(5, "line 5:"), (6, "… and 1 more line "), (30, "… and 25 more lines ")])
def test_only_the_first_bad_lines_are_shown(bad, last, reversi, json_lines):
    command, text = ("analyse", "-", "--agent", "discs", "--depth", 0), "no position\n" * bad
    code, out, err = reversi(*command, stdin=text)
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == min(bad, 6)
    assert err.splitlines()[-1].startswith(last)
    assert len(json_lines(*command, stdin=text, status=1)) == bad  # JSON has all errors


def test_a_file_without_positions_is_reported(reversi, tmp_path):
    file = tmp_path / "positions"
    file.write_text("% nothing\n\n")
    for command in ("solve", "analyse"):
        status, out, err = reversi(command, file)
        assert (status, out, err.count("\n"), str(file) in err) == (0, "", 1, True)
