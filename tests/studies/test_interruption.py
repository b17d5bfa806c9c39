"""Ctrl-C ends an experiment at once, even inside a kernel."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.jobs import PATIENCE
from tests.conftest import REPOSITORY


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_ctrl_c_ends_an_experiment_that_would_take_minutes(tmp_path):
    """A thousand million games take minutes; the interrupt must not wait for the kernel."""
    subprocess.run(
        [sys.executable, "-m", "play.cli", "experiment", "breadth", "--size", "4", "--games", "100"],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )  # the kernel is compiled now, if it was not before
    job = subprocess.Popen(
        [sys.executable, "-m", "play.cli", "experiment", "breadth", "--games", "1000000000"],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while _processor_seconds(job.pid) < 4:  # well inside the kernel
            assert time.monotonic() < deadline
            assert job.poll() is None
            time.sleep(0.1)
        job.send_signal(signal.SIGINT)
        out, err = job.communicate(timeout=PATIENCE)
    finally:
        job.kill()
    assert job.returncode == 130, err
    assert (out, err) == ("", "reversi: interrupted\n")


def _processor_seconds(pid: int) -> float:
    """Processor time of a process; where the system does not tell, a wait stands in for it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        time.sleep(5)
        return 10.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
