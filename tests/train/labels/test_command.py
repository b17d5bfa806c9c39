"""`reversi label`: interrupted, it goes on where it was; its output, and its one-line errors."""

import json
import os

import pytest

from tests.oracles.jobs import REVERSI, held, interrupted
from train.labels import LabelOptions, read, read_manifest

#: What is written first of a shard.
PART = ".shard-*.part"
#: Positions of a job that no test waits for.
LONG = 60_000
COMMAND = ("--size", "6", "--count", str(LONG), "--empties", "9-11", "--shard-rows", "30")


def shards(folder):
    """Those that the manifest has: a shard is in its place a moment before."""
    return len(read_manifest(folder).shards) if (folder / "manifest.json").exists() else 0


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_says_how_far_it_came_and_the_same_command_goes_on(tmp_path):
    folder = tmp_path / "out"

    def interrupted_with(finished):
        command = ("label", folder, *COMMAND)
        status, out, err = interrupted(lambda: shards(folder) == finished, *command, code=held(REVERSI, PART, 4))
        assert (status, out) == (130, "")
        assert f"stopped at {30 * finished} of {LONG} positions" in err
        return err

    assert interrupted_with(3).startswith("stopped at ")
    assert "3 of 2000 shards, 90 positions; resuming\n" in interrupted_with(6)
    assert len(read(folder, partial=True)) == 30 * 6


def test_json(reversi, tmp_path):
    arguments = ("label", tmp_path / "out", "--count", 50, "-e", 6, "--size", 4, "-v", "reversed", "--json")
    code, out, err = reversi(*arguments)
    result = json.loads(out)
    assert (code, err) == (0, "")
    assert result.keys() == {
        *("folder", "positions", "shards", "resumed_from", "seconds", "positions_per_second", "by_empties")
    }
    assert (result["positions"], result["by_empties"]) == (50, [{"empties": 6, "positions": 50}])
    code, out, err = reversi(*arguments)
    assert (code, json.loads(out)["resumed_from"]) == (0, 50)
    assert "already complete" in err
    assert read(tmp_path / "out").rules.variant == "reversed"


def test_how_the_games_are_played(reversi, tmp_path):
    assert reversi("label", tmp_path / "plain", "--count", 20, "-e", "5", "--size", 4)[0] == 0
    assert read_manifest(tmp_path / "plain").options == LabelOptions(size=4, count=20, empties=(5, 5))
    games = ("--play-depth", 3, "--noise", "0", "--temperature", "0,0.5", "--opening-plies", "2,5")
    assert reversi("label", tmp_path / "other", "--count", 20, "-e", "5", "--size", 4, *games)[0] == 0
    options = read_manifest(tmp_path / "other").options
    assert (options.play_depth, options.noise, options.temperature, options.prefixes) == (3, (0.0,), (0.0, 0.5), (2, 5))
