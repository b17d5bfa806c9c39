"""The exact solver against plain minimax and the published scores of the FFO problems."""

import threading
from functools import partial
from importlib.resources import as_file, files

import numpy as np
import pytest

from reversi_env import Position, ReversiError, Rules, batch
from reversi_env.kernels.bitboard import flips
from reversi_env.notation import read_obf
from search.engine.solver import BATCH_CHUNK, Solver, solve, solve_all_moves, solve_batch
from search.engine.table import TranspositionTable
from search.engine.threads import make_thread_states
from search.engine.timer import StopSwitch
from search.kernels import endgame, last_squares
from tests.oracles import search as brute_force
from tests.oracles.jobs import PATIENCE, wait_until
from tests.oracles.processes import in_background, stopped_after
from tests.oracles.search import GAMES, endgames, game_name, positions

every_game = pytest.mark.parametrize("rules", GAMES, ids=game_name)
LONG = 30  # empty squares that take the solver longer than any test


def positions_with(empties, count, rules=GAMES[4], seed=0):
    own, opp = batch.random_positions(4 * count, rules.square_count - 4 - empties, rules, seed=seed)
    exactly = np.bitwise_count(own | opp) == rules.square_count - empties
    return positions(own[exactly][:count], opp[exactly][:count], rules)


@every_game
def test_last_square_flip_count_equals_board_flips(rules):
    generator = np.random.default_rng(3)
    for _ in range(2000):
        sq = rules.square_of(int(generator.integers(rules.square_count)))
        others = np.uint64(rules.playable) & ~(np.uint64(1) << np.uint64(sq))
        own = generator.integers(2**64, dtype=np.uint64) & others
        assert last_squares.count_flips(sq, own) == int(flips(sq, own, others & ~own)).bit_count()


@pytest.mark.parametrize(("count", "empties"), [(150, 7), pytest.param(1000, 10, marks=pytest.mark.slow)])
@every_game
def test_scores_equal_plain_minimax(rules, count, empties):
    own, opp = endgames(rules, count, empties)
    solver = Solver(rules, table=TranspositionTable(1))
    solved = [solver.solve(position).score for position in positions(own, opp, rules)]
    np.testing.assert_array_equal(solved, brute_force.values(own, opp, rules))


@pytest.mark.parametrize(("variant", "score"), [("normal", -10), ("reversed", 4)])
@pytest.mark.parametrize("threads", [1, 2])
def test_4x4_is_solved_from_the_start(variant, score, threads):
    start = Position.initial(Rules(4, variant))
    solution = solve(start, threads=threads)
    assert (solution.score, solution.lower, solution.upper) == (score, score, score)
    assert solve_all_moves(start) == dict.fromkeys(start.legal_moves(), score)  # the moves are symmetric


def test_short_ffo_problems(external_data):
    in_order = sorted((external_data / "ffo").glob("*.obf"), key=lambda path: int(path.stem.split("-")[1]))
    problems, solver = [problem for path in in_order for problem in read_obf(path)], Solver()
    assert len(problems) == 44
    for number in (*range(1, 26), 39):
        problem = problems[number - 1]
        solver.table.clear()
        assert solver.solve(problem.position).score == problem.best_score, number
        if problem.position.empties <= 15:
            assert solver.solve_all_moves(problem.position) == dict(problem.scores), number


@pytest.mark.slow
@pytest.mark.parametrize(("evaluator", "count", "most"), [(None, 2, 68_000_000), ("network", 5, 53_000_000)])
def test_ffo_problems_40_to_44(evaluator, count, most):
    with as_file(files("reversi_env").joinpath("data/ffo-40-44.obf")) as path:
        problems = list(read_obf(path))
    solver, nodes = Solver(table=TranspositionTable(256), evaluator=evaluator), 0
    assert len(problems) == 5
    for problem in problems[:count]:
        solver.table.clear()
        solution = solver.solve(problem.position)
        assert solution.score == problem.best_score
        nodes += solution.nodes
    assert nodes <= most


