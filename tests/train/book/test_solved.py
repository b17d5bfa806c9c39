"""Solved books and the agent `perfect`: scores by the solver, resumed runs, perfect play."""

from dataclasses import replace

import numpy as np
import pytest

from play.server.catalogue import book_sizes
from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import TrainError
from search.agents.book import UNITS_PER_DISC, read_book, solved_book
from search.agents.spec import make_agent
from search.engine.solver import Solver, solve_batch
from search.engine.table import TranspositionTable
from train.book.build import BOOK
from train.book.options import SolvedBookOptions
from train.book.solved import SCORES, PositionSolver, solve_book
from train.jobs.processes import LocalExecutor
from train.jobs.run import RUN

IN_PROCESS = LocalExecutor(0)


@pytest.fixture(scope="module", params=["normal", "reversed"])
def solved(request, tmp_path_factory):
    """A book of the first four plies of 4x4, and its folder."""
    folder = tmp_path_factory.mktemp(request.param)
    return solve_book(SolvedBookOptions(4, request.param, 4), folder, executor=IN_PROCESS), folder


def test_scores_equal_the_solver(solved):
    book, _ = solved
    scores = solve_batch(book.own, book.opp, book.rules)
    assert np.array_equal(book.value, UNITS_PER_DISC * scores.astype(int))
    empties = 16 - np.bitwise_count(book.own | book.opp)
    assert set(empties[book.depth == 0]) == {12, 11, 10, 9}
    assert np.array_equal(book.depth[empties == 8], empties[empties == 8])
    assert book.is_solved


@pytest.fixture
def solved_now(monkeypatch):
    """The positions that are solved from now on."""
    keys, solve = [], PositionSolver.__call__
    monkeypatch.setattr(PositionSolver, "__call__", lambda self, key: keys.append(key) or solve(self, key))
    return keys


def test_lost_scores_or_more_plies_give_the_same_bytes(solved, solved_now, tmp_path):
    book, folder = solved
    data, variant = (folder / BOOK).read_bytes(), book.rules.variant
    scores = (folder / SCORES).read_bytes()
    (folder / SCORES).write_bytes(scores[:-9])
    solve_book(SolvedBookOptions(4, variant, 4), folder, executor=IN_PROCESS)
    assert len(solved_now) == 1
    (folder / RUN).rename(tmp_path / RUN)
    with pytest.raises(TrainError, match=r"no run\.json"):  # the scores may be of another game
        solve_book(SolvedBookOptions(4, variant, 4), folder, executor=IN_PROCESS)
    (tmp_path / RUN).rename(folder / RUN)
    assert (folder / BOOK).read_bytes() == data
    for plies in (2, 4):
        solve_book(SolvedBookOptions(4, variant, plies), tmp_path, executor=IN_PROCESS)
    assert (tmp_path / BOOK).read_bytes() == data
    with pytest.raises(TrainError, match="plies"):
        solve_book(SolvedBookOptions(4, variant, 2), tmp_path, executor=IN_PROCESS)


def test_a_book_of_whole_games_solves_no_leaves(tmp_path):
    book = solve_book(SolvedBookOptions(4, plies=30), tmp_path, executor=IN_PROCESS)
    assert not (tmp_path / SCORES).exists()
    over = [row for row in range(len(book)) if Position(book.rules, int(book.own[row]), int(book.opp[row])).is_over()]
    rows = np.random.default_rng(0).choice(len(book), 200, replace=False)
    assert np.array_equal(
        book.value[rows], UNITS_PER_DISC * solve_batch(book.own[rows], book.opp[rows], book.rules).astype(int)
    )
    assert (book.depth[over] == [16 - int(book.own[row] | book.opp[row]).bit_count() for row in over]).all()


def test_a_book_of_both_starts_has_the_positions_of_each(tmp_path):
    books = {}
    for start in ("standard", "parallel", "both"):  # of 4x4, in one folder
        book = books[start] = solve_book(SolvedBookOptions(4, start=start, plies=3), tmp_path, executor=IN_PROCESS)
        scores = solve_batch(book.own, book.opp, book.rules)
        assert np.array_equal(book.value, UNITS_PER_DISC * scores.astype(int))
        assert [book.find(Position.initial(Rules(4, start=name))) is not None for name in ("standard", "parallel")] == [
            start != "parallel",
            start != "standard",
        ]
    boards = {start: {*zip(book.own.tolist(), book.opp.tolist(), strict=True)} for start, book in books.items()}
    assert boards["both"] == boards["standard"] | boards["parallel"]
    assert boards["standard"] != boards["parallel"]


