"""Selectivity levels of endgame searches: each has a higher confidence than the one before, and the last is exact."""

import json

import numpy as np
import pytest

from reversi_env import Position, ReversiError, Rules
from reversi_env.rules import WHITE
from search.engine import deepening, probcut_fit
from search.engine import probcut as cuts_of
from search.engine import solver as solver_module
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.probcut import (
    END,
    EXACT_LEVEL,
    SELECTIVITIES,
    DepthPair,
    DeviationModel,
    ProbCutModel,
    Selectivity,
    endgame_probcut_depth,
)
from search.engine.solver import Solver
from search.engine.table import TranspositionTable
from search.kernels import table as core
from tests.search.engine.test_engine import first_position
from tests.search.engine.test_solver import positions_with

RULES = [Rules(6), Rules(8), Rules(6, "reversed"), Rules(8, "reversed")]
FOREVER = Limits(time=100_000)  # seconds: a time limit that is never reached


def solver_for(rules, **options):
    return Solver(rules, table=TranspositionTable(4), evaluator="network", **options)


@pytest.fixture
def all_levels(monkeypatch):
    """A function that makes engines that search every level; *stop_at*: the level at whose beginning they are stopped."""
    monkeypatch.setattr(deepening, "MAX_SOLVE_BUDGET", 0.0)
    monkeypatch.setattr(deepening, "MAX_FIRST_LEVEL_BUDGET", 1e9)

    def make(rules, stop_at=None):
        engine = Engine("network", rules, megabytes=4)
        solve_level = engine.solver.solve_at

        def solve_at(position, level, guess):
            if level == stop_at:
                engine.stop()
            return solve_level(position, level, guess)

        engine.solver.solve_at = solve_at
        return engine

    return make


@pytest.mark.parametrize("levels", [(0, EXACT_LEVEL), solver_module.LONG_LEVELS], ids=len)
@pytest.mark.parametrize("rules", RULES, ids=str)
def test_selectivity_levels_change_no_score(rules, levels, monkeypatch):
    if levels == solver_module.LONG_LEVELS:
        monkeypatch.setattr(solver_module, "LONG_EMPTIES", 16)
    plain, helped = Solver(rules, table=TranspositionTable(4)), solver_for(rules)
    assert helped.selective
    assert not solver_for(rules, selective=False).selective
    for position in positions_with(16, 3, rules, seed=5):
        result, score = helped.solve(position), plain.solve(position).score
        assert helped.selectivity_levels(position) == levels
        assert (result.score, result.confidence, result.proven) == (score, 100, True)
        assert helped.solve(position, wld=True).score == np.sign(score)


def test_each_level_has_its_confidence_and_the_last_is_exact():
    solver, position = solver_for(Rules()), positions_with(17, 1, Rules(), seed=3)[0]
    solver.prepare_search()
    result = [solver.solve_at(position, level, 0) for level in range(EXACT_LEVEL + 1)]
    assert [solution.confidence for solution in result] == [level.confidence for level in SELECTIVITIES]
    assert [solution.proven for solution in result] == [False] * EXACT_LEVEL + [True]
    assert result[-1].score == Solver().solve(position).score
    for solution in result:
        assert solution.move in position.legal_moves()
        assert solution.pv[0] == solution.move


def test_first_level_has_a_small_mean_error():
    """A ProbCut cut-off returns a bound on the predicted side."""
    solver, plain, errors = solver_for(Rules()), Solver(table=TranspositionTable(4)), []
    for position in positions_with(17, 12, Rules(), seed=3):
        solver.prepare_search()
        errors.append(abs(solver.solve_at(position, 0, 0).score - plain.solve(position).score))
    assert np.mean(errors) < 5


def test_a_huge_margin_prunes_nothing(monkeypatch):
    """No shallow search of ProbCut confirms a prediction, so that the first level has the exact score."""
    monkeypatch.setattr("search.engine.solver.SELECTIVITIES", (Selectivity(73, 1e6), *SELECTIVITIES[1:]))
    solver, plain = solver_for(Rules()), Solver(table=TranspositionTable(4))
    for position in positions_with(15, 4, Rules(), seed=3):
        solver.prepare_search()
        assert solver.solve_at(position, 0, 0).score == plain.solve(position).score


def test_only_the_exact_level_changes_the_bounds(monkeypatch):
    """`Solver.bounds` has only values that the exact level has proven."""
    solver, position = solver_for(Rules()), positions_with(17, 1, Rules(), seed=3)[0]
    seen, narrow_bounds = [], solver._narrow_bounds

    def watched(*arguments, selectivity):
        bounds = narrow_bounds(*arguments, selectivity=selectivity)
        seen.append((selectivity, solver.bounds()[:2]))
        return bounds

    monkeypatch.setattr(solver, "_narrow_bounds", watched)
    score = solver.solve(position, window=(-40, 40)).score
    assert seen == [(0, (-40, 40)), (EXACT_LEVEL, (score, score))]


