"""A Ray cluster of two machines, of which one is killed during a job: the files equal those without Ray."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.oracles.jobs import PATIENCE, REVERSI, files, held, launch, wait_until
from tests.oracles.processes import output_of
from tests.train.jobs.conftest import TwoNodes, jobs_of
from train.alphazero.options import preset
from train.alphazero.run import SelfPlayRun
from train.jobs.checkpoints import load_checkpoint
from train.labels import LabelOptions, generate

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc"),
]
OPTIONS = LabelOptions(size=6, count=12_000, empties=(11, 13), shard_rows=300)
LABEL = ("--size", 6, "--count", 12_000, "--empties", "11-13", "--shard-rows", 300)
#: Message about a lost machine, if Ray noticed it in time, perhaps one of an earlier test.
LOST_MACHINE = r"reversi: CPUs of the Ray cluster: \d now, \d before\n"
#: Commands that cannot end too early: they wait before their last shards, or before shard 16.
LAST_SHARDS, SOME_SHARDS = (held(REVERSI, ".shard-*.part", number) for number in (36, 16))


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """The files that a single process writes."""
    folder = tmp_path_factory.mktemp("labels") / "out"
    generate(OPTIONS, folder)
    return files(folder)


def result_of(job):
    """Return the JSON that a command printed, after a check that its standard error has no other messages."""
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 0, err
    assert re.sub(LOST_MACHINE, "", err) == ""
    return json.loads(out)


def shards(folder):
    return len(list(folder.glob("shard-*.parquet")))


def wait_while_running(job, condition):
    """Wait until the condition holds; fail if the job ends before."""
    wait_until(lambda: condition() or job.poll() is not None, pause=0.05)
    assert job.poll() is None, job.communicate()


def wait_for_second_machine(job, head, raylet):
    """Wait until the second machine has a job. Workers of the first one are stopped meanwhile, so that jobs are left."""
    stopped = set()

    def at_work():
        for process in jobs_of(head):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
                stopped.add(process)
        return jobs_of(raylet)

    try:
        wait_while_running(job, at_work)
    finally:
        for process in stopped:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def test_labels_are_the_same_when_a_machine_is_lost(tmp_path, two_nodes, labelled):
    raylet, folder = two_nodes.add(), tmp_path / "out"
    command = ("label", folder, *LABEL, "--json", "--ray", two_nodes.address)
    job = launch(*command, code=LAST_SHARDS, cwd=tmp_path, env=two_nodes.environment)
    wait_for_second_machine(job, two_nodes.head, raylet)
    wait_while_running(job, lambda: shards(folder) >= 6)
    two_nodes.kill()
    assert jobs_of(raylet) == []
    wait_while_running(job, lambda: shards(folder) < 40)  # the job was not complete
    assert result_of(job)["positions"] == 12_000
    assert files(folder) == labelled


def test_killed_labelling_leaves_no_jobs_and_resumes(tmp_path, two_nodes, labelled):
    folder, command = tmp_path / "out", ("label", tmp_path / "out", *LABEL)
    for ending, status, least in ((signal.SIGKILL, -signal.SIGKILL, 2), (signal.SIGINT, 130, 6)):
        on_ray = (*command, "--ray", two_nodes.address)
        job = launch(*on_ray, code=SOME_SHARDS, cwd=tmp_path, env=two_nodes.environment)
        wait_while_running(job, lambda least=least: shards(folder) >= least and jobs_of(two_nodes.head))
        job.send_signal(ending)
        _, err = job.communicate(timeout=PATIENCE)
        assert job.returncode == status, err
        assert "Traceback" not in err
        wait_until(lambda: jobs_of(two_nodes.head) == [], pause=0.05)
    assert " of 12000 positions" in err
    assert shards(folder) < 40
    generate(OPTIONS, folder)
    assert files(folder) == labelled


SELF_PLAY = {"games": 32, "job_games": 4, "simulations": 8, "steps": 5, "final_steps": 5, "generations": 3}
SELF_PLAY |= {"eval_games": 0, "batch_size": 16, "channels": 8, "blocks": 1}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The positions and the learner state of an AlphaZero run in this process."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("zero")
    SelfPlayRun(folder, preset(4, "cpu", **SELF_PLAY), threads=1).run()
    torch.set_num_threads(threads)
    return training_state(folder)


def training_state(folder):
    """Return all that the options determine: positions of the last generations, weights and moments."""
    parts = load_checkpoint(folder / "state.safetensors")
    positions = {path.name: np.load(path) for path in folder.glob("positions-*.npz")}
    parts |= {name: {column: arrays[column] for column in arrays} for name, arrays in positions.items()}
    del parts["run"]
    return {(part, name): np.asarray(array).tolist() for part in parts for name, array in parts[part].items()}


def self_play(folder, nodes):
    chosen = [word for name, value in SELF_PLAY.items() for word in (f"--{name.replace('_', '-')}", value)]
    command = ("train", "alphazero", "--out", folder, "--size", 4, "--threads", 1, *chosen, "--ray", nodes.address)
    return launch(*command, cwd=folder.parent, env=nodes.environment)


@pytest.mark.long
def test_self_play_is_the_same_when_a_machine_is_lost(tmp_path, two_nodes, trained):
    raylet, folder = two_nodes.add(), tmp_path / "out"
    job = self_play(folder, two_nodes)
    wait_for_second_machine(job, two_nodes.head, raylet)
    two_nodes.kill()
    assert not list(folder.glob("positions-0002*"))  # the run was not complete
    _, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 0, err
    assert training_state(folder) == trained


@pytest.mark.long
def test_self_play_resumes_after_the_head_is_lost(tmp_path, ray_environment, two_nodes, trained):
    """The command fails with its cluster; on another cluster the same command resumes with the same result."""
    folder = tmp_path / "out"
    lost = TwoNodes(ray_environment | {"RAY_gcs_rpc_server_reconnect_timeout_s": "3"})
    job = self_play(folder, lost)
    wait_while_running(job, lambda: (folder / "positions-0000.npz").exists())
    lost.kill("head")
    _, err = job.communicate(timeout=PATIENCE)
    assert job.returncode != 0, err
    assert not (folder / "positions-0002.npz").exists()
    lost.close()
    job = self_play(folder, two_nodes)
    _, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 0, err
    assert training_state(folder) == trained


def test_a_cluster_requires_a_token(tmp_path, two_nodes):
    bare = {name: value for name, value in two_nodes.environment.items() if not name.startswith("RAY_AUTH")}
    bare["HOME"] = str(tmp_path)  # where Ray looks for a token
    head = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--port=0", "--block"]
    started = subprocess.run(head, env=bare | {"RAY_AUTH_MODE": "token"}, capture_output=True, text=True)
    assert started.returncode != 0
    assert "no authentication token was found" in started.stderr
    job = launch("label", tmp_path / "out", *LABEL, "--ray", two_nodes.address, cwd=tmp_path, env=bare)
    _, err = job.communicate(timeout=PATIENCE)
    assert (job.returncode, "RAY_AUTH_MODE=token" in err) == (2, True), err


def test_errors_of_workers_are_reported(two_nodes, tmp_path):
    """The program runs in its own process, because Ray leaves sockets and threads behind."""
    two_nodes.add()
    (tmp_path / "elsewhere.py").write_text("class Worker:\n    def __call__(self, job):\n        return job\n")
    module, out = "tests.train.jobs.failing_workers", tmp_path / "out"
    output_of("-m", module, two_nodes.address, tmp_path, out, **two_nodes.environment)
    two_nodes.kill()
    outcomes = json.loads(out.read_text())
    assert (outcomes["cuda"], outcomes["any"]) == (["cuda"], ["cpu", "cuda"])
    assert "elsewhere" in outcomes["module"]
    assert "0.0-another" in outcomes["build"]
    assert outcomes["closed"] == [True] * 20
    assert outcomes["refusal"].endswith(": I will not")
    assert "ZeroDivisionError" in outcomes["failure"]
    assert "WorkerCrashedError" in outcomes["death"]
    text, spec = outcomes["shipped"]  # workers have no file of that name
    assert text == "from here"
    assert re.fullmatch(r"x:weights=.*[0-9a-f]{64}\.txt", spec)