def test_a_solved_book_plays_only_the_best_moves(solved):
    book, folder = solved
    solver, seen = Solver(book.rules), set()
    for row in np.flatnonzero(book.depth == 0)[:40]:
        position = Position(book.rules, int(book.own[row]), int(book.opp[row]))
        values = solver.solve_all_moves(position)
        moves = book.moves(position)
        assert {move.move: move.value for move in moves} == values
        assert {move.move for move in moves if move.plays} == {
            move for move, value in values.items() if value == max(values.values())
        }
        seen |= {move.plays for move in moves}
    assert seen == {False, True}
    assert read_book(folder / BOOK).is_solved


@pytest.mark.parametrize("with_book", [False, True])
def test_perfect_loses_nothing(solved, with_book):
    book, folder = solved
    spec = f"perfect:seed=3,table=1{f',book={folder / BOOK}' if with_book else ''}"
    agent, solver = make_agent(spec), Solver(book.rules)
    assert agent.content_hashes(book.rules) == ({"book": book.sha256} if with_book else {})
    for seed in range(8):
        opponent, position = make_agent("random", seed=seed), Position.initial(book.rules)
        for ply in range(100):
            if position.is_over():
                break
            player = (agent, opponent)[(ply + seed) % 2]
            action = player.choose(position)
            if player is agent and not position.must_pass():
                assert -solver.solve(position.play(action)).score == solver.solve(position).score
            position = position.play(action)
    six, agent = Rules(6, variant=book.rules.variant), make_agent("perfect:table=1")
    late = next(at for at in random_line(six, 5) if at.empties == 9 and not at.must_pass())
    assert -Solver(six).solve(late.play(agent.choose(late))).score == Solver(six).solve(late).score
    for call in (lambda: agent.check(Rules(8)), lambda: agent.choose(Position.initial())):
        with pytest.raises(ReversiError, match="8x8"):
            call()


def test_perfect_refuses_a_book_with_estimates(solved, tmp_path):
    book, _ = solved
    path = tmp_path / "estimates.safetensors"
    path.write_bytes(replace(book, about={}).to_bytes())
    with pytest.raises(ReversiError, match="estimates"):
        make_agent(f"perfect:book={path}").prepare(book.rules)


#: The games with packaged solved books, and the values of their starts under perfect play (docs/lab/solved.md).
PACKAGED = [Rules(6), Rules(6, "reversed")]
STARTS = {"normal": -4, "reversed": 2}


@pytest.mark.parametrize("rules", PACKAGED, ids=str)
def test_only_perfect_uses_the_packaged_book_by_default(rules):
    book, agent = solved_book(rules), make_agent("perfect:table=1")
    assert agent.content_hashes(rules) == {"book": book.sha256}
    start = Position.initial(rules)
    assert book.find(start).value == STARTS[rules.variant]
    assert "book=yes" not in make_agent("network:depth=1").content_hashes(rules)
    assert make_agent("network:depth=1").search(start).nodes > 0
    result = make_agent("network:depth=1,book=yes").search(start)
    assert (result.value, result.nodes, result.exact) == (STARTS[rules.variant], 0, True)
    assert -book.find(start.play(agent.choose(start))).value == STARTS[rules.variant]
    assert book_sizes() == [8]  # agents on the web page use no solved book


@pytest.mark.slow
@pytest.mark.parametrize("rules", PACKAGED, ids=str)
def test_packaged_scores_are_the_best_of_their_moves(rules):
    book = solved_book(rules)
    for row in np.flatnonzero(book.depth == 0):
        position = Position(rules, int(book.own[row]), int(book.opp[row]))
        scores = [-book.find(position.play(action)).value for action in position.legal_actions()]
        assert max(scores) == book.find(position).value
    if rules.variant == "normal":
        replies = book.moves(Position.initial(rules).play("c2"))
        assert {move.move: move.value for move in replies} == {"b4": 4, "d2": 2, "b2": -20}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "count"),
    [("normal", 2), *(pytest.param(*one, marks=pytest.mark.long) for one in [("normal", 300), ("reversed", 10)])],
)
def test_last_ply_entries_equal_an_independent_solver(variant, count):
    """The solver has no network and sees a symmetric image. The small run takes the highest wins, which solve fastest."""
    rules = Rules(6, variant)
    book, solver = solved_book(rules), Solver(rules, table=TranspositionTable(64))
    last = np.flatnonzero(book.depth)
    highest = last[np.argsort(-book.value[last], kind="stable")][:count]
    for row in highest if count == 2 else np.random.default_rng(2026).choice(last, count, replace=False):
        position = Position(rules, int(book.own[row]), int(book.opp[row])).transformed(3)
        solution = solver.solve(position, guess=int(book.value[row]) // UNITS_PER_DISC)
        assert UNITS_PER_DISC * solution.score == book.value[row]


def random_line(rules, seed):
    """Return the positions of a random game."""
    agent, position = make_agent("random", seed=seed), Position.initial(rules)
    while not position.is_over():
        yield position
        position = position.play(agent.choose(position))


def test_a_book_of_8x8_is_refused():
    with pytest.raises(TrainError, match="size 8"):
        SolvedBookOptions(8)
