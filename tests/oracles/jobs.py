"""Processes of the command line that tests interrupt, pause or kill at a chosen step, and the files that they write."""

import atexit
import csv
import io
import itertools
import json
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from tests.conftest import REPOSITORY

#: Timeout in seconds for every wait. Tests never measure times.
PATIENCE = 300
REVERSI = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from play.__main__ import main; main()"
)
#: Keys of the output of `analyse --json`.
ANALYSIS = {"move", "value", "depth", "exact", "confidence", "pv", "nodes", "seconds"}


def launch(*arguments, code=REVERSI, env=os.environ, **options):
    """Start ``python -c code arguments`` (default: the command line); the default streams are pipes."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, text=True, env={**env, "PYTHONPATH": str(REPOSITORY)}, **pipes | options)


@contextmanager
def launched(*arguments, **options):
    job = launch(*arguments, **options)
    try:
        yield job
    finally:
        job.kill()
        job.communicate()


def interrupted(condition, *arguments, **options):
    """Send Ctrl-C to a process when *condition* holds; return exit status, standard output and standard error."""
    with launched(*arguments, **options) as job:
        wait_until(condition, job)
        job.send_signal(signal.SIGINT)
        out, err = job.communicate(timeout=PATIENCE)
    return job.returncode, out, err


def wait_until(condition, job=None, pause=0.01):
    """Check *condition* every *pause* seconds until it holds; fail at the timeout or if *job* ends before."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert job is None or job.poll() is None, job.communicate()
        assert time.monotonic() < deadline
        time.sleep(pause)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def children_of(pid):
    children = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid:
            children.append(int(path.parent.name))
    return children


def held(code, name, count):
    """Return the code of a job that waits before it writes the *count*-th file matching *name*, until its input ends.

    So the test can kill the job at this point, independent of the speed of the machine.
    """
    return f"from tests.oracles.jobs import hold; hold({name!r}, {count})\n{code}"


def hold(name, count):
    """Install the hook of `held` in the job itself, not in its child processes."""
    numbers = itertools.count(1)

    def look(event, arguments):
        if fnmatch(_about_to_be_written(event, arguments), name) and next(numbers) == count:
            os.read(0, 1)

    sys.addaudithook(look)


def _about_to_be_written(event, arguments):
    """Return the name of the file that is being renamed or opened for writing; empty for other events."""
    if event == "os.rename":
        path = arguments[1]
    elif event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        path = arguments[0]
    else:
        return ""
    return "" if isinstance(path, int) else os.path.basename(os.fsdecode(path))  # noqa: PTH119 - called very often


#: Files of other libraries, whose steps come at unpredictable times.
_IGNORED = "tensorboard"
#: Bytes that a truncated write lacks: fewer than in any line.
_CUT = 5


def kill_at(number, count_file=""):
    """Kill this process at file operation *number* (from 1; 0: never) in its folder; write their count to a file."""
    steps, here, busy = itertools.count(1), f"{Path.cwd()}{os.sep}", []

    def step(path, descriptor=None):
        if busy or not _inside(path, here):
            return
        busy.append(path)
        if next(steps) == number:
            if descriptor is not None and stat.S_ISREG((status := os.fstat(descriptor)).st_mode):
                os.ftruncate(descriptor, max(0, status.st_size - _CUT))  # an incomplete write
            os.kill(os.getpid(), signal.SIGKILL)
        busy.pop()

    def look(event, arguments):
        if (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)) or event in _CHANGES:
            step(arguments[0])

    def fsync(descriptor, real=os.fsync):
        step(os.readlink(f"/proc/self/fd/{descriptor}"), descriptor)  # noqa: PTH115 - for `step`
        real(descriptor)

    sys.addaudithook(look)
    os.fsync = fsync
    if count_file:
        atexit.register(lambda: Path(count_file).write_text(str(next(steps) - 1)))


_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}


def _inside(path, here):
    if isinstance(path, int):
        return False
    full = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - called very often
    return full.startswith(here) and _IGNORED not in full


class Jobs:
    """Jobs as forks of one process with the large libraries, whose import takes longer than most jobs."""

    def __init__(self):
        self._python = launch(code="from tests.oracles.jobs import forked\nexec(forked())")

    def run(self, code, arguments, folder, kill=0, count_file=""):
        """Run the code with *arguments* in *folder*; return whether it was killed at step *kill*."""
        folder.mkdir(exist_ok=True)
        errors = folder.with_name(f"{folder.name}.errors")
        hooked = f"from tests.oracles.jobs import kill_at; kill_at({kill}, {str(count_file)!r})\n{code}"
        print(json.dumps([hooked, arguments, str(folder), str(errors)]), file=self._python.stdin, flush=True)
        status = int(self._python.stdout.readline())
        assert status in ((0, -signal.SIGKILL) if kill else (0,)), errors.read_text()
        return status != 0

    def close(self):
        self._python.communicate(timeout=PATIENCE)


def forked():
    """Fork a process per job; return the job's code in the new process."""
    import cma  # noqa: F401
    import numba  # noqa: F401
    import pyarrow  # noqa: F401
    import torch._dynamo  # noqa: F401 - as the first optimiser of a process does

    for line in sys.stdin:
        code, arguments, folder, errors = json.loads(line)
        if not (job := os.fork()):
            break
        print(os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]), flush=True)
    else:
        sys.exit()
    for stream, path in enumerate((os.devnull, os.devnull, errors)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), stream)
    os.chdir(folder)
    sys.argv = ["-c", *arguments]
    signal.alarm(PATIENCE)
    return code


def results(folder):
    """Return the content of all files below *folder* by name, also hidden ones, without wall times."""
    paths = (path for path in folder.rglob("*") if path.is_file() and _IGNORED not in path.parts)
    return {path.relative_to(folder).as_posix(): _content(path) for path in sorted(paths)}


def _content(path):
    data = path.read_bytes()
    read = {
        ".csv": lambda: _timeless(list(csv.DictReader(io.StringIO(data.decode())))),
        ".jsonl": lambda: [_timeless(json.loads(line)) for line in data.splitlines()],
        ".safetensors": lambda: _safetensors(data),
    }
    return read[path.suffix]() if path.suffix in read else data


def _timeless(value):
    """Return JSON in its order, without wall times."""
    if isinstance(value, dict):
        return [(key, _timeless(part)) for key, part in value.items() if not _is_time(str(key))]
    if isinstance(value, (list, tuple)):
        return [_timeless(part) for part in value]
    return value


def _is_time(key):
    return "seconds" in key or key in ("steps_per_second", "time/fps", "time/time_elapsed", "t", "crc32")


def _safetensors(data):
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    metadata = {key: json.loads(text) for key, text in header.pop("__metadata__").items()}
    for part in metadata.values():
        part.pop("sha256", None)  # the hash covers wall times
    return header, _timeless(metadata), data[8 + length :]
