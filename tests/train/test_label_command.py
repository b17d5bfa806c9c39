"""`reversi label`: interrupted, it goes on where it was; its output, and its one-line errors."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.cli.jobs import PATIENCE, REVERSI, held, wait_until
from train.labels import LabelOptions, read, read_manifest

#: What is written first of a shard.
PART = ".shard-*.part"
#: Positions of a job that no test waits for.
LONG = 60_000
COMMAND = ("--size", "6", "--count", str(LONG), "--empties", "9-11", "--shard-rows", "30")


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def shards(folder):
    """Those that the manifest has: a shard is in its place a moment before."""
    return len(read_manifest(folder).shards) if (folder / "manifest.json").exists() else 0


def start(code, *arguments):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], text=True, **pipes)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_says_how_far_it_came_and_the_same_command_goes_on(tmp_path):
    """Every run is interrupted while it is at its fourth shard: three more are there, and one that lacks only its name is not."""
    folder = tmp_path / "out"

    def interrupted_with(finished):
        job = start(held(REVERSI, PART, 4), "label", folder, *COMMAND)
        try:
            wait_until(lambda: shards(folder) == finished, job)
            job.send_signal(signal.SIGINT)
            out, err = job.communicate(timeout=PATIENCE)
        finally:
            job.kill()
        assert (job.returncode, out) == (130, "")
        assert err.endswith(f"stopped at {30 * finished} of {LONG} positions; the same command goes on\n")
        return err

    assert interrupted_with(3).startswith("stopped at ")
    assert "3 of 2000 shards, 90 positions; going on from there\n" in interrupted_with(6)
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
    assert "complete already" in err
    assert read(tmp_path / "out").rules.variant == "reversed"


def test_how_the_games_are_played(reversi, tmp_path):
    """The defaults of the command are those of the options, and what is given arrives."""
    assert reversi("label", tmp_path / "plain", "--count", 20, "-e", "5", "--size", 4)[0] == 0
    assert read_manifest(tmp_path / "plain").options == LabelOptions(size=4, count=20, empties=(5, 5))
    games = ("--play-depth", 3, "--noise", "0", "--temperature", "0,0.5", "--prefixes", "2,5")
    assert reversi("label", tmp_path / "other", "--count", 20, "-e", "5", "--size", 4, *games)[0] == 0
    options = read_manifest(tmp_path / "other").options
    assert (options.play_depth, options.noise, options.temperature, options.prefixes) == (3, (0.0,), (0.0, 0.5), (2, 5))


def test_a_table_for_people(reversi, tmp_path):
    arguments = (
        "label",
        tmp_path / "out",
        "--count",
        31,
        "-e",
        "10-12",
        "--labeller",
        "six-factor:exact=10",
        "--depth",
        2,
    )
    code, out, _ = reversi(*arguments)
    assert code == 0
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if line.startswith("│")]
    assert rows == [["10", "11", "exact"], ["11", "10", "depth 2"], ["12", "10", "depth 2"]]
    assert "positions/s" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--empties", "ten"), "--empties 'ten': expected a number or a range, as in 12 or 10-14"),
        (("--empties", "14-10"), "empties=14-10: expected a range from 1 to 59"),
        (("--count", "0"), "--count 0: expected 1 or more"),
        (("--size", "5"), "size 5 is not supported"),
        (("--depth", "4"), "--depth 4 with --labeller exact: expected an evaluator to search with"),
        (("--labeller", "discs:depth=2", "--depth", "4"), "expected the depth in one place"),
        (("--labeller", "six-facto"), "agent 'six-facto' is unknown (did you mean 'six-factor'?)"),
        (("--labeller", "discs", "--depth", "99"), "depth='99' of labeller 'discs:depth=99': expected"),
        (("--player", "nobody"), "evaluator 'nobody' is unknown"),
        (("--device", "tpu"), "device 'tpu': expected one of cpu, cuda"),
        (("--shard-rows", "0"), "--shard-rows 0: expected 1 or more"),
        (("--play-depth", "0"), "--play-depth 0: expected 1 or more"),
        (("--noise", "0.1,much"), "--noise '0.1,much': expected numbers with commas between them"),
        (("--temperature", "-1"), "expected one or more numbers from 0 to 1000"),
        (("--prefixes", "4,0.5"), "--prefixes '4,0.5': expected whole numbers with commas between them"),
    ],
)
def test_bad_input_is_one_clear_line(reversi, tmp_path, arguments, message):
    code, out, err = reversi("label", tmp_path / "out", "--count", 10, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()
