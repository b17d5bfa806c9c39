"""The command line: help pages and their imports, system errors, closed streams, progress without a terminal."""

import os
import re
import subprocess
import sys

import pytest

from play.cli import app as cli
from play.cli import output
from play.cli.app import ALIASES, COMMANDS, GROUPS
from tests.conftest import REPOSITORY
from tests.oracles.processes import output_of

#: Shows the help of every command in one process, and prints which commands import heavy libraries.
LOADED = """
import contextlib, io, sys
from play.cli import clone
from play.cli.app import CLONE_COMMANDS, COMMANDS, application
loaded = {}
studies = [f"{group} {name}" for group in CLONE_COMMANDS for name in getattr(clone, group) if name[0] != "-"]
for path in ["", *COMMANDS, *studies]:
    arguments = [*path.split(), "--help"]
    with contextlib.redirect_stdout(io.StringIO()):
        application(arguments)(arguments)
    for name in {"numpy", "numba", "torch"} & sys.modules.keys() - loaded.keys():
        loaded[name] = path
print(loaded)
"""


@pytest.mark.parametrize("command", [*COMMANDS, *GROUPS, *ALIASES])
def test_every_command_has_a_help_page(reversi, command):
    code, out, err = reversi(*command.split(), "--help")
    assert (code, err) == (0, "")
    path = ALIASES.get(command, command)
    assert (COMMANDS[path].line if path in COMMANDS else GROUPS[path]) in " ".join(out.replace("│", "").split())
    assert "BOOL" not in out.upper().split()
    assert "─ Arguments ─" not in out or re.search(r"Examples?: reversi ", out)


def test_help_loads_no_heavy_library():
    assert output_of(LOADED) == ["{}"]


def test_the_main_help_lists_all_commands(reversi):
    code, out, _ = reversi()
    assert (code, reversi("--help")[1]) == (0, out)
    assert all(name.split()[0] in out for name in [*COMMANDS, "--install-completion"])
    assert not any(alias in out for alias in ALIASES)
    assert "Usage: reversi bench" in reversi("bench")[1]
    assert "Board size: 4, 6 or 8. [default: 8]" in reversi("perft", "--help")[1]
    assert reversi("--version")[1].startswith("reversi 0.")


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (PermissionError(13, "Permission denied", "x.csv"), 2, "reversi: 'x.csv': permission denied\n"),
        (OSError(28, "No space left on device", "x.csv"), 1, "reversi: 'x.csv': no space left on device\n"),
        (MemoryError("7 PiB"), 1, "reversi: not enough memory: expected a smaller job (7 PiB)\n"),
    ],
)
def test_system_errors_are_one_line(reversi, monkeypatch, error, status, line):
    def refused(work):
        raise error

    monkeypatch.setattr("play.interrupt.abandonable", refused)
    assert reversi("perft", "--size", 4, "--depth", 1) == (status, "", line)


@pytest.mark.parametrize(("stream", "arguments"), [("stdin", ("gtp", "greedy")), ("stdout", ("--version",))])
def test_closed_streams_count_as_empty(monkeypatch, stream, arguments):
    """Some programs start others with closed streams, as `reversi … <&-` and `>&-`."""
    monkeypatch.setattr(sys, stream, None)
    monkeypatch.setattr(sys, "argv", ["reversi", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    getattr(sys, stream).close()
    assert not ended.value.code


@pytest.mark.slow
def test_unsupported_characters_become_question_marks():
    command = [sys.executable, "-m", "play", "match", "greedy", "random", "--games", "2", "--size", "4"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    result = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert "%?" in result.stdout  # the character … is replaced


@pytest.mark.parametrize("seconds", [0, 1000])
def test_progress_without_a_terminal_is_printed_as_lines(monkeypatch, capsys, seconds):
    monkeypatch.setattr(output, "LINE_SECONDS", seconds)
    with output.progress_bar() as show:
        for done in range(2):
            show("games", 1000 * done, 2000, "49 %")
        show("others", 3, None)
    lines = ["games: 0 of 2,000 49 %", "games: 1,000 of 2,000 49 %", "others: 3"]
    assert capsys.readouterr().err.splitlines() == ([] if seconds else lines)


def test_closed_pipe_ends_the_command_quietly():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "play", "solve", "-", "--table", "1"]
    problem = "OX--OXX-OOX--XXX O;\n"
    result = subprocess.run(command, input=problem, stdout=writing, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY)
    os.close(writing)
    assert (result.returncode, result.stderr) == (cli.BROKEN_PIPE, "")
