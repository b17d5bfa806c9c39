"""`reversi bench search`: one thread and all in turns, alone and beside a busy process, with the keys that scripts read."""

from itertools import count

import pytest

from benchmarks import search as speed
from benchmarks import timing, versus
from tests.conftest import REPOSITORY


def solved(seconds):
    return [{"problem": 40, "score": 38, "nodes": 1000, "seconds": seconds, "correct": True}]


def test_one_thread_and_all_take_turns_and_the_seconds_are_medians(monkeypatch):
    runs, number = [], count()

    def ffo(threads=1):
        runs.append(threads)
        return solved([5.0, 1.0, 6.0, 9.0, 4.0, 2.0][next(number)])

    monkeypatch.setattr(speed, "ffo", ffo)
    one, every = speed.ffo_in_turns(2, 3)
    assert runs == [1, 2, 1, 2, 1, 2]
    assert (one, every) == (solved(5.0), solved(2.0))


def test_the_busy_process_is_there_until_the_end():
    with timing.busy_process() as process:
        assert process.poll() is None
    assert process.returncode is not None


def test_the_json_tells_both_speedups(monkeypatch, json_lines):
    beside = iter([(solved(2.0), solved(1.0)), (solved(3.0), solved(2.0))])
    monkeypatch.setattr(speed, "ffo_in_turns", lambda threads, rounds: next(beside))
    monkeypatch.setattr(speed, "ffo", lambda threads=1, order=None: solved(1.0))
    for name in ("signature", "midgame_rate", "labels_per_second"):
        monkeypatch.setattr(speed, name, lambda *arguments: 1000)
    [found] = json_lines("bench", "search")
    assert found["thread_speedup"] == 2.0
    assert found["thread_speedup_beside_busy_process"] == 1.5
    assert found["ffo_seconds"] == 2.0


@pytest.mark.slow
def test_two_checkouts_search_the_same_in_turns(monkeypatch, json_lines):
    position = {"size": 4, "variant": "normal", "boards": [0x0000001008000000, 0x0000000810000000]}
    asked = [position | {"evaluator": "discs", "depth": 3}, position | {"evaluator": None, "depth": None}]
    monkeypatch.setattr(versus, "subjects", lambda: {"both": asked})
    [found] = json_lines("bench", "search", "--against", REPOSITORY, "--rounds", 2)
    assert found["both"]["same_values"]
    assert found["both"]["nodes_ratio"] == 1.0
    assert found["both"]["nodes"] > 100
    assert found["both"]["speed_ratio"] * found["both"]["seconds_ratio"] == pytest.approx(1.0)


def test_a_folder_without_a_checkout_is_refused(reversi, tmp_path):
    code, _, err = reversi("bench", "search", "--against", tmp_path)
    assert code == 2
    assert err == f"reversi: checkout {str(tmp_path)!r}: expected the folder of a clone of the project\n"
