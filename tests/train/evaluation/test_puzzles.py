"""Puzzles: the package's have one best move each by the solver, and a run that is stopped goes on to the same file."""

from dataclasses import replace

import numpy as np
import pytest

from models import human
from reversi_env import Rules
from reversi_env.errors import TrainError
from train.evaluation.exact_set import ILLEGAL, move_values
from train.evaluation.options import PuzzleOptions
from train.evaluation.puzzles import FILE, LOG, make_puzzles, packaged_puzzles


def assert_one_best_move(found, rules):
    own, opp = (np.array([getattr(one.position, side) for one in found], np.uint64) for side in ("own", "opp"))
    values = move_values(own, opp, rules).astype(np.int64)
    best = values.argmax(axis=1)
    ordered = np.sort(values, axis=1)
    assert [rules.name_of(int(action)) for action in best] == [one.move for one in found]
    assert ordered[:, -1].tolist() == [one.value for one in found]
    assert (ordered[:, -2] > ILLEGAL).all()  # there is a choice
    assert (ordered[:, -1] - ordered[:, -2]).tolist() == [one.margin for one in found]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "count"),
    [(Rules(), 1000), (Rules(8, "reversed"), 300), (Rules(6), 300), (Rules(6, "reversed"), 300)],
    ids=str,
)
def test_every_puzzle_of_the_package_has_one_best_move_by_the_solver(rules, count):
    found = packaged_puzzles(rules)
    assert len(found) == count
    assert len({one.position.canonical() for one in found}) == len(found)
    assert {one.missed for one in found} == set(range(1, 10))
    assert min(one.margin for one in found) >= 4
    assert_one_best_move(found, rules)


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_to_the_same_file(tmp_path, monkeypatch):
    monkeypatch.setattr("train.evaluation.options.BATCH", 16)
    options = PuzzleOptions(6, "normal", 8, (5, 7), 4, 1)
    found = make_puzzles(options, tmp_path / "whole")
    assert_one_best_move(found, Rules(6))
    part = tmp_path / "part"
    make_puzzles(options, part)
    lines = (part / LOG).read_text().splitlines(keepends=True)
    assert len(lines) > 1
    (part / LOG).write_text("".join(lines[:-1]) + lines[-1][:5])  # killed while it wrote
    (part / FILE).unlink()
    assert make_puzzles(options, part) == found
    for name in (LOG, FILE):
        assert (part / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    monkeypatch.setattr(human, "LEVELS", (replace(human.LEVELS[0], noise=0.1), *human.LEVELS[1:]))
    with pytest.raises(TrainError, match="human:level=1"):
        make_puzzles(options, part)
