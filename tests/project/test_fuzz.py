"""Fuzzing with a new seed in each run: flipped bits in every kind of file, hostile messages, kills at random steps.

Each test runs for REVERSI_FUZZ_SECONDS (default: 5; a scheduled workflow sets 1,500). A failure prints the seed, and
REVERSI_FUZZ_SEED repeats it.
"""

import os
import random
import secrets
import shutil
import signal
import sys
import time

import numpy as np
import pytest

from models.files import file_content, read_file
from reversi_env.errors import ReversiError
from reversi_env.storage.packaged import SUMS, packaged_bytes
from search.agents.book import read_book
from tests.conftest import REPOSITORY
from tests.train.jobs.test_kills import JOBS, differences, finished, folder_of_jobs, jobs
from tests.train.jobs.test_run import EXCLUSIVE, LABELS
from train.jobs.logs import JsonLines, load_arrays, load_state, save_arrays, save_state
from train.labels import generate
from train.labels import read as read_labels

pytestmark = pytest.mark.slow
SECONDS = float(os.environ.get("REVERSI_FUZZ_SECONDS", "5"))
#: Number of flipped bits per kind of file.
FLIPS = 100

#: Jobs without torch; each of the others takes more than a minute. `test_kills` runs all jobs.
QUICK = ("label", "tuning", "tournament", "book", "check")
__all__ = ["folder_of_jobs", "jobs"]  # fixtures


@pytest.fixture
def rounds():
    """Yield one random generator repeatedly until the time is over, at least once."""
    seed = int(os.environ.get("REVERSI_FUZZ_SEED") or secrets.randbits(32))
    print(f"REVERSI_FUZZ_SEED={seed}")

    def generators():
        generator, ends = random.Random(seed), time.monotonic() + SECONDS
        yield generator
        while time.monotonic() < ends:
            yield generator

    return generators()


def copying(*paths):
    """Return a writer that copies packaged files; the test damages the first."""

    def write(folder):
        for path in paths:
            shutil.copy(path, folder / path.name)
        return folder / paths[0].name

    return write


def book_bytes(path):
    return read_book(path).to_bytes()


def packaged():
    """Yield every packaged file with its writer and its reader."""
    names = ("reversi_env", "search", "models", "train")
    for sums in (path for name in names for path in (REPOSITORY / name).rglob(SUMS)):
        data = sums.with_name(sums.read_text().split()[1])
        yield sums, copying(sums, data), lambda path, name=data.name: packaged_bytes(path.with_name(name))
        for line in sums.read_text().splitlines():
            data = sums.with_name(line.split()[1])
            yield data, copying(data, sums), packaged_bytes
    for path in sorted(path for name in names for path in (REPOSITORY / name).rglob("*.safetensors")):
        yield path, copying(path), book_bytes if path.parent.name == "books" else read_file


def writing(content):
    """Return a writer that calls *content* with the path of a new file."""

    def write(folder):
        path = folder / "written"
        content(path)
        return path

    return write


def job_file(name, file):
    """Return a writer of a job's folder, and a reader that resumes the job and returns its results."""
    job = EXCLUSIVE[name]

    def write(folder):
        job.run(job.options, folder)
        return folder / file

    return write, lambda path: [game.game.discs for game in job.run(job.options, path.parent).records]


def known_parts(path):
    """Return all lines but the last, which is lost with its line end, without unknown keys such as a damaged checksum name."""
    pairs = zip(JsonLines(path).read(), LINES, strict=False)
    return [line if isinstance(line, list) else {key: line[key] for key in expected} for line, expected in pairs]


def labels(folder, file):
    generate(LABELS, folder)
    return next(folder.glob(file))


ARRAYS = {"a": np.arange(40, dtype=np.int16).reshape(8, 5), "b": np.linspace(0, 1, 30, dtype=np.float32)}
HEADER = {"architecture": "any", "size": 8, "variant": "normal", "record": {"probcut": [[0.5, 1.25], [3, 4]]}}
LINES = [{"game": 3, "moves": "d3c5", "seconds": [0.25, 1e-3]}, ["-XO- X; a1:+3;", "two"], {"losses": [1.5, -2]}]
KINDS = {
    **{str(path.relative_to(REPOSITORY)): (write, read) for path, write, read in packaged()},
    "weights without a hash in the name": (
        writing(lambda path: path.write_bytes(file_content(ARRAYS, HEADER))),
        read_file,
    ),
    "state": (writing(lambda path: save_state(path, ARRAYS, HEADER)), load_state),
    "arrays": (writing(lambda path: save_arrays(path, ARRAYS)), lambda path: load_arrays(path, [*ARRAYS])),
    "compressed arrays": (
        writing(lambda path: save_arrays(path, ARRAYS, compressed=True)),
        lambda path: load_arrays(path, [*ARRAYS]),
    ),
    "lines": (writing(lambda path: JsonLines(path).replace([*LINES, 0])), known_parts),
    "labels": (lambda folder: labels(folder, "*.parquet"), lambda path: vars(read_labels(path.parent))),
    "manifest": (lambda folder: labels(folder, "manifest.json"), lambda path: vars(read_labels(path.parent))),
    "tournament": job_file("tournament", "games.jsonl"),
    "tournament's manifest": job_file("tournament", "manifest.json"),
}


def plain(value):
    """Return a comparable value with arrays as lists."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return (str(value.dtype), value.tolist()) if isinstance(value, np.ndarray) else value


def read_or_error(read, path):
    try:
        return plain(read(path))
    except (ReversiError, RuntimeWarning) as error:  # a warning if the bit is in the name of the checksum
        return error


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_refused_or_has_no_effect(kind, rounds, tmp_path):
    write, read = KINDS[kind]
    path = write(tmp_path)
    data, expected = path.read_bytes(), plain(read(path))
    generator, refused = next(rounds), 0
    for _ in range(FLIPS):
        bit = generator.randrange(8 * len(data))
        path.write_bytes(data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :])
        os.utime(path, ns=(bit, bit))  # a new time stamp, so that no cached content is used
        outcome = read_or_error(read, path)
        if isinstance(outcome, Exception):
            assert path.name in str(outcome) or str(path.parent) in str(outcome), f"bit {bit}: {outcome}"
            refused += 1
        else:
            assert outcome == expected, f"bit {bit}"
        for file in path.parent.glob(".*"):
            file.unlink()
    assert refused > 0


@pytest.mark.skipif(sys.platform != "linux", reason="signals")
def test_the_server_survives_random_hostile_messages(rounds, tmp_path):
    pytest.importorskip("msgspec")
    from benchmarks.server import memory_mib
    from tests.play.server.test_abuse import attack
    from tests.play.server.test_store import ServerProcess

    server = ServerProcess(tmp_path / "games.sqlite3")
    for generator in rounds:
        attack(server, 400, generator.random(), generator.choice(["black", "spectator"]))
    assert (memory_mib(server.process.pid) or 0) < 300
    _, errors = server.end(signal.SIGTERM)
    assert "Traceback" not in errors


@pytest.mark.skipif(sys.platform != "linux", reason="needs signals and /proc/self/fd")
def test_jobs_killed_at_random_steps_end_with_the_same_files(rounds, folder_of_jobs, jobs):
    for generator in rounds:
        name = generator.choice([*JOBS] if SECONDS > 60 else QUICK)
        expected, steps = finished(name, folder_of_jobs, jobs)
        moments = sorted(generator.sample(range(1, steps // 2), 2), reverse=True)
        print(name, moments)
        assert differences(name, folder_of_jobs, jobs, moments, expected) == []
