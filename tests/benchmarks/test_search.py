"""`reversi bench search`: one thread and several in turns, alone and beside a busy process, with the keys that scripts read."""

from itertools import count

import pytest

from benchmarks import search as speed
from benchmarks import timing, versus
from search.engine.engine import Engine
from tests.conftest import REPOSITORY


def solved(seconds, nodes=1000):
    return [{"problem": 40, "score": 38, "nodes": nodes, "seconds": seconds, "correct": True}]


def test_one_thread_and_all_take_turns_and_the_figures_are_medians():
    runs, number = [], count()

    def search(threads):
        runs.append(threads)
        return solved([5.0, 1.0, 6.0, 9.0, 4.0, 2.0][next(number)], nodes=1000 + 100 * threads + len(runs))

    found = speed.in_turns(search, 2, 3)
    assert runs == [1, 2, 1, 2, 1, 2]
    assert (found["one"], found["every"]) == (solved(5.0, 1103), solved(2.0, 1204))
    assert (found["speedup"], found["nodes_ratio"]) == (2.5, 1204 / 1103)


@pytest.mark.slow
def test_the_midgame_is_searched_by_as_many_threads_as_asked_for(monkeypatch):
    monkeypatch.setattr(speed, "THREADS_DEPTH", 4)
    made = []
    monkeypatch.setattr(speed, "Engine", lambda *arguments, threads: made.append(threads) or Engine(*arguments))
    found = speed.midgame_to_depth(3)
    assert made == [3]
    assert len(found) == 16
    assert min(position["nodes"] for position in found) > 50


def test_the_busy_process_is_there_until_the_end():
    with timing.busy_process() as process:
        assert process.poll() is None
    assert process.returncode is not None


def test_the_json_tells_all_speedups_and_the_nodes_they_take(monkeypatch, json_lines):
    asked = []

    def in_turns(search, threads, rounds):
        asked.append((search, threads, rounds))
        return {
            "one": solved(2.0),
            "every": solved(1.0),
            "speedup": 1.0 + len(asked),
            "nodes_ratio": 1 + len(asked) / 10,
        }

    monkeypatch.setattr(speed, "in_turns", in_turns)
    monkeypatch.setattr(speed, "ffo", lambda threads=1, order=None: solved(1.0))
    for name in ("signature", "midgame_rate", "labels_per_second"):
        monkeypatch.setattr(speed, name, lambda *arguments: 1000)
    [found] = json_lines("bench", "search", "--threads", 5, "--rounds", 2)
    assert asked == [(search, 5, 2) for search in (speed.midgame_to_depth, speed.ffo, speed.ffo)]
    names = ("midgame_thread_speedup", "midgame_thread_nodes_ratio", "thread_speedup", "thread_nodes_ratio")
    assert [found[name] for name in names] == [2.0, 1.1, 3.0, 1.2]
    assert found["thread_speedup_beside_busy_process"] == 4.0
    assert (found["threads"], found["ffo_seconds"]) == (5, 2.0)


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
