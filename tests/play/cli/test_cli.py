"""The command line as a contract: stable JSON keys, clean standard output, one-line errors."""

import json
import os
import signal
import subprocess
import sys
import threading
import tomllib

import pytest

from play.__main__ import INTERRUPTED
from play.cli import app as cli
from play.cli import interrupt as interruptible
from tests.conftest import REPOSITORY


def timeless(result):
    return {key: value for key, value in result.items() if "seconds" not in key}


#: Ctrl-C at the moment when a module is looked for.
INTERRUPTED_IMPORT = """
import signal, sys

class Interrupting:
    def find_spec(name, *_):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting)
sys.argv = ["reversi", "perft", "--size", "4", "--depth", "2"]
from {entry} import main
main()
"""


@pytest.mark.parametrize("module", ["play.cli.app", "cyclopts", "play.cli.measure.perft"])
def test_ctrl_c_while_the_command_is_loaded_is_no_traceback(module):
    script = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]["reversi"]
    entry, _, function = script.partition(":")
    assert function == "main"
    program = INTERRUPTED_IMPORT.format(module=module, entry=entry)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (INTERRUPTED, "", "")
    assert interruptible.INTERRUPTED == INTERRUPTED == 130


#: A command that ends in one way or another, and a Ctrl-C that comes when it is over already.
INTERRUPTED_END = """
import atexit, signal, sys, types

def ended():
    raise {ending}

signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(signal.raise_signal, signal.SIGINT)
sys.modules["play.cli.app"] = types.ModuleType("play.cli.app")
sys.modules["play.cli.app"].main = ended
from play.__main__ import main
main()
"""


@pytest.mark.parametrize(("ending", "status"), [("KeyboardInterrupt", INTERRUPTED), ("SystemExit(0)", 0)])
def test_ctrl_c_pressed_again_while_the_command_ends_changes_nothing(ending, status):
    program = INTERRUPTED_END.format(ending=ending)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=REPOSITORY)
    assert (result.returncode, result.stdout, result.stderr) == (status, "", "")


@pytest.mark.parametrize(("stream", "arguments"), [("stdin", ("gtp", "greedy")), ("stdout", ("--version",))])
def test_closed_streams_are_empty_ones(monkeypatch, stream, arguments):
    """`reversi … <&-` and `>&-`, as some programs start others."""
    monkeypatch.setattr(sys, stream, None)
    monkeypatch.setattr(sys, "argv", ["reversi", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    getattr(sys, stream).close()
    assert not ended.value.code


def test_characters_that_a_terminal_lacks_are_question_marks():
    command = [sys.executable, "-m", "play", "match", "greedy", "random", "--games", "2", "--size", "4"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    result = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert "%?" in result.stdout  # from … to


def test_who_has_seen_enough_may_close_the_pipe():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "play", "solve", "-", "--table", "1"]
    problem = "OX--OXX-OOX--XXX O;\n"
    result = subprocess.run(
        command, input=problem, stdout=writing, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY, check=False
    )
    os.close(writing)
    assert (result.returncode, result.stderr) == (cli.BROKEN_PIPE, "")


def test_the_package_is_the_command_too():
    result = subprocess.run([sys.executable, "-m", "play", "perft", "--size", "4", "--depth", "1"], capture_output=True)
    assert result.returncode == 0, result.stderr


def test_a_ctrl_c_that_python_swallows_is_not_lost(monkeypatch):
    """One that lands in a destructor is only reported by Python; the command must end all the same."""

    class Swallowing:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)
            unreachable.append("the interrupt came after the destructor")

    def command(arguments):
        Swallowing()
        threading.Event().wait(60)
        unreachable.append("the interrupt was lost")

    unreachable = []
    monkeypatch.setattr(cli, "application", lambda arguments: command)
    with pytest.raises(KeyboardInterrupt):
        cli.main()
    assert not unreachable


def test_perft(reversi, json_lines):
    [result] = json_lines("perft", "--size", 6, "--depth", 7)
    assert timeless(result) == {"size": 6, "depth": 7, "leaves": 47740, "known": 47740}
    assert result["seconds"] >= 0
    assert "47,740  (equals the table)" in reversi("perft", "--size", 6, "--depth", 7)[1]


def test_match_is_paired_and_reproducible(json_lines):
    arguments = ("match", "six-factor:table=0.1", "greedy", "--games", 20, "--size", 6, "--depth", 2, "--seed", 4)
    [first], [second] = json_lines(*arguments), json_lines(*arguments)
    assert timeless(first) == timeless(second)
    assert (first["a"], first["b"]) == ("six-factor:table=0.1", "greedy")
    assert first["wins"] + first["draws"] + first["losses"] == first["games"] == 20
    assert 0.5 < first["interval"][0] < first["score"] <= first["interval"][1]
    assert first.keys() == {
        *("a", "b", "games", "wins", "draws", "losses", "score", "interval", "discs_per_game"),
        *("seconds_per_move_a", "seconds_per_move_b", "forfeits_a", "forfeits_b", "size", "variant", "seed"),
    }
    assert (first["size"], first["variant"], first["seed"]) == (6, "normal", 4)


def test_a_match_on_a_small_board_begins_with_two_plies(json_lines):
    arguments = ("match", "greedy", "discs:depth=1", "--size", 4, "--games", 8)
    [default], [two] = json_lines(*arguments), json_lines(*arguments, "--plies", 2)
    assert timeless(default) == timeless(two)


@pytest.mark.slow
def test_a_match_on_processes_and_from_other_openings(json_lines, tmp_path):
    openings = tmp_path / "openings.txt"
    openings.write_text("c2d2\nc2b2\n")
    arguments = ("match", "greedy", "random", "--size", 6, "--games", 6, "--openings")
    results = [timeless(*json_lines(*arguments, openings, "--workers", workers)) for workers in (1, 2)]
    assert results[0] == results[1]
    assert results[0]["wins"] + results[0]["draws"] + results[0]["losses"] == 6


def test_match_prints_a_table(reversi):
    code, out, err = reversi("match", "random", "greedy", "--games", 4, "--size", 4, "--variant", "reversed")
    assert (code, err) == (0, "")
    assert "4x4 reversed, 4 games" in out


@pytest.mark.parametrize("command", [(), ("bench",), ("experiment",)])
def test_a_command_without_arguments_shows_its_help_alone(reversi, command):
    _, out, err = reversi(*command)
    assert "Usage: reversi" in out + err
    assert "(see" not in err


@pytest.mark.slow
def test_bench_rules_measures_something(monkeypatch, capsys):
    """The whole command with small work: plausible rates, a cold start slower than a warm one, all keys."""
    from benchmarks import commands as command
    from benchmarks import rules as speed

    perft, plies = speed.perft_leaves_per_second, speed.random_plies_per_second
    monkeypatch.setattr(speed, "perft_leaves_per_second", lambda: perft(depth=7, repeats=2))
    monkeypatch.setattr(speed, "random_plies_per_second", lambda parallel=False: plies(2000, 2, parallel=parallel))
    command.rules(as_json=True)
    result = json.loads(capsys.readouterr().out)
    assert result["perft_leaves_per_second"] > 1e6
    assert result["random_plies_per_second"] > 1e5
    assert result["random_plies_per_second_all_cores"] > 1e5
    assert result["compile_seconds_cold"] > result["compile_seconds_warm"] > 0
    assert result["cpu"]
    assert result["versions"]["numba"]
