"""Options mean the same everywhere, and what is typed wrong is named with what was expected."""

import typer

from play.cli import app as cli

#: Options that may be cut to a letter wherever they are.
SHORT = {
    *("--agent", "--colour", "--depth", "--empties", "--games", "--level", "--out", "--positions", "--size"),
    *("--threads", "--variant", "--workers"),
}


def all_options(command, path="reversi"):
    """(command, names of the option) for every option of the command and those below it."""
    for parameter in command.params:
        names = [name for name in parameter.opts if name.startswith("-")]
        if names:
            yield path, names
    for name, below in getattr(command, "commands", {}).items():
        yield from all_options(below, f"{path} {name}")


def test_a_letter_means_the_same_option_in_every_command():
    meanings = {}
    for path, names in all_options(typer.main.get_command(cli.application())):
        for letter in (name for name in names if not name.startswith("--")):
            meanings.setdefault(letter, {}).setdefault(names[0], []).append(path)
    assert meanings["-g"].keys() == {"--games"}
    assert {letter: uses for letter, uses in meanings.items() if len(uses) > 1} == {}


def test_an_option_that_has_a_letter_has_it_in_every_command():
    bare = [
        (path, names)
        for path, names in all_options(typer.main.get_command(cli.application()))
        if names[0] in SHORT and len(names) == 1 and path != "reversi bench server"
    ]
    assert bare == []


def test_no_name_is_cut_in_a_help_of_80_columns(reversi, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    options = {}
    for path, names in all_options(typer.main.get_command(cli.application())):
        options.setdefault(path, []).extend(names)
    longest = sorted(options, key=lambda path: max(map(len, options[path])))[-6:]
    assert "reversi rl" in longest
    for path in longest:
        words = reversi(*path.split()[1:], "--help")[1].split()
        assert set(options[path]) <= set(words), path


def test_the_version(reversi):
    code, out, _ = reversi("--version")
    assert code == 0
    assert out.startswith("reversi 0.")
