"""`reversi experiment` and `reversi measure`: questions answered by measuring, in `studies` of the clone that one is in."""

from importlib import import_module

from play.commands.clone import find_in_clone

find_in_clone("studies")
commands = import_module("studies.commands")
experiment, measure = commands.experiment, commands.measure
