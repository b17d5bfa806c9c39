"""`reversi experiment` and `reversi measure`: questions answered by measuring, in `studies` of the clone that one is in."""

from play.cli.clone import loaded_from_clone

commands = loaded_from_clone("studies")
experiment, measure = commands.experiment, commands.measure
