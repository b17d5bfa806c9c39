"""The examples run as they are, from any folder, and print what they promise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPECTED = {
    "random_rollout.py": ([], r"game over.*\nreward: (-1\.0|0\.0|1\.0)\s*$"),
    "pettingzoo_loop.py": (
        [],
        r"player_[01] gets (-1\.0|-?0\.0|1\.0)\nplayer_[01] gets (-1\.0|-?0\.0|1\.0)\n[\s\S]*game over",
    ),
    "vector_loop.py": ([], r"^\d+ games, [\d.]+ million plies/s\s*$"),
    "train_board_policy.py": (
        ["4096"],
        r"200 games against random: score [\d.]+%\n200 games against greedy: score [\d.]+%\s*$",
    ),
    "train_maskable_ppo.py": (
        ["4096"],
        r"random +[\d.]+%[\s\S]*\nElo above random: [\s\S]*\ngiven away: [\d.]+ discs a move",
    ),
}


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(EXPECTED)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * name.startswith("train_")) for name in EXPECTED]
)
def test_an_example(name, tmp_path):
    arguments, expected = EXPECTED[name]
    environment = os.environ | {
        "PYTHONPATH": str(EXAMPLES.parent),
        "PYTHONWARNINGS": "error::DeprecationWarning:__main__",
    }
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert re.search(expected, result.stdout), result.stdout
    assert list(tmp_path.iterdir()) == []
