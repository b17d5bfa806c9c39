"""ProbCut: fitted from data, off by default; saves nodes at nearly the same values."""

import json
from dataclasses import replace

import numpy as np
import pytest

from reversi_env import Position, ReversiError, Rules
from search import evaluators
from search.engine import probcut as cuts_of
from search.engine import probcut_fit
from search.engine.engine import Engine
from search.engine.probcut import PROBCUT_FIELDS, DepthPair, DeviationModel, probcut_depth
from search.engine.solver import Solver, solve
from search.engine.threads import make_thread_states
from search.kernels.evaluate import UNIT
from search.kernels.midgame import negamax
from search.kernels.probcut import STATIC_DEPTH, STATIC_MARGIN_FACTOR, probcut_window
from tests.search.engine.test_engine import at_depth, some_positions


@pytest.fixture(scope="module")
def cuts():
    return probcut_fit.fit("six-factor", deepest=6, positions=40, seed=1)


def test_fit_is_plausible_and_round_trips_json(cuts):
    assert [(pair.deep, pair.shallow) for pair in cuts.pairs] == [(3, 1), (4, 2), (5, 1), (6, 2)]
    shallow = [probcut_depth(deep) for deep in range(3, 17)]  # half as deep and of equal parity
    assert shallow == [1, 2, 1, 2, 3, 4, 3, 4, 5, 6, 5, 6, 7, 8]
    low, high = cuts.empties
    assert 8 <= low < high <= 56
    for pair in cuts.pairs:
        assert 0.5 < pair.slope < 1.5
        assert all(0.5 < cuts.deviation(pair, empties) < 25 for empties in (low, 30, high))
        assert pair.positions == 40
    assert cuts_of.from_table(json.loads(json.dumps(cuts_of.as_table(cuts)))) == cuts
    first, second = (probcut_fit.fit("six-factor", deepest=4, positions=30, seed=1) for _ in range(2))
    assert first == second


def test_fit_recovers_known_deviations():
    generator, empties = np.random.default_rng(1), np.arange(4000) % 40 + 12
    true_model = DeviationModel(1.5, 0.07, -0.12, -0.05, 0.0004)
    lines = []
    for deep, shallow in ((4, 2), (6, 2), (6, 4), (8, 4)):
        deviation = np.array([true_model.deviation(deep, shallow, count) for count in empties.tolist()])
        pair = DepthPair(deep, shallow, 1.0, 0.0, empties.size)
        lines.append(probcut_fit._Line(pair, generator.normal(0, deviation)))
    fitted = probcut_fit._spread(lines, empties)
    for deep, shallow, count in ((4, 2, 12), (8, 4, 30), (10, 4, 50)):
        expected = true_model.deviation(deep, shallow, count)
        assert fitted.deviation(deep, shallow, count) == pytest.approx(expected, rel=0.1)


def pruning(margin, cuts):
    engine = Engine("six-factor", megabytes=4)
    engine.set_probcut(margin, cuts_of.coefficients(cuts))
    return engine


@pytest.mark.parametrize("only_late_moves", [False, True])
def test_probcut_saves_nodes_and_changes_values_by_little(cuts, only_late_moves):
    """Late-move reductions alone do the same: with wide deviations ProbCut never cuts."""
    wide = replace(cuts, spread=replace(cuts.spread, constant=cuts.spread.constant + 5))
    engines = [pruning(margin, wide if only_late_moves else cuts) for margin in (0.0, 1.0 if only_late_moves else 1.5)]
    results = []
    for position in some_positions(Rules(), 12, seed=6, empties=34):
        for engine in engines:
            engine.clear()
        results.append([engine.search(position, at_depth(7)) for engine in engines])
    nodes, values = ([[getattr(one, name) for one in pair] for pair in results] for name in ("nodes", "value"))
    assert np.sum(nodes, axis=0)[1] < 0.9 * np.sum(nodes, axis=0)[0]
    assert np.abs(np.diff(values)).mean() < 2.0


@pytest.fixture
def null_window(cuts):
    """A search with a null window and ProbCut at depth 2 only, which returns the bound and the nodes."""
    nets, thread_states = evaluators.get_evaluator("six-factor").record(Rules()), make_thread_states(Rules())
    for field in PROBCUT_FIELDS:
        thread_states[field] = cuts_of.coefficients(cuts)[field]
    thread_states["probcut_depth"] = 0

    def searched(position, low, margin, depth=STATIC_DEPTH):
        thread_states["probcut_margin"], thread_states["nodes"] = margin, 0
        boards = np.uint64(position.own), np.uint64(position.opp)
        return int(negamax(thread_states[0], nets[0], *boards, low, low + 1, depth)), int(thread_states["nodes"][0])

    return searched


