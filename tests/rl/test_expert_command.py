"""`reversi rl expert`: the folder, what is said, and Ctrl-C."""

import signal

import pytest
import torch

from tests.cli.jobs import PATIENCE, REVERSI, wait_until
from tests.train.kills import start
from train.rl.expert_options import ExpertOptions
from train.rl.files import read_policy
from train.run import remembered

#: A run of seconds.
TINY = (
    "--size",
    4,
    "--iterations",
    2,
    "--positions",
    60,
    "--samples",
    1500,
    "--channels",
    8,
    "--blocks",
    1,
    "--games",
    4,
)
HOW = ("--threads", 1, "--exam", 0)


@pytest.fixture(autouse=True)
def same_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
def test_the_command_trains_and_remembers(json_lines, reversi, tmp_path):
    out, cache = tmp_path / "run", tmp_path / "cache"
    (found,) = json_lines("rl", "expert", "--out", out, *TINY, "--threads", 1, "--exam", 4, "--cache", cache)
    assert found["policy"] == str(out / "policy.safetensors")
    assert len(found["figures"]) == 2
    assert "policy alone" in found["exam"]["players"]
    assert remembered(out, ExpertOptions).positions == 60
    assert read_policy(out / "policy.safetensors").rules.size == 4
    status, told, _ = reversi("rl", "expert", "--out", out, *HOW, "--cache", cache)  # --out alone is enough
    assert status == 0
    assert f"rl:{out}/policy.safetensors" in told
    status, _, err = reversi("rl", "expert", "--out", out, "--seed", 7, *HOW, "--cache", cache)
    assert status == 2
    assert "was begun with seed=0" in err


def command(out, cache):
    return ["-c", REVERSI, "rl", "expert", "--out", out, *TINY, *HOW, "--cache", cache]


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path):
    job = start([*command("run", tmp_path / "cache"), "--samples", 100_000_000], tmp_path)
    labels = tmp_path / "run" / "labels-001.npz"
    try:
        wait_until(lambda: labels.exists() or job.poll() is not None)
        assert labels.exists(), job.communicate()[1]
        job.send_signal(signal.SIGINT)
        _, err = job.communicate(timeout=PATIENCE)
    finally:
        job.kill()
    assert job.returncode == 130
    assert err.strip() == "stopped; go on with: reversi rl expert --out run"
