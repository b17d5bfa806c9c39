"""The table of commands: every help page, what it loads, hints for unknown names, and shell completion."""

import json
import re
import subprocess
import sys

import pytest

from play.cli.app import ALIASES, COMMANDS, GROUPS, application
from tests.conftest import REPOSITORY

#: Commands whose options come from a module that needs numpy, and those of the clone.
HEAVY = {"label", "match", "puzzles", "train bootstrap", "tune", "tournament", "winrate", "experiment", "measure"}
#: Prints the status of a command line and the heavy libraries that it has loaded.
LOADED = """
import contextlib, io, json, sys
from play.cli.app import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
print(json.dumps([name for name in ("numpy", "numba", "torch") if name in sys.modules]))
"""


def loaded(*arguments):
    """Return the heavy libraries that a command line loads."""
    run = [sys.executable, "-c", LOADED, *arguments]
    result = subprocess.run(run, capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert result.stderr == ""
    return json.loads(result.stdout)


@pytest.mark.parametrize("command", [*COMMANDS, *GROUPS, *ALIASES])
def test_the_help_of_every_command(reversi, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = reversi(*command.split(), "--help")
    assert (code, err) == (0, "")
    path = ALIASES.get(command, command)
    line = COMMANDS[path][2] if path in COMMANDS else GROUPS[path][1]
    assert line in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    arguments = re.search(r"─ Arguments ─", out)
    assert not arguments or re.search(r"Examples?: reversi ", out)


def test_the_help_of_all_commands_lists_them_and_loads_nothing(reversi):
    code, out, _ = reversi()
    assert (code, reversi("--help")[1]) == (0, out)
    assert all(name.split()[0] in out for name in COMMANDS)
    assert not any(alias in out for alias in ALIASES)
    assert loaded("--help") == []


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in HEAVY])
def test_the_help_of_a_command_loads_neither_numpy_nor_torch(command):
    assert loaded(*command.split(), "--help") == []


def test_the_version(reversi):
    code, out, _ = reversi("--version")
    assert (code, out[:10]) == (0, "reversi 0.")


@pytest.mark.parametrize(("typed", "meant"), [("pley", "play"), ("train ftt", "fit"), ("book shwo", "show")])
def test_an_unknown_command_gets_a_hint(reversi, typed, meant):
    code, out, err = reversi(*typed.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"did you mean '{meant}'" in err


def test_analyze_is_analyse(json_lines):
    assert json_lines("analyze", "start", "--depth", 1)[0]["depth"] == 1


def test_the_shell_completes_commands_options_and_choices():
    script = application().generate_completion(prog_name="reversi", shell="bash")
    for word in ("tournament", "alphazero", "--multi-pv", "round-robin"):
        assert word in script
