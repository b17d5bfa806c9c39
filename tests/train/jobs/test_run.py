"""Every resumable job keeps its folder to itself, and refuses one that another job, or the same with other options, has begun."""

import errno
import json
import os
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from reversi_env.errors import TrainError
from reversi_env.options import Options
from reversi_env.storage import atomic as atomic_files
from train.alphazero.options import SelfPlayOptions
from train.arena.options import TournamentOptions
from train.arena.tournament import run_tournament
from train.evaluation.options import PuzzleOptions
from train.evaluation.puzzles import make_puzzles
from train.fitting.bootstrap import Bootstrap
from train.fitting.fit import FitOptions
from train.fitting.stages import BootstrapOptions
from train.fitting.training import train_on_labels
from train.jobs import run
from train.jobs.logs import JsonLines, load_arrays, read_csv, save_arrays, write_csv
from train.jobs.run import CHECKPOINT, Run, stored_options
from train.labels import LabelOptions, generate
from train.rl.options import PpoOptions
from train.rl.options import preset as rl_preset
from train.rl.tensor_ppo import TensorPPO
from train.tuning.objectives import LabelError
from train.tuning.options import TuneOptions
from train.tuning.run import tune

LABELS = LabelOptions(size=4, count=40, empties=(3, 6), shard_rows=40, play_depth=1)
EXACT = LabelError(4, "normal", 20, (3, 5))


class Job(NamedTuple):
    """Options of a job, another value for one of them, how it is run, and the file that remembers them."""

    options: Options
    changed: tuple[str, Any]
    run: Any
    file: str | None = None


def fit(options, folder):
    return train_on_labels(folder.parent / "labels", folder, options)


