"""A two-node Ray cluster for the tests that need one."""

import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.oracles.jobs import PATIENCE

collect_ignore = ["failing_workers.py", "nodes.py"]  # Programs of other processes that import Ray.


@pytest.fixture(scope="session")
def ray_environment():
    """Environment variables with Ray's files and token in a temporary folder; sockets need its short name."""
    pytest.importorskip("ray", reason="Ray is not installed: the extra 'cluster' has it")
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    token = folder / "token"
    token.write_text(uuid.uuid4().hex)
    named = {"RAY_TMPDIR": folder, "RAY_AUTH_TOKEN_PATH": token, "RAY_AUTH_MODE": "token", "PYTHONPATH": REPOSITORY}
    environment = {**os.environ, **{name: str(value) for name, value in named.items()}, "RAY_USAGE_STATS_ENABLED": "0"}
    environment["RAY_worker_niceness"] = "0"  # otherwise its workers starve on a busy machine
    environment.pop("RAY_ADDRESS", None)
    yield environment
    shutil.rmtree(folder, ignore_errors=True)


class TwoNodes:
    """The cluster of `tests.train.jobs.nodes`: a head with one CPU, and a second machine that can be killed."""

    def __init__(self, environment):
        self.environment = environment
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        command = [sys.executable, "-m", "tests.train.jobs.nodes"]
        self._process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, text=True, **pipes)
        self.address, head = self._process.stdout.readline().split()
        self.head = int(head)

    def add(self):
        return int(self._request("add"))

    def kill(self):
        assert self._request("kill") == "killed"

    def close(self):
        self._process.communicate(timeout=PATIENCE)

    def _request(self, order):
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@pytest.fixture(scope="session")
def two_nodes(ray_environment):
    nodes = TwoNodes(ray_environment)
    yield nodes
    nodes.close()


def jobs_of(raylet):
    """Return the process ids of a raylet's workers that have had a job, by the process title that Ray sets."""
    processes = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            parent = next(line for line in status.read_text().splitlines() if line.startswith("PPid:"))
            words = (status.parent / "cmdline").read_bytes()
            if int(parent.split()[1]) == raylet and b"reversi job" in words:
                processes.append(int(status.parent.name))
    return processes
