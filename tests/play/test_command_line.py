"""The command line as a whole: what it shows, how fast it is there, and what the shell can complete."""

import inspect
import os
import re
import subprocess
import sys

import pytest
import typer

from play.cli.app import application
from play.cli.options import complete_spec
from search import agents


def commands(group=None, path=()):
    """Every command with its path, those of subgroups included."""
    group = group or typer.main.get_command(application())
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield pytest.param(command, id=" ".join((*path, name)))


@pytest.mark.parametrize("command", list(commands()))
def test_every_command_says_what_it_does(command):
    """A first sentence with a full stop, an example, lines for 80 columns, and a word about every option."""
    text = inspect.cleandoc(command.help)
    first = text.splitlines()[0]
    assert first.endswith(".") or text.partition("\n\n")[0].endswith(".")
    takes_arguments = any(parameter.param_type_name == "argument" for parameter in command.params)
    assert not takes_arguments or re.search(r"Examples?: reversi ", text)
    _, _, rest = re.sub(r"\[/?b\]", "", text).partition("\n\n")
    assert all(len(line) <= 78 for line in rest.splitlines()), "these line breaks are kept in a window of 80 columns"
    for parameter in command.params:
        assert parameter.help, f"{parameter.name} has no help"


def test_reversi_alone_shows_what_can_be_done(reversi):
    status, out, _ = reversi()
    assert status in (0, 2)
    for word in ("Play", "Look into positions", "Learn", "Measure", "play", "gtp", "nboard", "match", "solve", "train"):
        assert word in out


def test_an_unknown_command_is_answered_with_a_hint(reversi):
    status, _, err = reversi("pley")
    assert status == 2
    assert "play" in err
    assert "Traceback" not in err


def in_another_process(program, **environment):
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert result.stderr == ""
    return result.stdout.split()


HELP = """
import contextlib, io, os, sys
from play.cli.app import application
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    application()(os.environ["ARGUMENTS"].split())
print(*sys.modules)
"""


def test_help_and_completion_load_neither_rules_nor_numba():
    heavy = {"numpy", "numba", "torch", "reversi_env", "search", "models", "train"}
    loaded = set(in_another_process("import sys, play.cli.app; print(*sys.modules)"))
    assert not loaded & {*heavy, "rich.console"}
    assert not set(in_another_process(HELP, ARGUMENTS="--help")) & heavy
    assert "torch" not in in_another_process(HELP, ARGUMENTS="rl --help")  # nor for the options of a training


def test_completion_in_the_shell():
    run = "from play.cli.app import main; main()"
    shell = {"_REVERSI_COMPLETE": "complete_bash", "_TYPER_COMPLETE_ARGS": ""}
    script = "import sys; sys.argv = ['reversi']; " + run
    assert in_another_process(script, **shell, COMP_WORDS="reversi pl", COMP_CWORD="1") == ["play"]
    names = in_another_process(script, **shell, COMP_WORDS="reversi gtp greedy", COMP_CWORD="2")
    assert names == ["greedy", "greedy-invincible"]


def test_analyze_is_analyse(reversi, json_lines):
    assert json_lines("analyze", "start", "--depth", 1)[0]["depth"] == 1
    assert "analyze" not in reversi("--help")[1]


def test_completion_of_specs():
    assert complete_spec("six") == ["six-factor", "sixteen-weight"]
    assert set(complete_spec("")) == set(agents.names())
    assert complete_spec("random:") == ["random:seed="]
    assert complete_spec("six-factor:d") == ["six-factor:depth="]
    assert "six-factor:depth=3,time=" in complete_spec("six-factor:depth=3,")
    assert "six-factor:depth=3,depth=" not in complete_spec("six-factor:depth=3,")
    assert complete_spec("nobody:") == []