JOBS = {
    "label": Job(LABELS, ("seed", 1), generate, "manifest.json"),
    "fit": Job(FitOptions(epochs=1), ("seed", 1), fit),
    "bootstrap": Job(
        BootstrapOptions(4), ("seed", 1), lambda options, folder: Bootstrap(folder, options).run(), "run.json"
    ),
    "tuning": Job(
        TuneOptions("six-factor", generations=1, population=4),
        ("seed", 1),
        lambda options, folder: tune(options, EXACT, folder),
    ),
    "tournament": Job(TournamentOptions(("random", "greedy"), 2, 4), ("depth", 3), run_tournament, "manifest.json"),
    "rl": Job(rl_preset(4), ("channels", 8), lambda options, folder: TensorPPO(folder, options).run(), "run.json"),
}
#: Jobs that take long to begin: their folders are made as they make them.
LONG = {"bootstrap": {"device": "cpu"}, "rl": {}}


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A folder with those of all jobs, begun."""
    place = tmp_path_factory.mktemp("jobs")
    generate(LABELS, place / "labels")
    for name, job in JOBS.items():
        if name in LONG:
            with Run(place / name, job.options, LONG[name]):
                pass
        else:
            job.run(job.options, place / name)
    return place


@pytest.mark.parametrize("name", JOBS)
def test_other_options_than_a_folder_was_begun_with_are_refused(name, begun):
    job, folder = JOBS[name], begun / name
    before = {path: path.read_bytes() for path in folder.iterdir()}
    option, value = job.changed
    with pytest.raises(TrainError) as error:
        job.run(replace(job.options, **{option: value}), folder)
    assert f"{option}={getattr(job.options, option)!r}" in str(error.value)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


#: What a tuning writes may lie beside anything.
ALONE = {name: job for name, job in JOBS.items() if name != "tuning"}
ALONE["puzzles"] = Job(PuzzleOptions(size=6, count=1), ("seed", 1), make_puzzles)


@pytest.mark.parametrize("name", ALONE)
def test_a_job_leaves_the_folder_of_another_one_alone(name, begun):
    for other in ALONE.keys() - {name, "puzzles"}:
        before = {path: path.read_bytes() for path in (begun / other).iterdir()}
        with pytest.raises(TrainError, match=other):
            ALONE[name].run(ALONE[name].options, begun / other)
        assert {path: path.read_bytes() for path in (begun / other).iterdir()} == before


def test_what_lies_beside_does_not_keep_a_job_from_its_own_folder(begun):
    """Two kinds that shared a folder before, as a training and a tournament of its policy, both go on there."""
    folder = begun / "shared"
    with Run(folder, rl_preset(4)):
        (folder / "manifest.json").write_text("{}")
    with Run(folder, rl_preset(4)):
        (folder / CHECKPOINT).write_text("")
    with pytest.raises(TrainError, match="run.json"), Run(folder, file=CHECKPOINT):
        pass


@pytest.mark.parametrize("name", JOBS)
def test_one_process_writes_a_folder_which_is_no_file(name, begun, tmp_path):
    job = JOBS[name]
    with Run(begun / name), pytest.raises(TrainError, match=f"{name}'"):
        job.run(job.options, begun / name)
    file = begun / f"{name}-file"
    file.write_text("")
    with pytest.raises(TrainError, match="is a file"):
        job.run(job.options, file)


@pytest.mark.parametrize("name", [name for name, job in JOBS.items() if job.file])
def test_a_damaged_manifest_is_named(name, begun):
    job = JOBS[name]
    path = begun / name / job.file
    whole = path.read_bytes()
    for content in ("{", "[1]", "{}"):
        path.write_text(content)
        with pytest.raises(TrainError, match=job.file):
            job.run(job.options, begun / name)
    path.write_bytes(whole)


def test_options_that_came_later_have_their_defaults_and_some_may_change(tmp_path):
    path = tmp_path / "run.json"
    with Run(tmp_path, PpoOptions()):
        content = json.loads(path.read_text())
        del content["options"]["pool_size"]
        path.write_text(json.dumps(content))
    with Run(
        tmp_path,
        PpoOptions(total_timesteps=2_000_000, eval_games=500),
        changeable=("total_timesteps",),
        extendable=("eval_games",),
    ):
        assert stored_options(tmp_path, PpoOptions) == PpoOptions(total_timesteps=2_000_000, eval_games=500)
    with pytest.raises(TrainError, match=tmp_path.name):
        stored_options(tmp_path, SelfPlayOptions)
    for options, named in ((PpoOptions(), "eval_games=500"), (PpoOptions(eval_games=500, pool_size=7), "pool_size=6")):
        with pytest.raises(TrainError, match=named):
            Run(tmp_path, options, changeable=("total_timesteps",), extendable=("eval_games",)).store_or_check_options()


def test_other_weights_are_refused_without_their_hashes(tmp_path):
    with Run(tmp_path, PpoOptions(), {"player_sha256": "0"}):
        pass
    with pytest.raises(TrainError, match="player"):
        Run(tmp_path, PpoOptions(), {"player_sha256": "1"}).store_or_check_options()


def test_logs(tmp_path):
    table, lines = tmp_path / "log.csv", JsonLines(tmp_path / "log.jsonl")
    assert (read_csv(table), lines.read(), bool(lines)) == ([], [], False)
    write_csv(table, [{"a": 1}, {"a": 2, "b": "x, y"}])
    assert read_csv(table) == [{"a": "1", "b": ""}, {"a": "2", "b": "x, y"}]
    lines.append({"a": 1})
    lines.append([2])
    with lines.path.open("a") as stream:
        stream.write('{"a": 3')  # cut off by a kill
    assert lines.read() == [{"a": 1}, [2]]
    lines.append(4)
    assert lines.read() == [{"a": 1}, [2], 4]
    lines.path.write_text("1\n{]\n3\n")
    with pytest.raises(TrainError, match="line 2 of .*log.jsonl"):
        lines.read()


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_with_a_flipped_bit_are_refused_or_equal(tmp_path, compressed):
    path, array = tmp_path / "arrays.npz", np.arange(3)
    save_arrays(path, {"a": array}, compressed=compressed)
    data, refused = path.read_bytes(), 0
    for index in range(len(data)):  # the lowest bit of a flag says "encrypted"
        path.write_bytes(data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :])
        try:
            assert load_arrays(path, ["a"])[0].tolist() == array.tolist()
        except TrainError as error:
            refused += path.name in str(error)
    assert refused > len(data) // 4


def test_a_file_system_without_locks_is_reported(tmp_path, monkeypatch):
    def flock(descriptor, how):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(atomic_files.fcntl, "flock", flock)
    with (
        pytest.warns(RuntimeWarning, match="run' is on a file system without locks"),
        Run(tmp_path / "run", PpoOptions()),
    ):
        assert stored_options(tmp_path / "run", PpoOptions) == PpoOptions()


def test_the_builds_of_all_code_that_has_run_are_stored(tmp_path, monkeypatch):
    path, builds = tmp_path / "run.json", ["first", "second"]
    for build in [*builds, "first"]:
        monkeypatch.setattr(run, "build_id", lambda build=build: build)
        with Run(tmp_path, PpoOptions()):
            pass
    assert json.loads(path.read_text())["code"] == builds


@pytest.mark.parametrize("name", [name for name in JOBS if name not in LONG])
def test_a_full_disk_names_the_file_and_what_to_do(name, begun, tmp_path, monkeypatch):
    job, left = JOBS[name], iter(range(3 if name == "label" else 1))
    folder, real = tmp_path / name, os.fsync
    (tmp_path / "labels").symlink_to(begun / "labels")

    def full(*arguments):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments)

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=rf"expected free space; the same command.*{name}/") as error:
            job.run(job.options, folder)
        assert error.value.errno == errno.ENOSPC
    job.run(job.options, folder)
    assert {path.name for path in folder.iterdir()} == {path.name for path in (begun / name).iterdir()}
