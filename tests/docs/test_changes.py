"""The page on what changed since 0.1 has all commands, with their options and arguments, that the command line has."""

import re

import typer

from play.cli import application
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "changes-0.2.md").read_text("utf-8")
ROW = re.compile(r"^\| `([^`]+)` \| (.+) \|$", re.M)


def commands(group, *path):
    """(name, what it takes) of all commands below *group* that do something, as the page's table writes them."""
    for name, command in group.commands.items():
        below, words = getattr(command, "commands", None), (*path, name)
        taken = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
        if not below or command.invoke_without_command:
            yield " ".join(words), {written(parameter) for parameter in taken if parameter.name != "help"}
        yield from commands(command, *words) if below else ()


def written(parameter):
    """``--depth/-d``, or an argument in capitals."""
    names = [*parameter.opts, *parameter.secondary_opts] if parameter.param_type_name == "option" else [parameter.name]
    return "/".join(names) if names[0].startswith("-") else names[0].upper()


def test_the_page_has_every_command_and_option():
    table = ROW.findall(PAGE.partition("## All options of 0.2")[2])
    said = {name: set(re.findall(r"`([^`]+)`", taken)) for name, taken in table}
    assert said == dict(commands(typer.main.get_command(application())))
