"""Processes of the command line, for tests that must kill or interrupt them."""

import subprocess
import sys

#: Seconds after which a process is taken to hang; everything is waited for, nothing is timed.
PATIENCE = 300
REVERSI = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from play.cli import main; main()"
#: What `analyse --json` says.
ANALYSIS = {"move", "value", "depth", "exact", "pv", "nodes", "seconds"}


def launch(*arguments, **options):
    command = [sys.executable, "-c", REVERSI, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
