"""`reversi bench`: how fast the parts are on this machine, measured by `benchmarks` of the clone that one is in."""

from importlib import import_module

from play.commands.clone import find_in_clone

find_in_clone("benchmarks")
app = import_module("benchmarks.command").app
