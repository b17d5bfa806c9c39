"""Processes of the command line, for tests that must kill or interrupt them."""

import itertools
import os
import subprocess
import sys
import time
from fnmatch import fnmatch

#: Seconds after which a process is taken to hang; everything is waited for, nothing is timed.
PATIENCE = 300
REVERSI = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from play.cli import main; main()"
#: What `analyse --json` says.
ANALYSIS = {"move", "value", "depth", "exact", "pv", "nodes", "seconds"}


def launch(*arguments, **options):
    command = [sys.executable, "-c", REVERSI, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def wait_until(condition, job=None, pause=0.01):
    """Wait for something that must come about, *pause* seconds between two looks; before *job* ends, if one is named."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert job is None or job.poll() is None, job.communicate()
        assert time.monotonic() < deadline
        time.sleep(pause)


# --- jobs that cannot end too soon ----------------------------------------------------------------


def held(code, name, count):
    """The code of a job that waits before it writes the *count*-th file of a name (a pattern), until its standard input ends.

    However fast the machine is, and however long the test is held up, the job is still there to be killed.
    """
    return f"from tests.cli.jobs import hold; hold({name!r}, {count})\n{code}"


def hold(name, count):
    """In the job itself, and not in the processes that it starts."""
    found = itertools.count(1)

    def look(event, arguments):
        if fnmatch(_about_to_be_written(event, arguments), name) and next(found) == count:
            os.read(0, 1)

    sys.addaudithook(look)


def _about_to_be_written(event, arguments):
    """The name of the file that is being put in its place or opened for writing; empty for all else."""
    if event == "os.rename":
        path = arguments[1]
    elif event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        path = arguments[0]
    else:
        return ""
    return "" if isinstance(path, int) else os.path.basename(os.fsdecode(path))  # noqa: PTH119 - called very often
