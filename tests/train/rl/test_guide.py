"""The guide docs/guide/rl.md run with fewer steps; the exam and the benchmark of policies."""

import json
import re
import shlex
import tomllib

import httpx
import pytest

from tests.conftest import REPOSITORY
from tests.oracles.jobs import PATIENCE, launched
from tests.oracles.processes import output_of
from tests.play.cli.test_contract import check_refusal
from tests.project.test_docs import rl_guide, shortened


@pytest.mark.slow
def test_the_rl_guide_ends_with_a_game_in_the_browser(tmp_path, reversi, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def shell(command):
        """Run a command in this process, since the import of torch takes seconds; return its output."""
        program, *words = shlex.split(command)
        status, out, err = reversi(*words)
        assert (program, status) == ("reversi", 0), f"{command}\n{err}"
        return out

    venv, install, train, *measures, serve, connect = rl_guide()
    assert venv.startswith("python3 -m venv .venv")
    extras = re.search(r'"\.\[(.*)\]"', install)[1].split(",")
    known = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) <= set(known)
    assert train == "reversi train ppo --out runs/first --size 6"
    assert "policy: runs/first/policy.safetensors" in shell(shortened(train))
    assert (tmp_path / "runs" / "first" / "curve.svg").exists()
    for command in measures:
        assert re.search("6[x×]6", shell(shortened(command)))
    assert serve == "reversi serve &"
    server_options = ("--port", 0, "--workers", 0, "--database", "games")
    with launched("serve", *server_options, cwd=tmp_path) as server:
        url = re.search(r"http://(\S+)", server.stdout.readline())
        assert "<html" in httpx.get(url[0]).text
        words = shlex.split(connect.replace("127.0.0.1:8400", url[1]))[1:]
        with launched(*words, cwd=tmp_path) as player:
            player.stderr.readline()
            link = re.search(r"in a browser: (\S+)", player.stderr.readline())[1]
            assert link.startswith(f"{url[0]}/#join=")
            assert ".black." in link  # the guide's agent is white
            answer = shell(f"reversi connect {url[1]} --join {shlex.quote(link)} --agent random --json")
            out, _ = player.communicate(timeout=PATIENCE)
    game = json.loads(answer.splitlines()[-1])
    assert game["role"] == "black"
    assert game["black"] + game["white"] <= 36
    assert player.returncode == 0
    assert "Game over" in out


@pytest.mark.slow
def test_the_exam_measures_a_policy_with_and_without_search(reversi, json_lines, policy_file, tmp_path):
    [result] = json_lines("exam", policy_file, "--games", 8, "--cache", tmp_path)
    players = result["players"]
    assert {"policy alone", "value, 1 ply", "value, 2 plies", "value, 2 plies, solver 10"} <= set(players)
    assert players["value, 2 plies, solver 10"]["regret"] < players["policy alone"]["regret"]
    check_refusal(reversi, ("exam", policy_file, "--games", 7), "--games 7")


@pytest.mark.slow
def test_the_ppo_benchmark_measures_a_rate():
    assert json.loads(output_of("-m", "benchmarks.rl", "ours", "1")[-1]) > 0
