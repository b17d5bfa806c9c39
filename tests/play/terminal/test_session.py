"""`reversi play` with input from a pipe: every command and every way to end."""

import json
import os
import re
from datetime import datetime
from types import SimpleNamespace

import pytest

from play.game import Game
from play.terminal import saved_games as storage
from play.terminal.evaluation_text import bar_text
from play.terminal.screen import shows_colours
from reversi_env import Rules
from reversi_env.rules import BLACK, WHITE
from tests.play.cli.test_contract import check_refusal
from tests.search.agents.test_external import spec

AGENT = ("--agent", "six-factor:depth=1", "--adviser", "six-factor:depth=2")
ESCAPE = "\x1b"


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """A state folder for each test, so that no saved game of the user is changed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def play(reversi):
    """Play with these input lines; return the output."""

    def run(*lines, arguments=("--size", "4"), status=0, error=""):
        result = reversi("play", *AGENT, *arguments, stdin="".join(f"{line}\n" for line in lines))
        assert result[0] == status
        assert result[2] == error
        assert ESCAPE not in result[1]
        return result[1]

    return run


def moves_of(shown):
    """Return the transcript in the output of the last ``moves``."""
    return re.findall(r"> moves\n(\S+)", shown)[-1]


def saved_game():
    (path,) = storage.resumable_games()
    return json.loads(path.read_text())


@pytest.mark.parametrize("variant", ["normal", "reversed"])
@pytest.mark.parametrize("size", [4, 6])
def test_go_plays_the_whole_game(play, size, variant):
    shown = play(*["go"] * 20, "moves", arguments=("--size", size, "--variant", variant))
    game = Game.from_transcript(moves_of(shown), Rules(size, variant))
    assert game.is_over()
    assert ("passes" in shown or "you pass" in shown) == ("pass" in game.moves)
    winner = "the game is drawn" if game.winner() is None else f"{game.winner()} wins by {abs(game.score())}"
    assert f"Game over: {winner}, black {game.position.discs(BLACK)}, white {game.position.discs(WHITE)}" in shown
    assert not storage.resumable_games()  # finished games cannot be resumed


def test_a_failing_program_does_not_end_the_session(reversi, state):
    agent = spec("gtp", "--fail", "crash")
    lines = ["", "new black", "resign", "save mine.ggf", "quit"]
    arguments = ("--size", "4", "--watch", "--agent", agent, "--opponent", agent)
    status, shown, err = reversi("play", *arguments, stdin="".join(f"{line}\n" for line in lines))
    assert (status, err) == (0, "")
    assert shown.count("Segmentation fault, or so") == 2
    assert shown.count("(paused: press Enter to continue)") >= 2
    assert (state / "mine.ggf").is_file()


def test_errors_name_the_input_and_change_nothing(play):
    words = "a1|z9|pass|sing|undo|redo|level 0|new green|^[31m\xff|load|load nothing.ggf|save no/where.ggf"
    lines = [*words.split("|"), f"load x {'9' * 5000}"]
    _, *answers, moves = play(*lines, "moves").split("black> ")[:-1]
    for line, answer in zip(lines, answers, strict=True):
        assert line.split()[-1][:40] in answer
    assert "no moves yet" in moves


def test_hint_values_and_evaluation_bar(play):
    shown = play("hint", "values", "eval", "b1", "eval", "board", "help")
    assert max(map(len, shown.splitlines())) <= 80
    assert "Black: you. White: the computer (six-factor:depth=1)." in shown
    assert re.search(r"hint: (b1|a2|d3|c4) \([+-]\d+\.\d discs, (exact|depth \d+)", shown)
    assert len(re.findall(r"^  (?:b1|a2|d3|c4)  +[+-]\d+\.\d  #+$", shown, re.MULTILINE)) == 4
    assert len(re.findall(r"^black #*-* white  ", shown, re.MULTILINE)) >= 2
    assert "evaluation bar off" in shown


def test_the_evaluation_bar_starts_on_blacks_side():
    for value, turn, filled in ((0, BLACK, 20), (64, BLACK, 40), (64, WHITE, 0), (-64, BLACK, 0)):
        assert bar_text(value, turn, block_characters=False).count("#") == filled


def test_undo_and_redo_of_a_move(play):
    shown = play("b1", "moves", "undo", "moves", "redo", "moves")
    first, again = re.findall(r"> moves\n([a-d]\S+)", shown)
    assert first == again
    assert Game.from_transcript(first, Rules(4)).turn == BLACK  # the computer has answered
    assert f"taken back: {first[:2]} {first[2:4]}" in shown
    assert "no moves yet" in shown


def test_new_swap_level_and_resign(play):
    shown = play("b1", "new", "moves", "level 3", "swap", "moves", "resign", "b2", "new black", "moves")
    assert "the computer plays at level 3 now" in shown
    assert "you are white now" in shown
    assert "Game over: black wins by resignation" in shown
    assert "the game is over: expected new, undo, save or quit" in shown
    assert shown.count("no moves yet") == 2


@pytest.mark.parametrize("name", ["game.ggf", "game.txt", "my game.ggf"])
def test_save_and_load(play, name):
    shown = play("b1", "moves", f"save {name}", "new", "moves", f"load {name}", "moves")
    assert f"saved to {name}" in shown
    first, again = re.findall(r"> moves\n([a-d]\S+)", shown)
    assert first == again


def test_save_replaces_no_other_file_without_confirmation(play, state):
    (state / "old.ggf").write_text("old")
    shown = play(
        "b1", "save old.ggf", "save! old.ggf", "save old.ggf", "save a.txt", "load old.ggf", "save a.txt", "save"
    )
    for name in ("old.ggf", "a.txt"):
        assert f"file '{name}' exists: expected another name, or save! to replace it" in shown
    assert [shown.count(f"saved to {name}") for name in ("old.ggf", "a.txt")] == [2, 1]
    [found] = state.glob("reversi-*.ggf")
    assert Game.from_ggf((state / "old.ggf").read_text()).moves == Game.from_ggf(found.read_text()).moves


def test_one_of_several_games_in_a_file_is_loaded(play, state):
    games = [Game(Rules(6)), Game(Rules(4, "reversed"))]
    games[1].play("b1")
    (state / "many.ggf").write_text("\n".join(game.to_ggf() for game in games))
    shown = play("load many.ggf 2", "moves", "load many.ggf 3", arguments=("many.ggf", "--game", 1))
    assert "6x6, most discs win" in shown
    assert "loaded 1 move from game 2 of 2 in many.ggf" in shown
    assert "4x4, fewest discs win" in play(arguments=("many.ggf", "--game", 2))
    assert "game 3: expected a number from 1 to 2" in shown


def test_the_game_is_saved_after_every_move_and_resumed(play, reversi, monkeypatch):
    """Names of saved games may collide: in the same second, with the same process id."""
    moment = datetime(2026, 1, 1)
    monkeypatch.setattr(storage, "datetime", SimpleNamespace(now=lambda: moment))
    shown = play("b1", "moves")
    assert "Game saved. Resume it with: reversi play --resume" in shown
    assert Game.from_ggf(saved_game()["ggf"]).to_transcript() == moves_of(shown)
    for line in ("quit", "undo"):
        status, again, _ = reversi("play", "--resume", stdin=f"moves\n{line}\n")
        assert (status, moves_of(again)) == (0, moves_of(shown))
        assert "White: the computer (six-factor:depth=1)." in again


def test_resume_restores_sides_and_limits(play, reversi):
    play("b1", arguments=("--size", "4", "--colour", "both", "--time", "2", "--variant", "reversed"))
    assert (saved_game()["black"], saved_game()["white"], saved_game()["time"]) == (None, None, 2)
    status, shown, _ = reversi("play", "--resume", stdin="quit\n")
    assert status == 0
    assert "4x4, fewest discs win. Black: you. White: you." in shown


def test_a_new_level_is_saved_before_the_next_move(play):
    play("b1", "level 6", "quit")
    assert saved_game()["white"] == "human:level=6"


def test_resume_refuses_options_of_the_saved_game(play, reversi):
    play("b1")
    before = saved_game()
    for option in ("--size 6", "--colour white", "--agent greedy", "--depth 2", "--watch", "game.ggf"):
        check_refusal(reversi, ("play", "--resume", *option.split()), option.split()[0])
    assert saved_game() == before


def test_sessions_do_not_change_each_others_games(play, reversi):
    play("b1")
    first = storage.resumable_games()[0]
    os.utime(first, (1, 1))
    first = first.rename(first.with_name("another.json"))  # as if by another process
    shown = play("c4", "moves")
    assert "There is an unfinished game" in shown
    _, again, _ = reversi("play", "--resume", stdin="moves\nresign\nquit\n")
    assert moves_of(again) == moves_of(shown)
    assert storage.resumable_games() == [first]


def test_the_number_of_saved_games_is_limited():
    storage.state_folder().mkdir(parents=True)
    for number in range(storage.MAX_KEPT + 5):
        path = storage.state_folder() / f"{number}.json"
        path.write_text("{}")
        os.utime(path, (number, number))
    left = storage.state_folder() / ".99.json.part"  # left by a killed process
    left.write_text("{")
    assert len(storage.resumable_games()) == storage.MAX_KEPT
    assert not (storage.state_folder() / "0.json").exists()
    assert not left.exists()


@pytest.mark.parametrize("text", [None, "", "{}", "[1]", '{"ggf": 3}', '{"ggf": "(;"}', "\x00"])
def test_missing_or_damaged_saved_games_are_one_line(reversi, text):
    if text is not None:
        storage.state_folder().mkdir(parents=True)
        (storage.state_folder() / "game.json").write_text(text)
    check_refusal(reversi, ("play", "--resume"), "")


@pytest.mark.parametrize("folder", [".", "reversi/games"])
def test_an_unwritable_folder_does_not_stop_the_game(reversi, state, folder):
    place = state / "state" / folder
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("a file where the folder should be")
    status, shown, err = reversi("play", *AGENT, "--size", "4", stdin="b1\nmoves\nquit\n")
    assert status == 0
    assert err.startswith("reversi: the game is not saved")
    assert err.count("\n") == 1
    assert "Game saved" not in shown
    assert len(moves_of(shown)) >= 4


def test_colours_need_a_capable_terminal():
    def is_coloured(encoding="utf-8", is_terminal=True, **environment):
        stream = SimpleNamespace(encoding=encoding, isatty=lambda: is_terminal)
        return shows_colours(stream, {"TERM": "xterm-256color"} | environment)

    assert is_coloured()
    assert is_coloured(NO_COLOR="")
    for case in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"is_terminal": False}, {"encoding": "ascii"}):
        assert not is_coloured(**case), case
