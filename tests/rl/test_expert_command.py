"""`reversi rl expert`: the folder, what is said, and Ctrl-C."""

import pytest
import torch

from tests.cli.jobs import interrupted
from train.rl.files import read_policy
from train.rl.options import ExpertOptions
from train.run import remembered

#: A run of seconds.
TINY = "--size 4 --iterations 2 --positions 60 --samples 1500 --channels 8 --blocks 1 --games 4"
HOW = ("--threads", 1, "--exam", 0)


@pytest.fixture(autouse=True)
def same_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
def test_the_command_trains_and_remembers(json_lines, reversi, tmp_path):
    out, cache = tmp_path / "run", tmp_path / "cache"
    (found,) = json_lines("rl", "expert", "--out", out, *TINY.split(), "--threads", 1, "--exam", 4, "--cache", cache)
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
    assert "was begun with seed=0: expected the same, not 7" in err


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path):
    command = ("rl", "expert", "--out", "run", *TINY.split(), *HOW, "--cache", "cache", "--samples", 100_000_000)
    status, _, err = interrupted((tmp_path / "run" / "labels-001.npz").exists, *command, cwd=tmp_path)
    assert (status, err) == (130, "stopped; go on with: reversi rl expert --out run --threads 1\n")
