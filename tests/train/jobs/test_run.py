"""Resumable jobs lock their folder and refuse folders of other jobs or options; logs and arrays detect damage."""

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
    """Options of a job, a changed value of one of them, the function that runs it, and the file with its options."""

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
#: Jobs with a slow start; the fixture only writes the options into their folders.
SLOW_START = {"bootstrap": {"device": "cpu"}, "rl": {}}


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """A folder with the started folders of all jobs."""
    place = tmp_path_factory.mktemp("jobs")
    generate(LABELS, place / "labels")
    for name, job in JOBS.items():
        if name in SLOW_START:
            with Run(place / name, job.options, SLOW_START[name]):
                pass
        else:
            job.run(job.options, place / name)
    return place


@pytest.mark.parametrize("name", JOBS)
def test_changed_options_of_a_folder_are_refused(name, started):
    job, folder = JOBS[name], started / name
    before = {path: path.read_bytes() for path in folder.iterdir()}
    option, value = job.changed
    with pytest.raises(TrainError) as error:
        job.run(replace(job.options, **{option: value}), folder)
    assert f"{option}={getattr(job.options, option)!r}" in str(error.value)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


#: A tuning may share its folder with other jobs.
EXCLUSIVE = {name: job for name, job in JOBS.items() if name != "tuning"}
EXCLUSIVE["puzzles"] = Job(PuzzleOptions(size=6, count=1), ("seed", 1), make_puzzles)


@pytest.mark.parametrize("name", EXCLUSIVE)
def test_the_folder_of_another_job_is_refused(name, started):
    for other in EXCLUSIVE.keys() - {name, "puzzles"}:
        before = {path: path.read_bytes() for path in (started / other).iterdir()}
        with pytest.raises(TrainError, match=other):
            EXCLUSIVE[name].run(EXCLUSIVE[name].options, started / other)
        assert {path: path.read_bytes() for path in (started / other).iterdir()} == before


def test_files_of_another_job_do_not_stop_resumption(started):
    """Both kinds of job continue in a folder that they shared before, as a training and a tournament of its policy."""
    folder = started / "shared"
    with Run(folder, rl_preset(4)):
        (folder / "manifest.json").write_text("{}")
    with Run(folder, rl_preset(4)):
        (folder / CHECKPOINT).write_text("")
    with pytest.raises(TrainError, match="run.json"), Run(folder, file=CHECKPOINT):
        pass


@pytest.mark.parametrize("name", JOBS)
def test_locked_folders_and_files_are_refused(name, started, tmp_path):
    job = JOBS[name]
    with Run(started / name), pytest.raises(TrainError, match=f"{name}'"):
        job.run(job.options, started / name)
    file = started / f"{name}-file"
    file.write_text("")
    with pytest.raises(TrainError, match="is a file"):
        job.run(job.options, file)


@pytest.mark.parametrize("name", [name for name, job in JOBS.items() if job.file])
def test_a_damaged_manifest_is_refused(name, started):
    job = JOBS[name]
    path = started / name / job.file
    whole = path.read_bytes()
    for content in ("{", "[1]", "{}"):
        path.write_text(content)
        with pytest.raises(TrainError, match=job.file):
            job.run(job.options, started / name)
    path.write_bytes(whole)


def test_new_options_get_defaults_and_some_may_change(tmp_path):
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
    for options, match in ((PpoOptions(), "eval_games=500"), (PpoOptions(eval_games=500, pool_size=7), "pool_size=6")):
        with pytest.raises(TrainError, match=match):
            Run(tmp_path, options, changeable=("total_timesteps",), extendable=("eval_games",)).store_or_check_options()


def test_changed_weights_are_refused(tmp_path):
    with Run(tmp_path, PpoOptions(), {"player_sha256": "0"}):
        pass
    with pytest.raises(TrainError, match="player"):
        Run(tmp_path, PpoOptions(), {"player_sha256": "1"}).store_or_check_options()


def test_logs_drop_a_truncated_line_and_refuse_damage(tmp_path):
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
def test_arrays_with_a_flipped_bit_are_refused_or_unchanged(tmp_path, compressed):
    path, array = tmp_path / "arrays.npz", np.arange(3)
    save_arrays(path, {"a": array}, compressed=compressed)
    data, refused = path.read_bytes(), 0
    for index in range(len(data)):  # the lowest bit of a flag means "encrypted"
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


def test_all_build_ids_of_a_run_are_stored(tmp_path, monkeypatch):
    path, builds = tmp_path / "run.json", ["first", "second"]
    for build in [*builds, "first"]:
        monkeypatch.setattr(run, "build_id", lambda build=build: build)
        with Run(tmp_path, PpoOptions()):
            pass
    assert json.loads(path.read_text())["code"] == builds


@pytest.mark.parametrize("name", [name for name in JOBS if name not in SLOW_START])
def test_a_full_disk_names_the_file_and_the_remedy(name, started, tmp_path, monkeypatch):
    job, left = JOBS[name], iter(range(3 if name == "label" else 1))
    folder, real = tmp_path / name, os.fsync
    (tmp_path / "labels").symlink_to(started / "labels")

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
    assert {path.name for path in folder.iterdir()} == {path.name for path in (started / name).iterdir()}