@every_game
def test_solve_all_moves_gives_exact_values_best_first(rules):
    for position in positions(*endgames(rules, 20, 6, seed=2), rules):
        values = solve_all_moves(position)
        assert values == {move: -brute_force.value(position.play(move)) for move in position.legal_moves()}
        assert list(values.values()) == sorted(values.values(), reverse=True)


@every_game
def test_wld_result_is_sign_of_score_with_an_optimal_move(rules):
    solver = Solver(rules, table=TranspositionTable(1))
    draws = 0
    for position in positions(*endgames(rules, 90, 8, seed=3), rules):
        result, score = solver.solve(position, wld=True), brute_force.value(position)
        assert (result.score, result.proven) == (np.sign(score), True)
        assert (result.move is None) == position.is_over()
        if result.move:
            assert np.sign(-brute_force.value(position.play(result.move))) == result.score
        draws += score == 0
    assert draws > 0


@pytest.mark.parametrize("rules", GAMES[2:4], ids=game_name)
def test_guess_window_and_wrong_hints_do_not_change_score(rules):
    misleading, misled = TranspositionTable(0.01), Solver(rules, table=TranspositionTable(0.1))
    misleading.words()[:] = np.random.default_rng(0).integers(0, 2**64, misleading.words().size, np.uint64)
    for position in positions(*endgames(rules, 20, 9, seed=4), rules):
        score = brute_force.value(position)
        most = rules.square_count
        for guess in (-most, score - 1, score, score + 1, 3, most, 1000):
            assert Solver(rules, table=TranspositionTable(0.1)).solve(position, guess=guess).score == score
        for window in ((score, score), (score - 2, score), (score, score + 2), (score - 1, score + 1), (-most, score)):
            if -most <= window[0] and window[1] <= most:
                assert Solver(rules, table=TranspositionTable(0.1)).solve(position, window=window).score == score
        misled.prepare_search(hints=misleading)
        assert misled.solve_at(position, endgame.EXACT_LEVEL, 0).score == score


def test_invalid_input_is_rejected():
    position = positions_with(9, 1)[0]
    score = solve(position).score
    assert score < 40
    with pytest.raises(ReversiError, match=r"window \(62, 64\)"):
        Solver().solve(position, window=(62, 64))  # the score is far outside this window
    for window in ((4, 2), (-66, 0), (0, 65), (0.5, 2), ("a", "b"), (1,), (0, 2, 4), 3, (False, True)):
        with pytest.raises(ReversiError, match=r"window .*"):
            Solver().solve(position, window=window)
    assert Solver().solve(position, guess=10**30).score == score
    for wrong in ({"guess": 1.5}, {"guess": "x"}, {"node_limit": 1 << 63}, {"node_limit": True}):
        with pytest.raises(ReversiError, match=f"{next(iter(wrong))}="):
            Solver().solve(position, **wrong)
    for threads in (0, -1, 1.5, True, 2000, None):
        with pytest.raises(ReversiError, match="threads=.*"):
            Solver(threads=threads)


@every_game
def test_pv_is_legal_and_reaches_the_score(rules):
    solver = Solver(rules, table=TranspositionTable(0.01))
    passes = 0
    for position in positions(*endgames(rules, 60, 10, seed=5), rules):
        solution = solver.solve(position)
        last = position.play_all(solution.pv)
        assert last.is_over()
        assert last.score(position.turn) == solution.score
        assert solution.move == (solution.pv[0] if solution.pv else None)
        passes += "pass" in solution.pv
    assert passes > 0


