"""Ending a process with ``kill -9`` at random moments, and starting it again."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress

from tests.cli.jobs import PATIENCE, held
from tests.conftest import REPOSITORY


def run_with_kills(arguments, folder, kills, seed, longest, hold=None):
    """Start ``python arguments`` in *folder* and kill it, *kills* times: at a random moment soon after it has written something.

    Then let it finish. How many of the kills met a process that was still running: all of them with *hold*, the name and
    the number of the file that each of those processes waits with (`held`). The arguments are ``-c``, code, others then.
    """
    if hold is not None:
        first, code, *others = arguments
        assert first == "-c"
        killed = [first, held(code, *hold), *others]
    else:
        killed = arguments
    moments, met = random.Random(seed), 0
    for _ in range(kills):
        before = snapshot(folder)
        job = start(killed, folder)
        try:
            deadline = time.monotonic() + PATIENCE
            while snapshot(folder) == before and job.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            with suppress(subprocess.TimeoutExpired):
                job.wait(moments.uniform(0, longest))
        finally:
            job.kill()
            _, errors = job.communicate()
        assert job.returncode in (0, -signal.SIGKILL), errors
        met += job.returncode != 0
    job = start(arguments, folder)
    _, errors = job.communicate(timeout=PATIENCE)
    assert job.returncode == 0, errors
    return met


def snapshot(folder):
    """What is there, and since when."""
    found = {}
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            found[path] = path.stat().st_mtime_ns
    return found


def start(arguments, folder):
    command, environment = [sys.executable, *map(str, arguments)], {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, **pipes)
