"""``kill -9`` at many steps of every job: the same command then ends with exactly the same files."""

import sys
from functools import cache
from typing import NamedTuple

import pytest

from tests.oracles.jobs import REVERSI, Jobs, results
from train.labels import LabelOptions, generate

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs signals and /proc/self/fd"),
]


class Job(NamedTuple):
    """Code and arguments of a job, extra arguments of the uninterrupted run, and a reader of its results."""

    code: str
    arguments: str
    unstopped: str = ""
    results: object = results


BOOTSTRAP = """
from pathlib import Path
from tests.train.fitting.test_bootstrap import SMALL
from train.fitting.training import train_from_scratch
train_from_scratch(Path("out"), SMALL)
"""
BOOK = """
from train.book.build import build
from train.book.options import BookOptions
from train.jobs.processes import LocalExecutor
build(BookOptions(size=6, evaluator="six-factor", depth=1, positions=40, batch=2), "out", executor=LocalExecutor(0))
"""
CHECK = f"""{BOOK.replace("build(Book", "book = build(Book").replace('"out"', '"book"')}
from train.book import check as checking
from train.book.options import CheckOptions
checking.BATCH = 2
options = CheckOptions(size=6, evaluator="six-factor", depth=3, positions=100)
checking.check(book, options, "out", executor=LocalExecutor(0))
"""
#: Caches solved endgames in the working folder, not in the user's cache.
RL = f"""
from pathlib import Path
import train.evaluation.endgames
train.evaluation.endgames.cache_folder = lambda part: Path("cache")
{REVERSI}
"""
#: Writes a checkpoint after every update, and needs no stable-baselines3.
PPO = f"""
import sys, train.rl.tensor_ppo
others = "stable_baselines3", "sb3_contrib", "matplotlib"
sys.modules.update(dict.fromkeys([*others, *(name for name in sys.modules if name.startswith(others))]))
train.rl.policy_run.CHECKPOINT_SECONDS = 0
{RL}"""
SMALL_RL = "--size 4 --channels 4 --blocks 1 --eval-games 2"
SELF_PLAY = (
    f"--out out {SMALL_RL} --generations 3 --games 4 --simulations 2 --opening-plies 6 --steps 2 "
    "--final-steps 3 --batch-size 8 --replay-window 2 --eval-every 2 --threads 1"
)
JOBS = {
    "label": Job(REVERSI, "label out --size 6 --count 120 --empties 5-7 --shard-rows 30 --block-rows 60"),
    "fit": Job(REVERSI, "train fit ../labels --out out --epochs 8 --patience 8 --batch-size 64"),
    "bootstrap": Job(BOOTSTRAP, ""),
    "tuning": Job(
        REVERSI,
        "tune six-factor --objective label-error --size 6 --positions 200 --empties 4-6 --generations 8 --population 4 --out out",
    ),
    "tournament": Job(
        REVERSI, "tournament greedy random --size 4 --games 16 --seed 5 --workers 2 --out out", unstopped="--workers 1"
    ),
    "ppo": Job(
        PPO,
        f"train ppo --out out {SMALL_RL} --total-timesteps 256 --num-envs 16 --num-steps 4 --batch-size 32 --n-epochs 1 "
        "--snapshot-every 50 --eval-every 200 --threads 1",
    ),
    "book": Job(BOOK, ""),
    "check": Job(CHECK, ""),
    "gpt": Job(
        REVERSI,
        "train gpt --out out --size 4 --n-layer 1 --steps 6 --batch-size 8 --eval-every 2 --eval-games 16 --threads 1",
    ),
    "tokens": Job(REVERSI, "tokens out --size 4 --games 40 --shard-games 10"),
    "zero": Job(REVERSI, f"train alphazero {SELF_PLAY} --no-exam --cache cache"),
}


@pytest.fixture(scope="module")
def folder_of_jobs(tmp_path_factory):
    """A folder with labels, for the folders of the jobs."""
    path = tmp_path_factory.mktemp("jobs")
    generate(LabelOptions(size=6, count=300, empties=(3, 6), shard_rows=300, play_depth=1), path / "labels")
    return path


@pytest.fixture(scope="module")
def jobs():
    """The process that forks the jobs."""
    started = Jobs()
    yield started
    started.close()


@cache
def finished(name, folder_of_jobs, jobs):
    """Return the results of an uninterrupted job, and its number of steps."""
    job, count = JOBS[name], folder_of_jobs / f"{name}-steps"
    assert not jobs.run(job.code, f"{job.arguments} {job.unstopped}".split(), folder_of_jobs / name, count_file=count)
    return job.results(folder_of_jobs / name), int(count.read_text())


def differences(name, folder_of_jobs, jobs, moments, expected):
    """Return the files that differ from *expected* after a job was killed at each of these steps and then completed."""
    job, folder = JOBS[name], folder_of_jobs / "-".join(map(str, (name, "killed", *moments)))
    for moment in moments:
        assert jobs.run(job.code, job.arguments.split(), folder, kill=moment), f"{name} was not killed at step {moment}"
    assert not jobs.run(job.code, job.arguments.split(), folder)
    result = job.results(folder)
    return [file for file in sorted({*result, *expected}) if result.get(file) != expected.get(file)]


@pytest.mark.parametrize("name", JOBS)
def test_a_job_killed_twice_ends_with_the_same_files(name, folder_of_jobs, jobs):
    expected, steps = finished(name, folder_of_jobs, jobs)
    assert differences(name, folder_of_jobs, jobs, [steps // 3, steps // 4], expected) == []


@pytest.mark.long
@pytest.mark.parametrize("name", JOBS)
def test_a_job_killed_at_twenty_steps_ends_with_the_same_files(name, folder_of_jobs, jobs):
    expected, steps = finished(name, folder_of_jobs, jobs)
    moments = sorted({1 + (steps - 1) * number // 19 for number in range(20)})
    assert len(moments) == 20
    print(f"\n{name}: {steps} steps, {len(expected)} files, killed at", *moments)
    changed = {moment: differences(name, folder_of_jobs, jobs, [moment], expected) for moment in moments}
    assert {moment: files for moment, files in changed.items() if files} == {}