@every_game
def test_finished_game_and_pass_at_the_root(rules):
    over = Position.from_text("X" * (rules.square_count - 2) + "--", rules=rules)
    solution = solve(over)
    assert (solution.score, solution.move, solution.pv) == (rules.sign * rules.square_count, None, ())
    assert solve_all_moves(over) == {}
    assert solve(over, wld=True).score == rules.sign
    must_pass = [p for p in positions(*endgames(rules, 1500, 8, seed=6), rules) if p.must_pass()][:8]
    assert len(must_pass) == 8
    for position in must_pass:
        solution = solve(position, table=TranspositionTable(0.1))
        assert solution.score == brute_force.value(position)
        assert (solution.move, solution.pv[0]) == ("pass", "pass")
        assert solve_all_moves(position, table=TranspositionTable(0.1)) == {"pass": solution.score}


def test_table_of_another_game_is_rejected():
    table = TranspositionTable(0.1)
    solve(positions_with(8, 1, Rules(6))[0], table=table)
    for rules in (Rules(8), Rules(6, "reversed")):
        with pytest.raises(ReversiError, match="6x6 normal"):
            solve(positions_with(8, 1, rules)[0], table=table)


@every_game
def test_stability_bounds_hold_and_cut_in_both_variants(rules):
    """The bound depends on the variant: in the reversed game, own stable discs lower the score."""
    own, opp = endgames(rules, 1200, 8, seed=7)
    (thread,) = thread_states = make_thread_states(rules, 1)
    table, net = TranspositionTable(0.1), np.zeros(1, endgame.NO_EVALUATOR)[0]
    table.attach(thread_states, "exact values")
    scores, empties = brute_force.values(own, opp, rules), rules.square_count - np.bitwise_count(own | opp).astype(int)
    tight = triggered = 0
    for sides, score, count in zip(zip(own, opp, strict=True), scores, empties.tolist(), strict=True):
        bound = int(endgame.stability_upper_bound(thread, *sides))
        assert score <= bound
        tight += score == bound
        if count > endgame.PARITY_EMPTIES and endgame.STABILITY_THRESHOLDS[count] <= bound < rules.square_count:
            thread["nodes"] = 0
            assert endgame.null_window(thread, net, *sides, bound, count) == bound
            assert thread["nodes"] == 1
            triggered += 1
    assert tight > 50
    assert triggered > 5 or rules.size == 4


@pytest.mark.parametrize("threads", [1, 3, None])
@pytest.mark.parametrize("rules", [GAMES[1], GAMES[4]], ids=game_name)
def test_solve_batch_equals_single_solves_and_reports_progress(rules, threads):
    own, opp = endgames(rules, 300, 8, seed=8)
    reports = []
    scores = solve_batch(own, opp, rules, threads=threads, progress=reports.append)
    np.testing.assert_array_equal(scores, brute_force.values(own, opp, rules))
    assert scores.dtype == np.int8
    assert len(reports) > 2
    assert reports == sorted(reports)
    assert reports[-1] == 300


def test_empty_and_invalid_batches():
    nothing = np.zeros(0, np.uint64)
    assert solve_batch(nothing, nothing).size == 0
    with pytest.raises(ReversiError, match="position 0"):
        solve_batch(np.array([3], np.uint64), np.array([1], np.uint64))
    with pytest.raises(ReversiError, match="threads=0: expected"):
        solve_batch(nothing, nothing, threads=0)


def test_interrupted_batch_stops_its_threads(monkeypatch):
    """Every thread gets a stop flag, because a solve may take hours."""
    own, opp = batch.random_positions(BATCH_CHUNK * 2, 46)
    begun = threading.Barrier(2)

    def stopped(thread_states, nets, own, opp, scores):
        if begun.wait(PATIENCE) == 0:  # one of the two threads returns immediately
            return
        wait_until(lambda: thread_states["stop"][0])

    def fail(done):
        raise KeyboardInterrupt

    monkeypatch.setattr(endgame, "solve_many", stopped)
    with pytest.raises(KeyboardInterrupt):
        solve_batch(own, opp, threads=2, progress=fail)


