"""The guide in docs/rl.md, followed as it stands but with fewer steps, and what else takes its time."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import httpx
import pytest

from tests.conftest import REPOSITORY
from train.rl.files import read_policy

#: What makes a training short.
SHORT = "--steps 4096 --envs 64 --rollout 16 --evaluate 2048 --snapshot 1024 --games 4 --opponent random --no-regret"
BIN = Path(sys.executable).parent


def environment(tmp_path):
    return os.environ | {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }


@pytest.fixture
def shell(tmp_path):
    """Run a command line of the guide; those that end in & go on until the test ends."""
    known = environment(tmp_path)
    running = []

    def start(command):
        process = subprocess.Popen(
            command, shell=True, cwd=tmp_path, env=known, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        running.append(process)
        return process

    def run(command):
        done = subprocess.run(command, shell=True, cwd=tmp_path, env=known, text=True, capture_output=True, timeout=300)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        return done.stdout

    run.start = start
    yield run
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def guide():
    text = (REPOSITORY / "docs" / "rl.md").read_text().split("<!-- guide:begin -->")[1].split("<!-- guide:end -->")[0]
    return [line for line in text.splitlines() if line and not line.startswith("```")]


@pytest.mark.slow
def test_the_guide_leads_to_an_agent_in_the_browser(shell, tmp_path):
    venv, install, train, *rest = guide()
    assert venv.startswith("python3 -m venv .venv")
    extras = re.search(r'"\.\[(.*)\]"', install)[1].split(",")
    known = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) <= set(known)
    assert train == "reversi rl --out runs/first"
    out = shell(f"{train} {SHORT}")
    assert "policy: runs/first/policy.zip" in out
    there = {path.name for path in (tmp_path / "runs" / "first").iterdir()}
    assert {"policy.zip", "curve.svg", "log.csv", "evaluations.csv", "run.json", "checkpoint.pt"} <= there
    *measures, serve, connect = rest
    for command in measures:
        few = "--positions 2 --empties 2-4" if "regret" in command else "--games 2"
        assert "6" in shell(re.sub(r" --games \d+", "", command) + f" {few}").splitlines()[0]
    assert serve == "reversi serve &"
    server = shell.start(f"exec {serve.removesuffix(' &')} --port 0 --workers 0")
    url = re.search(r"http://(\S+)", server.stdout.readline())
    assert "<html" in httpx.get(url[0]).text
    player = shell.start("exec " + connect.replace("127.0.0.1:8400", url[1]))
    player.stderr.readline()
    link = re.search(r"in a browser: (\S+)", player.stderr.readline())[1]
    assert link.startswith(f"{url[0]}/#join=")
    assert ".black." in link  # the guide's agent is white
    game = json.loads(
        shell(f"reversi connect {url[1]} --join {shlex.quote(link)} --agent random --json").splitlines()[-1]
    )
    assert game["role"] == "black"
    assert game["black"] + game["white"] <= 36
    out, _ = player.communicate(timeout=60)
    assert player.returncode == 0
    assert "score" in out


@pytest.mark.slow
@pytest.mark.long
def test_killed_and_interrupted_it_goes_on(shell, tmp_path):
    command = f"reversi rl --out run --size 4 --channels 4 --blocks 1 {SHORT} --steps 200000"
    policy = tmp_path / "run" / "policy.zip"
    steps = []
    for number in (signal.SIGKILL, signal.SIGINT):
        process = shell.start(f"exec {command}")
        before = policy.stat().st_mtime_ns if policy.exists() else 0
        while not policy.exists() or policy.stat().st_mtime_ns == before or read_policy(policy).record["steps"] < 2048:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        os.kill(process.pid, number)
        _, err = process.communicate(timeout=60)
        if number == signal.SIGINT:
            assert process.returncode == 130
            assert err.strip() == "stopped; go on with: reversi rl --out run"
        steps.append(read_policy(policy).record["steps"])
    assert 0 < steps[0] < steps[1] < 200_000
    done = json.loads(shell(f"reversi rl --out run --steps {steps[1] + 1024} --no-regret --json"))
    assert done["steps"] >= steps[1] + 1024


# --- bad input --------------------------------------------------------------------------------------


def test_a_file_is_no_folder(reversi, policy_file):
    status, _, err = reversi("rl", "--out", policy_file)
    assert status == 2
    assert "expected a folder" in err


# --- with and without search ------------------------------------------------------------------------


@pytest.mark.slow
def test_an_exam_shows_a_policy_with_and_without_search(reversi, policy_file, tmp_path):
    status, out, _ = reversi("rl", "exam", policy_file, "--games", 8, "--cache", tmp_path, "--json")
    assert status == 0
    players = json.loads(out)["players"]
    assert {"policy alone", "value, 1 ply", "value, 2 plies", "value, 2 plies, solver 10"} <= set(players)
    assert players["value, 2 plies, solver 10"]["regret"] < players["policy alone"]["regret"]
    status, _, err = reversi("rl", "exam", policy_file, "--games", 7)
    assert status == 2
    assert "--games 7: expected an even number" in err


def test_the_bench_compares_with_both_wrappers(reversi, monkeypatch):
    from play.bench import rl as speed

    figures = {"ours": 900.0, "dummy": 300.0, "subproc": 100.0}
    shares = {"step": 0.2, "opponents": 0.15}
    monkeypatch.setattr(
        speed, "measured", lambda kind, vector, updates: {"steps_per_second": figures[vector], **shares}
    )
    status, out, _ = reversi("bench", "rl", "--json")
    assert status == 0
    found = json.loads(out)["selfplay"]
    assert found["ratio"] == 3.0
    assert found["environment_share"] == pytest.approx(0.05)
    status, out, _ = reversi("bench", "rl")
    assert "3.0 times as fast" in out


@pytest.mark.slow
def test_the_bench_measures(shell):
    found = json.loads(shell(f"{sys.executable} -m play.bench.rl small ours 1").splitlines()[-1])
    assert found["steps_per_second"] > 100
    assert 0 < found["step"] < 0.5