@pytest.mark.slow
def test_static_evaluation_cuts_near_leaves_on_both_sides(cuts, null_window):
    for position in some_positions(Rules(), 8, seed=4, empties=30):
        static = round(evaluators.get_evaluator("six-factor").static_value(position) * UNIT)
        far = 2 + int(STATIC_MARGIN_FACTOR * UNIT * cuts.spread.deviation(STATIC_DEPTH, 0, 30))
        above, below = static + far, static - far
        assert null_window(position, above, 1.0) == (above, 1)
        assert null_window(position, below - 1, 1.0) == (below, 1)
        for low, margin in ((static, 1.0), (above - 4, 1.0), (above, 1.1), (above, 0.0), (below - 1, 0.0)):
            assert null_window(position, low, margin) == null_window(position, low, 0.0)
            assert null_window(position, low, margin)[1] > 1


@pytest.mark.slow
def test_evaluation_from_move_ordering_is_that_of_the_position(null_window):
    """One ply above, the node fails high if and only if a separate search of a child says so."""
    otherwise = 0
    for position in some_positions(Rules(), 6, seed=6, empties=24):
        children = [position.play(action) for action in position.legal_actions()]
        for low in range(-24 * UNIT, 24 * UNIT, UNIT // 2):
            good = [-null_window(child, -low - 1, 0.5)[0] > low for child in children]
            result = null_window(position, low, 0.5, STATIC_DEPTH + 1)[0] > low
            assert result == any(good)
            otherwise += result != (null_window(position, low, 0.0, STATIC_DEPTH + 1)[0] > low)
    assert otherwise > 6


@pytest.mark.parametrize(
    ("side", "margin", "slope", "shift", "low"),
    [(1, 50.0, 1.0, 0.0, 149), (-1, 50.0, 1.0, 0.0, 50), (1, 50.0, 2.0, 10.0, 69), (-1, 50.0, 2.0, 10.0, 20)],
)
def test_shallow_value_must_exceed_bound_by_margin(side, margin, slope, shift, low):
    assert probcut_window(100, side, margin, slope, shift) == low


def test_search_to_the_end_is_exact_with_any_probcut_margin(cuts):
    engine = pruning(0.1, cuts)
    for position in some_positions(Rules(), 4, seed=3, empties=9):
        result = engine.search(position, at_depth(9))
        assert (result.exact, result.value) == (True, solve(position).score)


def test_table_entries_of_other_probcut_settings_are_not_used(cuts):
    """The search visits as many nodes as with an empty table, but it uses results of a less selective search."""
    other = replace(cuts, spread=replace(cuts.spread, constant=cuts.spread.constant + 0.5))
    position, used = some_positions(Rules(), 1, seed=5, empties=30)[0], pruning(0.5, cuts)
    used.search(position, at_depth(7))
    for margin, loaded, active in ((1.0, None, cuts), (1.0, other, other), (0.0, None, other)):
        used.set_probcut(margin, None if loaded is None else cuts_of.coefficients(loaded))
        anew = pruning(margin, active).search(position, at_depth(7)).nodes
        assert used.search(position, at_depth(7)).nodes == anew
    assert anew == Engine("six-factor").search(position, at_depth(7)).nodes  # ProbCut is off by default
    with pytest.raises(ReversiError, match="estimates"):
        Solver(table=used.table).solve(position)
    used.set_probcut(1.0)
    assert used.search(position, at_depth(7)).nodes < pruning(1.0, other).search(position, at_depth(7)).nodes


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (lambda: Engine("six-factor").set_probcut(1.5), "needs fitted coefficients"),
        (lambda: probcut_fit.fit("discs", positions=3), "expected at least 30"),
        (lambda: probcut_fit.fit("discs", positions=30, threads=0), "threads=0: expected"),
        (lambda: probcut_fit.fit("discs", Rules(4), deepest=8), "leaves no midgame"),
        (lambda: cuts_of.from_table({"pairs": [{"deep": 3}]}), "ProbCut coefficients"),
        (lambda: probcut_fit.fit_endgame("network", Rules(), [Position.initial()]), "at least 30, with more than 8"),
    ],
)
def test_invalid_arguments_are_named(request_, words):
    with pytest.raises(ReversiError, match=words):
        request_()