def test_exact_level_ignores_table_entries_of_lower_levels():
    """With wrong endgame predictions, the exact level finds the exact score in the same table."""
    solver, wrong = solver_for(Rules()), 0
    solver.thread_states["end_shift"] = 20 * 128.0
    solver.thread_states["end_deviation"] = 1.0
    for position in positions_with(16, 6, Rules(), seed=7):
        solver.prepare_search()
        selective, score = solver.solve_at(position, 0, 0).score, Solver().solve(position).score
        assert solver.solve_at(position, EXACT_LEVEL, selective).score == score
        wrong += selective != score
    assert wrong


@pytest.mark.parametrize("rules", [Rules(6), Rules(8)], ids=str)
def test_engine_reaches_the_exact_level_with_enough_time(all_levels, rules):
    engine, position, solver = all_levels(rules), positions_with(15, 1, rules, seed=4)[0], Solver(rules)
    assert list(engine.selectivity_levels(position, FOREVER)) == list(range(EXACT_LEVEL + 1))
    result, score = engine.search(position, FOREVER), solver.solve(position).score
    assert (result.value, result.confidence, result.exact, result.depth) == (score, 100, True, 15)
    position = positions_with(13, 1, rules, seed=7)[0]
    result = engine.search(position, FOREVER, multi_pv=64)
    assert result.exact
    assert {entry.move: entry.value for entry in result.moves} == solver.solve_all_moves(position)


@pytest.mark.parametrize("multi_pv", [1, 64])
def test_result_of_last_completed_level_is_kept(all_levels, multi_pv):
    engine, position = all_levels(Rules(6), stop_at=2), positions_with(16, 1, Rules(6), seed=6)[0]
    result = engine.search(position, FOREVER, multi_pv=multi_pv)
    assert (result.confidence, result.exact, result.depth) == (87, False, 16)
    assert result.move in position.legal_moves()
    assert result.value == int(result.value)
    if multi_pv > 1:
        assert {entry.move for entry in result.moves} == set(position.legal_moves())


def test_best_move_is_found_with_a_filled_table():
    """After a multi-PV search the table answers every move; also in a lost position."""
    lost = Position.from_text("XXXXXXXX" * 5 + "XXXOOXXX" + "--------" * 2, WHITE)
    engine, solver = Engine("network", megabytes=4), Solver()
    for position in [*positions_with(16, 3, Rules(), seed=12), lost]:
        values = engine.search(position, Limits(empties_exact=16), multi_pv=64)
        result = engine.search(position, Limits(empties_exact=16))
        assert result.exact
        assert result.value == values.value == -solver.solve(position.play(result.move)).score


def test_proven_value_has_an_optimal_move_without_a_pv(monkeypatch):
    """Without iterative deepening, the first move of the list is the first move on the board."""
    engine, solver = Engine("network", megabytes=4), Solver()
    monkeypatch.setattr(deepening.Search, "_deepen_iteratively", lambda *arguments, **options: None)
    monkeypatch.setattr(engine.solver, "_principal_variation", lambda *arguments, **options: ())
    for position in positions_with(15, 4, Rules(), seed=14):
        result = engine.search(position, Limits(empties_exact=15))
        assert (result.exact, result.value) == (True, -solver.solve(position.play(result.move)).score)


def test_limits_and_forced_moves_disable_selectivity_levels(all_levels):
    engine, position = all_levels(Rules()), positions_with(20, 1, Rules())[0]
    forced = first_position(Rules(), lambda p: p.legal_board().bit_count() == 1 and p.empties > 10)
    assert engine.selectivity_levels(forced, FOREVER)
    assert not engine.selectivity_levels(forced, Limits(time=100_000, soft=1.0))
    assert engine.selectivity_levels(position, FOREVER)
    for limits in (Limits(depth=4), Limits(nodes=1000), Limits(time=9, depth=4), Limits(time=9, empties_exact=0)):
        assert not engine.selectivity_levels(position, limits)
    engine.set_probcut(0)
    assert not engine.selectivity_levels(position, FOREVER)
    assert list(engine.selectivity_levels(position, Limits(time=9, empties_exact=20))) == [EXACT_LEVEL]


def test_proven_win_is_played_without_exact_score(all_levels):
    solver = Solver(Rules(6))
    won = next(p for p in positions_with(14, 40, Rules(6), seed=9) if solver.solve(p).score >= 2)
    result = all_levels(Rules(6), stop_at=EXACT_LEVEL).search(won, FOREVER)
    assert result.confidence == 99
    assert solver.solve(won.play(result.move)).score <= -2


