"""Fuzzing with a new seed at each run: flipped bits in every kind of file, hostile messages, kills at random steps.

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
from tests.train.jobs.test_kills import JOBS, differences, finished, jobs, place
from tests.train.jobs.test_run import ALONE, LABELS
from train.jobs.logs import JsonLines, load_arrays, load_state, save_arrays, save_state
from train.labels import generate
from train.labels import read as read_labels

pytestmark = pytest.mark.slow
SECONDS = float(os.environ.get("REVERSI_FUZZ_SECONDS", "5"))
#: Flipped bits of each kind of file, at least.
FLIPS = 100

#: Jobs that load no torch: one of the others takes more than a minute. `test_kills` ends all of them.
QUICK = ("label", "tuning", "tournament", "book", "check")
__all__ = ["jobs", "place"]  # fixtures


@pytest.fixture
def rounds():
    """Yield the same random generator until the time is over, but at least once."""
    seed = int(os.environ.get("REVERSI_FUZZ_SEED") or secrets.randbits(32))
    print(f"REVERSI_FUZZ_SEED={seed}")

    def generators():
        generator, ends = random.Random(seed), time.monotonic() + SECONDS
        yield generator
        while time.monotonic() < ends:
            yield generator

    return generators()


def copied(*paths):
    """A writer that copies files of the package; the first is damaged."""

    def write(folder):
        for path in paths:
            shutil.copy(path, folder / path.name)
        return folder / paths[0].name

    return write


def book_bytes(path):
    return read_book(path).to_bytes()


def packaged():
    """The files of the package, and how each is read: a function of its path."""
    names = ("reversi_env", "search", "models", "train")
    for sums in (path for name in names for path in (REPOSITORY / name).rglob(SUMS)):
        first = sums.read_text().split()[1]
        yield sums, copied(sums, sums.with_name(first)), lambda path, first=first: packaged_bytes(path.with_name(first))
        for line in sums.read_text().splitlines():
            data = sums.with_name(line.split()[1])
            yield data, copied(data, sums), packaged_bytes
    for path in sorted(path for name in names for path in (REPOSITORY / name).rglob("*.safetensors")):
        yield path, copied(path), book_bytes if path.parent.name == "books" else read_file


def written(content):
    """A writer of a file by a function of its path."""

    def write(folder):
        path = folder / "written"
        content(path)
        return path

    return write


def job_file(name, file):
    """A writer of a job's folder, and its reader: the job resumes, and its results are the same."""
    job = ALONE[name]

    def write(folder):
        job.run(job.options, folder)
        return folder / file

    return write, lambda path: [game.game.discs for game in job.run(job.options, path.parent).records]


def known_parts(path):
    """The lines but the last, which goes with its line end, without keys that are not theirs, as a damaged name of a checksum."""
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
        written(lambda path: path.write_bytes(file_content(ARRAYS, HEADER))),
        read_file,
    ),
    "state": (written(lambda path: save_state(path, ARRAYS, HEADER)), load_state),
    "arrays": (written(lambda path: save_arrays(path, ARRAYS)), lambda path: load_arrays(path, [*ARRAYS])),
    "compressed arrays": (
        written(lambda path: save_arrays(path, ARRAYS, compressed=True)),
        lambda path: load_arrays(path, [*ARRAYS]),
    ),
    "lines": (written(lambda path: JsonLines(path).replace([*LINES, 0])), known_parts),
    "labels": (lambda folder: labels(folder, "*.parquet"), lambda path: vars(read_labels(path.parent))),
    "manifest": (lambda folder: labels(folder, "manifest.json"), lambda path: vars(read_labels(path.parent))),
    "tournament": job_file("tournament", "games.jsonl"),
    "tournament's manifest": job_file("tournament", "manifest.json"),
}


def plain(value):
    """A value that can be compared: arrays as lists."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return (str(value.dtype), value.tolist()) if isinstance(value, np.ndarray) else value


def read_or_error(read, path):
    try:
        return plain(read(path))
    except (ReversiError, RuntimeWarning) as error:  # a warning where the bit is in the name of the checksum
        return error


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_refused_by_the_files_name_or_has_no_effect(kind, rounds, tmp_path):
    write, read = KINDS[kind]
    path = write(tmp_path)
    data, whole = path.read_bytes(), plain(read(path))
    generator, refused = next(rounds), 0
    for _ in range(FLIPS):
        bit = generator.randrange(8 * len(data))
        path.write_bytes(data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :])
        os.utime(path, ns=(bit, bit))  # nothing that was read before is taken for it
        outcome = read_or_error(read, path)
        if isinstance(outcome, Exception):
            assert path.name in str(outcome) or str(path.parent) in str(outcome), f"bit {bit}: {outcome}"
            refused += 1
        else:
            assert outcome == whole, f"bit {bit}"
        for left in (left for left in path.parent.iterdir() if left.name.startswith(".")):
            left.unlink()
    assert refused > 0


@pytest.mark.skipif(sys.platform != "linux", reason="signals")
def test_hostile_messages_of_a_new_seed(rounds, tmp_path):
    pytest.importorskip("msgspec")
    from benchmarks.server import memory_mib
    from tests.play.server.test_abuse import attack
    from tests.play.server.test_store import Killable

    server = Killable(tmp_path / "games.sqlite3")
    for generator in rounds:
        attack(server, 400, generator.random(), generator.choice(["black", "spectator"]))
    assert (memory_mib(server.process.pid) or 0) < 300
    _, errors = server.end(signal.SIGTERM)
    assert "Traceback" not in errors


@pytest.mark.skipif(sys.platform != "linux", reason="signals, and files by their descriptors")
def test_jobs_killed_at_random_steps_end_with_the_same_files(rounds, place, jobs):
    for generator in rounds:
        name = generator.choice([*JOBS] if SECONDS > 60 else QUICK)
        whole, steps = finished(name, place, jobs)
        moments = sorted(generator.sample(range(1, steps // 2), 2), reverse=True)
        print(name, moments)
        assert differences(name, place, jobs, moments, whole) == []
