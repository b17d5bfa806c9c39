"""`reversi solve`, `evaluate`, `analyse`: the JSON contract, bad lines, bad boards, and a long job that survives being killed."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from reversi_env import Position, Rules

#: FFO 20: six empties, +6 by h5.
PROBLEM = "XXXOXXXXOXXXXXXXOOXXXXXXOOOXXXXXOOOXXOO-OOOOO---OOOOOOO-OOOOOOO- X; H5:+6; G6:-2; F6:-4; H6:-10;"
SMALL = "XO-" + "-" * 13 + " X;"


def reversi(*arguments, text=None):
    command = [sys.executable, "-m", "play.cli", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True)


def json_lines(*arguments, text=None):
    result = reversi(*arguments, "--json", text=text)
    return [json.loads(line) for line in result.stdout.splitlines()], result


def test_solve_gives_an_object_a_line_and_goes_on_after_a_bad_one(tmp_path):
    file = tmp_path / "problems.obf"
    file.write_text(f"{PROBLEM}\n\ngarbage\n% a comment\n{SMALL}\n")
    lines, result = json_lines("solve", str(file))
    assert result.returncode == 1
    assert [line["line"] for line in lines] == [1, 3, 5]
    assert {"line", "score", "move", "nodes", "seconds"} <= lines[0].keys()
    assert (lines[0]["score"], lines[0]["move"]) == (6, "h5")
    assert lines[1].keys() == {"line", "error"}
    assert (lines[2]["score"], lines[2]["move"]) == (16, "c1")


def test_solve_reads_standard_input_and_gives_every_move():
    lines, result = json_lines("solve", "-", "--all-moves", "--threads", "2", text=PROBLEM)
    assert result.returncode == 0
    assert lines[0]["moves"] == [
        {"move": "h5", "score": 6},
        {"move": "g6", "score": -2},
        {"move": "f6", "score": -4},
        {"move": "h6", "score": -10},
    ]


def test_evaluate():
    lines, _ = json_lines("evaluate", "-", "--agent", "discs", text=f"{SMALL}\nnonsense\n")
    assert lines[0] == {"line": 1, "value": 0.0}
    assert lines[1]["line"] == 2
    assert "error" in lines[1]


def test_analyse():
    result = json_lines("analyse", "start", "--depth", "5", "--multi-pv", "4")[0][0]
    assert {"move", "value", "depth", "exact", "pv", "nodes", "seconds"} <= result.keys()
    assert result["depth"] == 5
    assert result["pv"][0] == result["move"]
    assert {entry["move"] for entry in result["moves"]} == {"d3", "c4", "f5", "e6"}
    board = Position.initial(Rules(6)).play("e4").to_text()
    assert json_lines("analyse", board, "O", "--depth", "3")[0][0]["move"] in ("c5", "e3", "e5")


@pytest.mark.parametrize(("variant", "score"), [("normal", -10), ("reversed", 4)])
def test_the_small_game_is_solved_from_the_start(variant, score):
    result = json_lines("solve", "--start", "--size", "4", "--variant", variant)[0][0]
    assert result["proven"]
    assert (result["score"], result["lower"], result["upper"]) == (score, score, score)


def test_a_killed_job_goes_on_from_its_checkpoint(tmp_path):
    checkpoint = tmp_path / "six.npz"
    arguments = (
        "solve",
        "--start",
        "--size",
        "6",
        "--table",
        "4",
        "--minutes",
        "0.01",
        "--checkpoint",
        str(checkpoint),
    )
    nodes = 0
    for _ in range(2):
        job = subprocess.Popen([sys.executable, "-m", "play.cli", *arguments], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not checkpoint.exists() or saved_nodes(checkpoint) <= nodes:  # it goes on from there, not from nothing
            assert job.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        job.send_signal(signal.SIGKILL)
        job.wait()
        nodes = saved_nodes(checkpoint)
    wrong_game = reversi(*arguments, "--variant", "reversed")
    assert wrong_game.returncode == 2
    assert "expected Rules(size=6, variant='reversed'" in wrong_game.stderr
    with checkpoint.open("r+b") as stream:
        stream.truncate(1000)
    broken = reversi(*arguments)
    assert broken.returncode == 2
    assert "cannot be read" in broken.stderr
    assert "Traceback" not in broken.stderr


def saved_nodes(checkpoint):
    with np.load(checkpoint) as saved:
        return json.loads(str(saved["header"]))["nodes"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("solve",), "expected either a FILE of problems or --start"),
        (("solve", f"no{os.sep}such.obf"), "No such file"),
        (("analyse", "XO"), "2 squares: expected 16, 36 or 64"),
        (("analyse", "X" * 64, "Z"), "side 'Z': expected X"),
        (("analyse", "start", "--agent", "greedy"), "does not search"),
        (("analyse", "start", "--time", "-1"), "time"),
        (("evaluate", "-", "--agent", "random"), "has no evaluation"),
        (("match", "six-factor:depth=-1", "random"), "depth='-1'"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, message):
    result = reversi(*arguments, text="")
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
