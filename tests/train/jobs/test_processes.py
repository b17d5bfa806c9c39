"""Jobs in this process or in workers: equal results, retries after lost workers, files for clusters, one-line errors."""

import os
import signal
import sys
from dataclasses import replace
from multiprocessing.connection import Connection

import pytest

from reversi_env import ReversiError
from reversi_env.errors import missing_extra_error
from tests.oracles.jobs import files
from tests.play.cli.test_contract import check_refusal
from tests.train.jobs.workers import Options, Reader, Worker
from train.jobs import shipping as cluster_files
from train.jobs.processes import LocalExecutor, ProcessPool
from train.jobs.ray import checked_address
from train.jobs.shipping import build_id, collect_files, unpack, with_local_paths
from train.labels import LabelOptions, generate

SMALL = LabelOptions(size=6, count=900, empties=(8, 10), shard_rows=200, block_rows=500)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_the_job_of_a_lost_worker_is_retried_once(tmp_path):
    with ProcessPool(2, Worker, tmp_path) as pool:
        results = list(pool.results(iter([1, "die once", 2, 3])))
        assert {job for job, _ in results} == {1, "die once", 2, 3}
        assert (tmp_path / "died").exists()
        with pytest.raises(ReversiError, match="status -9"):
            list(pool.results(iter(["die"])))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_worker_killed_while_idle_is_replaced():
    with ProcessPool(1, Worker) as pool:
        [(_, first)] = pool.results(iter([1]))
        os.kill(first, signal.SIGKILL)
        [(_, second)] = pool.results(iter([2]))
    assert first != second


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_worker_killed_while_sending_is_replaced(monkeypatch):
    answers, receive = [], Connection.recv

    def cut_off(connection):
        if not answers:
            answers.append(receive(connection))
            os.kill(answers[0][1][1], signal.SIGKILL)  # ("result", (job, process))
            raise OSError("got end of file during message")
        return receive(connection)

    with ProcessPool(1, Worker) as pool:
        monkeypatch.setattr(Connection, "recv", cut_off)
        [(job, _)] = pool.results(iter([1]))
    assert job == 1
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("options", "workers"),
    [
        (SMALL, 0),
        (replace(SMALL, variant="reversed", labeller="six-factor:depth=2,exact=8", shard_rows=90), 0),
        (replace(SMALL, size=4, count=60, empties=(1, 4), shard_rows=7, block_rows=30), 0),
        pytest.param(SMALL, 2, marks=pytest.mark.slow),
    ],
)
def test_labels_made_by_jobs_have_the_same_bytes(tmp_path, options, workers, monkeypatch):
    monkeypatch.setattr("train.labels.jobs.MIN_ROWS", 64)
    generate(options, tmp_path / "whole")
    steps = []
    generate(options, tmp_path / "jobs", executor=LocalExecutor(workers), progress=lambda *step: steps.append(step))
    generate(options, tmp_path / "jobs", executor=object())  # complete, so the executor is not used
    assert files(tmp_path / "jobs") == files(tmp_path / "whole")
    rows = [done for doing, done, _ in steps if doing == "labelling"]
    assert rows == sorted(set(rows))
    assert rows[-1] == options.count
    assert {doing for doing, *_ in steps} == {"sampling", "labelling"}


def test_files_named_by_options_are_shipped_and_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "network").write_text("a file with the name of an agent")
    other = str(tmp_path / "other.txt")
    for name in ("w.txt", other):
        (tmp_path / name).write_text(name)
    options = Options(("network:weights=w.txt,depth=2", "x:weights=none.txt", "network"), other)
    sent = collect_files([options, 5])
    assert [(file.name, file.content) for file in sent] == [(name, name.encode()) for name in ("w.txt", other)]
    assert unpack(sent) == {}  # all files are here already
    assert with_local_paths(options, {}) is options
    (tmp_path / "w.txt").write_text("changed")  # as on another machine
    copies = tmp_path / "copies"
    copies.mkdir()
    places = unpack(sent, copies)
    assert list(places) == ["w.txt"]
    moved = with_local_paths(options, places)
    assert moved.specs[1:] == options.specs[1:]
    assert moved.specs[0].endswith(".txt,depth=2")
    assert Reader(replace(moved, specs=(moved.specs[0].removesuffix(",depth=2"),)))(0)[1] == "w.txt"
    next(copies.iterdir()).write_text("damaged")
    assert unpack(sent, copies) == places  # one copy per machine, verified by its hash
    assert next(copies.iterdir()).read_text() == "w.txt"
    assert with_local_paths(5, places) == 5


def test_a_long_command_line_is_not_taken_for_a_file_name():
    assert collect_files([Options((f"gtp:engine --book=b.dat {'--option ' * 500}",))]) == ()


def test_the_build_id_depends_on_code_and_packaged_data_only(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_files, "ROOT", tmp_path)
    fresh = build_id.__wrapped__

    def write(name, content):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
        return fresh()

    names = "search/engine.py search/table.npy models/weights/a.safetensors search/agents/books/b.safetensors"
    build_ids = [fresh(), *(write(name, content) for name in names.split() for content in ("new", "changed"))]
    assert len(set(build_ids)) == len(build_ids) - 1
    assert write("search/engine.cpython-311.pyc", "compiled") == build_ids[-1]
    assert write("studies/winner.py", "new") == build_ids[-1] != fresh("studies")


@pytest.mark.parametrize("address", ["", "x", "ray://head:10001", "head:", ":6379", "a b:1", "10.0.0.1:6379/"])
def test_bad_cluster_addresses_are_refused(address):
    with pytest.raises(ReversiError, match="expected HOST:PORT"):
        checked_address(address)
    for valid in ("auto", "local", "10.0.0.1:6379", "head.example.org:1", "[::1]:6379"):
        assert checked_address(valid) == valid


def test_missing_ray_names_its_extra(reversi, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    check_refusal(reversi, ("label", tmp_path / "out", "--count", 5, "--ray", "auto"), str(missing_extra_error("ray")))
    assert not (tmp_path / "out").exists()


def test_modules_that_shadow_packages_on_workers_are_refused(reversi, monkeypatch, tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: the extra 'cluster' has it")
    (tmp_path / "models.py").touch()
    monkeypatch.chdir(tmp_path)
    check_refusal(reversi, ("label", "out", "--count", 5, "--ray", "local"), "models.py")


def test_an_unreachable_cluster_is_reported(reversi, tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: the extra 'cluster' has it")
    for command in (("label", tmp_path, "--count", 5), ("tournament", "greedy", "random", "--out", tmp_path)):
        check_refusal(reversi, (*command, "--ray", "127.0.0.1:1"), "127.0.0.1:1")
