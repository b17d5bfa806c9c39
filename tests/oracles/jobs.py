"""Processes of the command line that tests interrupt, hold or kill at a chosen step, and the files that they leave."""

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
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def children_of(pid):
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid:
            found.append(int(path.parent.name))
    return found


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


#: Steps of other libraries' files, which come when they like.
_IGNORED = "tensorboard"
#: Bytes that a write which is cut short lacks: fewer than a line has.
_CUT = 5


def kill_at(number, count_file=""):
    """End this process at its step *number*, from 1, in the folder it works in; 0: never. Its steps are counted in a file."""
    steps, here, busy = itertools.count(1), f"{Path.cwd()}{os.sep}", []

    def step(path, descriptor=None):
        if busy or not _inside(path, here):
            return
        busy.append(path)
        if next(steps) == number:
            if descriptor is not None and stat.S_ISREG((found := os.fstat(descriptor)).st_mode):
                os.ftruncate(descriptor, max(0, found.st_size - _CUT))  # not all of it was written
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
    """Runs jobs, each a fork of one Python that has the large libraries: reading them takes longer than most jobs."""

    def __init__(self):
        self._python = launch(code="from tests.oracles.jobs import forked\nexec(forked())")

    def run(self, code, arguments, folder, kill=0, count_file=""):
        """The code with *arguments* in *folder*; whether it was killed, at step *kill*, before it could end."""
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
    """In that Python: the code of a job, in a process of the job's own."""
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
    """All files below *folder* by name, hidden ones too: their bytes, or what they say but for wall times."""
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
    """JSON in its order, without anything that a clock has said."""
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
    told = {key: json.loads(text) for key, text in header.pop("__metadata__").items()}
    for part in told.values():
        part.pop("sha256", None)  # of all that the file has, wall times too
    return header, _timeless(told), data[8 + length :]
