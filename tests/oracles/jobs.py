"""Processes of the command line, for tests that must kill or interrupt them."""

import itertools
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from tests.conftest import REPOSITORY

#: Seconds after which a process is taken to hang; everything is waited for, nothing is timed.
PATIENCE = 300
REVERSI = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from play.__main__ import main; main()"
)
#: What `analyse --json` says.
ANALYSIS = {"move", "value", "depth", "exact", "confidence", "pv", "nodes", "seconds"}


def launch(*arguments, code=REVERSI, env=os.environ, **options):
    """``python -c code arguments``, by default the command line; its streams are pipes unless *options* say otherwise."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, text=True, env={**env, "PYTHONPATH": str(REPOSITORY)}, **pipes | options)


@contextmanager
def launched(*arguments, **options):
    """`launch`; the process is gone afterwards, come what may."""
    job = launch(*arguments, **options)
    try:
        yield job
    finally:
        job.kill()
        job.communicate()


def interrupted(condition, *arguments, **options):
    """Exit status, standard output and standard error of a process that gets a Ctrl-C when *condition* holds."""
    with launched(*arguments, **options) as job:
        wait_until(condition, job)
        job.send_signal(signal.SIGINT)
        out, err = job.communicate(timeout=PATIENCE)
    return job.returncode, out, err


def wait_until(condition, job=None, pause=0.01):
    """Wait for something that must come about, *pause* seconds between two looks; before *job* ends, if one is named."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert job is None or job.poll() is None, job.communicate()
        assert time.monotonic() < deadline
        time.sleep(pause)


def files(folder):
    """The bytes of all files in *folder*, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def children_of(pid):
    """Process ids of a process's children."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid:
            found.append(int(path.parent.name))
    return found


# --- jobs that cannot end too soon ----------------------------------------------------------------


def held(code, name, count):
    """The code of a job that waits before it writes the *count*-th file of a name (a pattern), until its standard input ends.

    However fast the machine is, and however long the test is held up, the job is still there to be killed.
    """
    return f"from tests.oracles.jobs import hold; hold({name!r}, {count})\n{code}"


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
