"""`reversi bench`: how fast the parts are on this machine, measured by `benchmarks` of the clone that one is in."""

from play.cli.clone import loaded_from_clone

app = loaded_from_clone("benchmarks").app