def test_thread_count_does_not_change_scores():
    for rules in (Rules(8), Rules(8, "reversed")):
        for position in positions_with(16, 6, rules, seed=9):
            solutions = [solve(position, threads=threads, table=TranspositionTable(1)) for threads in (1, 2, 8)]
            assert len({solution.score for solution in solutions}) == 1, position
            for solution in solutions:
                assert solution.proven
                assert position.play_all(solution.pv).score(position.turn) == solution.score


@pytest.mark.parametrize("shared", ["table", "solver"])
def test_scores_are_exact_with_shared_table_or_solver(shared):
    """Every thread solves all positions in another order, with one table or with one solver, which queues requests."""
    own, opp = batch.random_positions(60, 49, seed=10)
    expected, solver = solve_batch(own, opp).tolist(), Solver(table=TranspositionTable(0.02))

    def work(number):
        mine = solver if shared == "solver" else Solver(table=solver.table)
        order = np.random.default_rng(number).permutation(own.size)
        scores = {i: mine.solve(Position(Rules(), int(own[i]), int(opp[i]))).score for i in order}
        return [scores[i] for i in range(own.size)]

    futures = [in_background(partial(work, number)) for number in range(8)]
    assert [future.result(PATIENCE) for future in futures] == [expected] * 8


def test_stop_request_survives_release_of_stop_flags():
    """Search threads set and clear the stop flags; that must not clear a stop request of the user."""
    thread_states = make_thread_states(Rules(), 3)
    switch = StopSwitch(thread_states)
    switch.halt()
    assert thread_states["stop"].all()
    switch.release()
    assert not thread_states["stop"].any()
    switch.request()
    switch.release()
    assert thread_states["stop"].all()
    switch.withdraw()
    assert not thread_states["stop"].any()


def test_bounds_are_readable_while_solving_and_stop_ends_it():
    """A stop must end the whole call, not only the move that is being solved."""
    solver, position = Solver(table=TranspositionTable(4)), positions_with(LONG, 1)[0]
    solving = in_background(lambda: solver.solve(position))
    wait_until(lambda: solver.bounds()[2] > 1000)
    lower, upper, nodes = solver.bounds()
    assert not solving.done()
    solver.stop()
    assert -64 <= lower < upper <= 64
    assert solving.result(PATIENCE).nodes >= nodes
    values, _ = stopped_after(500_000, [solver.thread_states], solver.stop, lambda: solver.solve_all_moves(position))
    assert values == {}


@pytest.mark.parametrize("threads", [1, 2])
def test_bounds_are_correct_under_a_node_limit(threads):
    solver = Solver(threads=threads, table=TranspositionTable(1))
    proven = 0
    for position in positions_with(16, 4, seed=12):
        full = solve(position)
        for limit in (0, 1, 10, 1000, full.nodes // 4, full.nodes // 2, full.nodes, 2 * full.nodes):
            solver.table.clear()
            solution = solver.solve(position, node_limit=limit)
            assert solution.lower <= full.score <= solution.upper
            assert solution.nodes <= threads * (limit + 2000)
            assert solution.move in position.legal_moves()
            if solution.pv:
                assert solution.proven
                assert -solve(position.play(solution.move)).score == full.score
            proven += solution.proven
    assert 4 <= proven < 32


@pytest.mark.parametrize(("variant", "order"), [("normal", "network"), ("reversed", "network"), ("normal", None)])
def test_best_move_with_and_without_known_score(variant, order):
    """With this many empties and a network for move ordering, the solver begins with selective searches."""
    rules = Rules(6, variant)
    solver, reference = Solver(rules, evaluator=order, table=TranspositionTable(4)), Solver(rules, evaluator="network")
    for boards in zip(*batch.random_positions(12, 16, rules, seed=3), strict=True):
        position = Position(rules, *map(int, boards))
        score = reference.solve(position).score
        for known in (None, score):
            solver.clear()
            move = solver.best_move(position, known)
            assert -reference.solve(position.play(move)).score == score
