"""`ExactScores`: equality with plain minimax, and a cache that tolerates corruption and concurrent processes."""

from dataclasses import replace

import numpy as np
import pytest

from reversi_env import Position, Rules
from search import exact_scores
from search.engine.solver import Solver
from search.exact_scores import MIN_CACHED_EMPTIES, ExactScores
from tests.oracles.search import endgames, value
from train.book.options import SolvedBookOptions
from train.book.solved import solve_book
from train.jobs.processes import LocalExecutor

RULES = [Rules(4), Rules(4, "reversed"), Rules(6), Rules(6, "reversed")]


def positions(rules, count, empties):
    return [Position(rules, *map(int, boards)) for boards in zip(*endgames(rules, count, empties, 3), strict=True)]


def near_the_start():
    """Return two 4x4 positions that the cache stores."""
    start = Position.initial(Rules(4))
    return [start, start.play(start.legal_actions()[0])]


@pytest.fixture
def disable_solver(monkeypatch):
    """Disable the book; the function of this fixture also disables the solver."""
    monkeypatch.setattr(exact_scores, "packaged_book", lambda rules: None)

    def refuse(self, *arguments):
        raise AssertionError("solved again")

    return lambda: monkeypatch.setattr(Solver, "narrow", refuse)


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_values_equal_minimax(rules, tmp_path):
    scores, judged = ExactScores(rules, tmp_path, order=False), 0
    for position in positions(rules, 60, 8):
        assert scores.score(position) == value(position)
        if position.is_over() or position.must_pass():
            continue
        values = {action: -value(position.play(action)) for action in position.legal_actions()}
        assert scores.move_values(position) == values
        assert values[scores.best_action(position)] == max(values.values())
        judged += len(set(values.values())) > 1
    assert judged > 5


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_narrow_returns_correct_bounds(rules):
    solver = Solver(rules)
    for position in positions(rules, 30, 7):
        if position.is_over():
            continue
        exact = value(position)
        for low in range(exact - 6 - exact % 2, exact + 6, 2):
            low = max(-rules.square_count, min(rules.square_count - 2, low))
            lower, upper = solver.narrow(position, (low, low + 2))
            assert lower <= exact <= upper
            assert lower >= low + 2 or upper <= low


def test_full_cache_needs_no_solver_and_shares_symmetric_entries(tmp_path, disable_solver):
    scores = ExactScores(Rules(4), tmp_path)
    expected = [(scores.move_values(position), scores.best_action(position)) for position in near_the_start()]
    scores.write()
    again, position = ExactScores(Rules(4), tmp_path), near_the_start()[0]
    assert position.empties > MIN_CACHED_EMPTIES
    disable_solver()
    assert [(again.move_values(position), again.best_action(position)) for position in near_the_start()] == expected
    assert len({again.score(position.play(action)) for action in position.legal_actions()}) == 1
    with pytest.raises(AssertionError, match="solved again"):
        ExactScores(Rules(4, "reversed"), tmp_path).score(Position.initial(Rules(4, "reversed")))


def test_corrupted_lines_are_solved_again(tmp_path, disable_solver):
    first, second = near_the_start()
    scores = ExactScores(Rules(4), tmp_path)
    expected = scores.score(first)
    scores.write()
    (path,) = tmp_path.iterdir()
    with path.open("ab") as stream:
        stream.write(b"12 34 -16")  # an incomplete line of a killed process
    other = ExactScores(Rules(4), tmp_path)
    other.score(second)
    other.write()
    kept = path.read_bytes()
    scores.read()
    disable_solver()
    assert (scores.score(first), scores.score(second)) == (expected, -expected)  # all first moves are symmetric
    path.write_bytes(kept.replace(b" %d %d " % (expected, expected), b" 16 16 "))
    with pytest.raises(AssertionError, match="solved again"):
        ExactScores(Rules(4), tmp_path).score(first)


def test_unwritable_cache_folder_is_tolerated(tmp_path):
    (tmp_path / "file").write_text("")
    scores = ExactScores(Rules(4), tmp_path / "file")
    before = scores.score(near_the_start()[0])
    scores.write()
    assert ExactScores(Rules(4), tmp_path / "file").score(near_the_start()[0]) == before


def test_best_action_is_optimal_with_network_move_ordering(tmp_path):
    scores = ExactScores(Rules(6), tmp_path)
    for position in positions(Rules(6), 20, 9):
        if not position.is_over() and not position.must_pass():
            values = [-value(position.play(action)) for action in position.legal_actions()]
            chosen = position.legal_actions().index(scores.best_action(position))
            assert values[chosen] == np.max(values)


def test_positions_of_solved_book_need_no_solver(tmp_path, disable_solver, monkeypatch):
    book = solve_book(SolvedBookOptions(4, plies=2), tmp_path / "book", executor=LocalExecutor(0))
    monkeypatch.setattr(exact_scores, "packaged_book", lambda rules: book)
    disable_solver()
    scores, start = ExactScores(Rules(4), tmp_path / "cache"), Position.initial(Rules(4))
    children = [start.play(action) for action in start.legal_actions()]
    assert [scores.score(position) for position in (start, *children)] == [
        int(book.find(position).value) for position in (start, *children)
    ]
    monkeypatch.setattr(exact_scores, "packaged_book", lambda rules: replace(book, about={}))  # a book of estimates
    with pytest.raises(AssertionError, match="solved again"):
        ExactScores(Rules(4), tmp_path / "cache").score(start)