def test_endgame_fit_is_plausible_and_round_trips_json():
    sampled = positions_with(13, 40, Rules(), seed=2)
    ends = probcut_fit.fit_endgame("network", Rules(), sampled)
    assert ends.empties == (13, 13)
    assert [(pair.deep, pair.shallow) for pair in ends.pairs] == [(END, 2), (END, 4), (END, 6), (END, 8)]
    for pair in ends.pairs:
        assert 0.7 < pair.slope < 1.3
        assert 1 < ends.deviation(pair, 13) < 12
    assert ends.deviation(ends.pairs[0], 13) > ends.deviation(ends.pairs[3], 13)
    cuts = ProbCutModel((DepthPair(3, 1, 1.0, 0.0, 40),), DeviationModel(1.0, 0.0, 0.0, 0.0, 0.0), (10, 50), ends)
    assert cuts_of.from_table(json.loads(json.dumps(cuts_of.as_table(cuts)))) == cuts
    record = cuts_of.coefficients(cuts)
    assert [record["end_depth"][empties] for empties in (12, 13, 16, 21, 40)] == [0, 2, 4, 6, 6]
    assert [endgame_probcut_depth(empties) for empties in (12, 13, 16, 21, 40)] == [0, 2, 4, 6, 6]


@pytest.mark.parametrize(
    "wrong",
    [{"deep": 8}, {"shallow": 0}, {"shallow": END}, {"slope": 0.0}, {"shift": 65}, {"shift": 10**400}, {"odd": 1}],
)
def test_invalid_endgame_coefficients_are_rejected(wrong):
    good = ProbCutModel((DepthPair(END, 2, 1.0, 0.0, 40),), DeviationModel(1.0, 0.0, 0.0, 0.0, 0.0), (13, 18))
    table = cuts_of.as_table(ProbCutModel((DepthPair(3, 1, 1.0, 0.0, 40),), good.spread, (10, 50), good))
    assert cuts_of.from_table(table).ends == good
    table["ends"]["pairs"][0] |= wrong
    with pytest.raises(ReversiError, match="ProbCut coefficients"):
        cuts_of.from_table(table)


def test_shallow_table_keeps_the_latest_position_per_slot():
    words, generator, kept = np.zeros(core.SHALLOW_WORDS, np.uint64), np.random.default_rng(1), {}
    counts = generator.integers(core.MIN_SHALLOW_EMPTIES, core.MAX_SHALLOW_EMPTIES + 1, 300)
    boards = [(*generator.integers(1, (3, 2**62), dtype=np.uint64), count) for count in counts]  # own board: 1 or 2
    for number in generator.integers(300, size=5000):
        own, opp, count = boards[number]
        lower, upper, move = (int(generator.integers(*ends)) for ends in ((-64, 1), (1, 65), (0, 65)))
        at = int(core.shallow_slot(own, opp, count))
        known = kept[at] if at in kept and kept[at][0] == number else (number, -64, 64, core.NO_MOVE)
        kept[at] = (number, max(lower, known[1]), min(upper, known[2]), known[3] if move == core.NO_MOVE else move)
        core.shallow_store(words.ctypes.data, own, opp, lower, upper, move, count)
    assert 200 < len(kept) < 300
    for number, (own, opp, count) in enumerate(boards):
        data = core.shallow_probe(words.ctypes.data, own, opp, count)
        holder, *rest = kept.get(int(core.shallow_slot(own, opp, count)), (None,))
        assert bool(data) == (holder == number)
        if data:
            assert [core.lower_of(data), core.upper_of(data), core.move_of(data)] == rest


def test_shallow_table_entry_matches_both_boards():
    words, generator = np.zeros(core.SHALLOW_WORDS, np.uint64), np.random.default_rng(1)
    position, *others = generator.integers(2**62, size=(30_000, 2), dtype=np.uint64)
    core.shallow_store(words.ctypes.data, *position, -1, 1, core.NO_MOVE, core.MIN_SHALLOW_EMPTIES)
    slot = core.shallow_slot(*position, core.MIN_SHALLOW_EMPTIES)
    for changed in (0, 1):
        boards = (np.where([changed == 0, changed == 1], other, position) for other in others)
        same_place = [pair for pair in boards if core.shallow_slot(*pair, core.MIN_SHALLOW_EMPTIES) == slot]
        assert same_place
        assert not any(core.shallow_probe(words.ctypes.data, *pair, core.MIN_SHALLOW_EMPTIES) for pair in same_place)
    assert core.shallow_probe(words.ctypes.data, *position, core.MIN_SHALLOW_EMPTIES)
