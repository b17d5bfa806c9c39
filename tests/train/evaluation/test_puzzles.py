"""Puzzles: packaged puzzles have one best move by the solver, and an interrupted run resumes to the same file."""

from dataclasses import replace

import numpy as np
import pytest

from models import human
from reversi_env import Rules
from reversi_env.errors import TrainError
from train.evaluation.exact_set import ILLEGAL, move_values
from train.evaluation.options import PuzzleOptions
from train.evaluation.puzzles import FILE, LOG, make_puzzles, packaged_puzzles


def assert_one_best_move(puzzles, rules):
    own, opp = (np.array([getattr(one.position, side) for one in puzzles], np.uint64) for side in ("own", "opp"))
    values = move_values(own, opp, rules).astype(np.int64)
    best = values.argmax(axis=1)
    ordered = np.sort(values, axis=1)
    assert [rules.name_of(int(action)) for action in best] == [one.move for one in puzzles]
    assert ordered[:, -1].tolist() == [one.value for one in puzzles]
    assert (ordered[:, -2] > ILLEGAL).all()  # there is a choice
    assert (ordered[:, -1] - ordered[:, -2]).tolist() == [one.margin for one in puzzles]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "count"),
    [(Rules(), 1000), (Rules(8, "reversed"), 300), (Rules(6), 300), (Rules(6, "reversed"), 300)],
    ids=str,
)
def test_packaged_puzzles_have_one_best_move_by_the_solver(rules, count):
    puzzles = packaged_puzzles(rules)
    assert len(puzzles) == count
    assert len({one.position.canonical() for one in puzzles}) == len(puzzles)
    assert {one.missed for one in puzzles} == set(range(1, 10))
    assert min(one.margin for one in puzzles) >= 4
    assert_one_best_move(puzzles, rules)


@pytest.mark.slow
def test_an_interrupted_run_resumes_to_the_same_file(tmp_path, monkeypatch):
    monkeypatch.setattr("train.evaluation.options.BATCH", 16)
    options = PuzzleOptions(6, "normal", 8, (5, 7), 4, 1)
    puzzles = make_puzzles(options, tmp_path / "whole")
    assert_one_best_move(puzzles, Rules(6))
    part = tmp_path / "part"
    make_puzzles(options, part)
    lines = (part / LOG).read_text().splitlines(keepends=True)
    assert len(lines) > 1
    (part / LOG).write_text("".join(lines[:-1]) + lines[-1][:5])  # killed while writing
    (part / FILE).unlink()
    assert make_puzzles(options, part) == puzzles
    for name in (LOG, FILE):
        assert (part / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    monkeypatch.setattr(human, "LEVELS", (replace(human.LEVELS[0], noise=0.1), *human.LEVELS[1:]))
    with pytest.raises(TrainError, match="human:level=1"):
        make_puzzles(options, part)
