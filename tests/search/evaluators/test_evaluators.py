"""Compiled heuristics against reference implementations of the reports; weights, names, custom evaluators."""

import os
import pickle
from functools import cache

import numpy as np
import pytest
from numba import njit

from reversi_env import Position, Rules, batch
from reversi_env.kernels import popcount
from search import Engine, Limits, evaluator, evaluators, make_agent
from search.evaluators import registry
from search.evaluators.base import EvaluatorError
from search.evaluators.formula import Formula
from search.evaluators.function import SlowEvaluatorWarning, _numba_error_summary
from search.kernels.evaluate import code_fingerprint
from tests.conftest import REPOSITORY
from tests.oracles import heuristics as published
from tests.oracles import rules as slow
from tests.oracles.processes import output_of
from tests.oracles.search import GAMES, game_name

LONGEST = {4: 10, 6: 31, 8: 58}
every_game = pytest.mark.parametrize("rules", GAMES, ids=game_name)
every_evaluator = pytest.mark.parametrize("name", published.REFERENCES)


@cache
def positions(size):
    """Return positions of random games of all stages, and rare boards: long runs, passes, wipe-outs."""
    rules, generator = Rules(size), np.random.default_rng(size)
    own, opp = batch.random_positions(250, generator.integers(0, LONGEST[size], 250), rules, seed=size)
    boards = [(own, opp), (opp[:50], own[:50])]
    for share in (0.1, 0.5, 0.9):
        shares = np.array([share, 0.7])[:, None, None]
        mine, filled = (generator.random((2, 50, 64)) < shares) @ (np.uint64(1) << np.arange(64, dtype=np.uint64))
        filled &= np.uint64(rules.playable)
        boards.append((filled & mine, filled & ~mine))
    corners, everything = evaluators.square_classes(rules)[0], rules.playable
    boards.append((np.array([everything ^ corners, everything], np.uint64), np.array([corners, 0], np.uint64)))
    return tuple(np.concatenate(side) for side in zip(*boards, strict=True))


@cache
def reference_values(name, size):
    value, _ = published.REFERENCES[name]
    return np.array([value(slow.from_boards(own, opp, size)) for own, opp in zip(*positions(size), strict=True)], float)


@every_game
@every_evaluator
def test_values_equal_reference_clipped_to_range_of_scores(name, rules):
    evaluator = evaluators.get_evaluator(name)
    _, written_for = published.REFERENCES[name]
    assert evaluator.written_for == written_for
    sign = 1 if written_for == rules.variant else -1
    limit = rules.square_count - 0.5
    expected = np.clip(sign * evaluator.scale_on(rules) * reference_values(name, rules.size), -limit, limit)
    values = evaluator.static_values(*positions(rules.size), rules)
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)
    inside = values[np.abs(values) < limit]
    assert inside.min() < 0 < inside.max()  # the values are neither constant nor all at the limits
    assert np.unique(inside).size >= 5
    loud = Formula(name, evaluator.record_type, evaluator.weights, scale=1e9, derive=evaluator.derive)
    values = loud.static_values(*positions(rules.size), rules)
    assert np.abs(values).max() == limit
    assert np.isfinite(values).all()


@pytest.mark.parametrize(
    ("name", "weights", "reference", "variant"),
    [
        (
            "position-stability",
            {"table": evaluators.POSITION_STABILITY_ORIGINAL, "gamma": 0.5},
            lambda board: published.position_stability(board, published.ORIGINAL, 0.5),
            "reversed",
        ),
        ("four-attribute", {"ply": 7}, lambda board: published.four_attribute(board, 7), "normal"),
    ],
)
def test_weights_of_reports_000_and_003_can_be_set(name, weights, reference, variant):
    changed, rules = evaluators.get_evaluator(name).with_weights(**weights), Rules(8, variant)
    own, opp = (boards[:100] for boards in positions(8))
    values = np.array([reference(slow.from_boards(*boards, 8)) for boards in zip(own, opp, strict=True)])
    expected = np.clip(changed.scale_on(rules) * values, -63.5, 63.5)
    np.testing.assert_allclose(changed.static_values(own, opp, rules), expected, rtol=1e-12, atol=1e-12)


def test_weight_vector_has_the_order_of_report_002():
    evaluator = evaluators.get_evaluator("sixteen-weight")
    vector = evaluator.weight_vector()
    assert vector.tolist() == published.SIXTEEN
    changed = evaluator.with_weight_vector(vector[::-1])
    assert changed.weights["late"] == tuple(published.SIXTEEN[2::-1])
    assert changed.with_weight_vector(vector).weights == evaluator.weights
    assert evaluators.get_evaluator("six-factor").weight_vector().shape == (16,)
    with pytest.raises(EvaluatorError, match=r"shape \(3,\)"):
        evaluator.with_weight_vector([1, 2, 3])


def test_weights_of_a_position_table_are_relative():
    evaluator = evaluators.get_evaluator("ten-weight")
    doubled = evaluator.with_weights(table=2 * evaluator.weight_vector())
    rules, boards = Rules(6, "reversed"), positions(6)
    np.testing.assert_allclose(doubled.static_values(*boards, rules), evaluator.static_values(*boards, rules))
    silent = evaluator.with_weights(table=np.zeros(10)).static_values(*boards, rules)
    assert not silent.any()


def six_factor(**weights):
    return lambda: evaluators.get_evaluator("six-factor").with_weights(**weights)


def incomplete(size):
    formula = Formula("incomplete", evaluators.get_evaluator("discs").record_type, {}, scale={8: 1.0})
    return lambda: formula.record(Rules(size))


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: evaluators.get_evaluator("six-facto"), "did you mean 'six-factor'.*cell-utility"),
        (lambda: evaluators.get_evaluator(None), "cell-utility, discs, four-attribute"),
        (lambda: evaluators.get_formula("network"), "'network'.*six-factor"),
        (six_factor(corner_wieght=1), "'corner_wieght'.*'corner_weight'.*table"),
        *((six_factor(corner_weight=number), "corner_weight=") for number in ("much", None, float("inf"), [1, 2])),
        *((six_factor(table=[1, 2]), "table=.*10"), (incomplete(8), "disc_weight"), (incomplete(6), "scale.* 6")),
        *((lambda: Engine(lambda position: 0.0), "@search.evaluator"), (lambda: evaluator(7), "7 is not a function")),
        (lambda: evaluator(lambda position: 0), "<lambda>"),
        (lambda: evaluator(compiled=True, name="one")(lambda own: 0), "parameters"),
        (lambda: evaluator(compiled=True, name="six", weights={"corners": 1})(lambda net, own, opp: 0), "'corners'"),
        (lambda: evaluator(weights={"a": 1}, name="two")(lambda position: 0), "compiled=True"),
        (lambda: evaluator(name="four", written_for="Normal")(lambda position: 0), "written_for='Normal'"),
        (lambda: evaluator(name="five")(lambda position: None).static_value(Position.initial()), "gave None"),
        (lambda: evaluator(name="three")(lambda position: float("nan")).static_value(Position.initial()), "gave nan"),
    ],
)
def test_invalid_evaluator_is_rejected(use, words):
    with pytest.raises(EvaluatorError, match=words):
        use()


def test_changed_evaluator_needs_a_new_name(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    calm = evaluators.get_evaluator("six-factor").with_weights(corner_weight=400)
    with pytest.raises(EvaluatorError, match="'six-factor'"):
        evaluators.register(calm)
    assert evaluators.register(calm.named("calm-six")) is evaluators.get_evaluator("calm-six")
    assert "calm-six" in evaluators.names()
    with pytest.raises(EvaluatorError, match="'Six Factor:'"):
        calm.named("Six Factor:")


USE_MODULE = """
import corner_lead
from reversi_env import Position, Rules
from search import evaluators
from search.kernels import evaluate

for rules in (Rules(8), Rules(8, "reversed")):
    print(evaluators.get_evaluator("corner-lead").static_value(Position(rules, 1 | 1 << 7, 1 << 63)))
print(evaluate._static_values.stats.cache_misses.total())
"""


CORNER_LEAD = """
from reversi_env.kernels import popcount
from search import evaluator
from search.evaluators import register

@register
@evaluator(compiled=True, weights={"corner_value": 8})
def corner_lead(board, own, opp):
    return board.corner_value * (popcount(own & board.corners) - popcount(opp & board.corners))
"""


def run_outside(folder):
    """Return the output lines of a new process that uses the module in *folder* and caches kernels there."""
    return output_of(USE_MODULE, PYTHONPATH=f"{folder}{os.pathsep}{REPOSITORY}", REVERSI_CACHE_DIR=folder / "cache")


@pytest.mark.slow
def test_user_module_adds_an_evaluator(tmp_path):
    module = tmp_path / "corner_lead.py"
    module.write_text(CORNER_LEAD)
    assert run_outside(tmp_path) == ["8.0", "-8.0", "1"]
    assert run_outside(tmp_path) == ["8.0", "-8.0", "0"]
    module.write_text(CORNER_LEAD.replace("popcount(own & board.corners)", "2 * popcount(own & board.corners)"))
    assert run_outside(tmp_path) == ["24.0", "-24.0", "1"]


CORNERS = np.uint64(evaluators.square_classes(Rules())[0])


@evaluator
def slow_discs(position):
    return position.disc_difference() + 8 * ((position.own & int(CORNERS)).bit_count())


@evaluator(compiled=True)
def fast_discs(own, opp):
    return popcount(own) - popcount(opp) + 8 * popcount(own & CORNERS)


@pytest.mark.slow
def test_python_evaluator_searches_like_compiled_one_and_warns(monkeypatch):
    own, opp = positions(8)
    for rules in (Rules(), Rules(8, "reversed")):
        values = [judge.static_values(own, opp, rules) for judge in (slow_discs, fast_discs)]
        np.testing.assert_array_equal(*values)
    with pytest.warns(SlowEvaluatorWarning, match="'slow-discs'"):
        engines = [Engine(judge) for judge in (slow_discs, fast_discs)]
    position = Position.initial().play_all(["f5", "d6", "c3", "d3", "c4"])
    slow, fast = (engine.search(position, Limits(depth=4, empties_exact=0), multi_pv=3) for engine in engines)
    assert (slow.value, slow.pv, slow.nodes, slow.moves) == (fast.value, fast.pv, fast.nodes, fast.moves)
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    evaluators.register(slow_discs)
    agent = pickle.loads(pickle.dumps(make_agent("slow-discs:depth=1")))
    assert agent.choose(position) in position.legal_actions()


@pytest.mark.filterwarnings("ignore::search.evaluators.function.SlowEvaluatorWarning")
def test_error_in_python_evaluator_ends_the_search():
    fails = False

    @evaluator(name="moody")
    def function(position):
        if fails:
            raise ZeroDivisionError("no more")
        return 0.0

    engine = Engine(function)
    fails = True
    with pytest.raises(ZeroDivisionError, match="no more"):
        engine.search(Position.initial())
    fails = False
    assert engine.search(Position.initial(), Limits(depth=2)).value == 0


@pytest.mark.slow
def test_same_code_with_other_constant_is_another_evaluator():
    def make(factor):
        @evaluator(compiled=True)
        def mine(own, opp):
            return factor * (popcount(own) - popcount(opp))

        return mine

    def typed_in(factor):
        scope = {"evaluator": evaluator, "popcount": popcount, "FACTOR": factor}
        exec("@evaluator(compiled=True)\ndef mine(own, opp):\n    return FACTOR * popcount(own)", scope)
        return scope["mine"]

    assert [typed_in(factor).static_value(Position.initial()) for factor in (1.0, 2.0)] == [2.0, 4.0]
    position = Position.initial().play("d3")
    one, five = make(1.0), make(5.0)
    assert [each.static_value(position) for each in (one, five, make(1.0))] == [-3, -15, -3]
    values = [Engine(each).search(position, Limits(depth=2)).value for each in (one, five)]
    assert values == [values[0], 5 * values[0]]
    assert values[0] != 0


def test_fingerprint_covers_everything_that_code_refers_to(monkeypatch):
    """Module attributes, names in nested functions, defaults of helpers and long arrays; not names without a value."""
    monkeypatch.setattr(published, "factor", 1.0, raising=False)
    long = np.arange(2000)

    def make(factor):
        helper = njit(lambda count, times=factor: times * count)
        numbers = (factor * long,)
        functions = (
            lambda own, opp: published.factor * popcount(own),
            lambda own, opp: (lambda count: published.factor * count)(popcount(own)),
            lambda own, opp: helper(popcount(own)),
            lambda own, opp: numbers[0][1000] + popcount(own),
            lambda own, opp: later(popcount(own)),
        )
        fingerprints = [code_fingerprint(function) for function in functions]
        later = abs
        return functions, fingerprints

    (functions, first), (_, again) = make(1.0), make(1.0)
    assert first == again
    monkeypatch.setattr(published, "factor", 5.0)
    assert [one == other for one, other in zip(first, make(5.0)[1], strict=True)] == [False] * 4 + [True]
    same_name = [evaluator(compiled=True, name="same")(function) for function in functions[:2]]
    assert len({each.sha256(Rules()) for each in same_name}) == 2


def test_nan_counts_as_zero():
    @evaluator(compiled=True)
    def corners(own, opp):
        return 10.0 * (popcount(own & 129) - popcount(opp & 129)) / popcount((own | opp) & 129)

    assert corners.static_value(Position.initial()) == 0


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda own, opp: own + "x", "uint64"),
        pytest.param(lambda own, opp: no_such_name(own), "no_such_name", marks=pytest.mark.slow),  # noqa: F821
        (lambda record, own, opp: record.nothing, "nothing"),
        pytest.param(lambda own, opp: None, "none", marks=pytest.mark.slow),
    ],
)
def test_compile_error_is_reported_in_one_line(function, reason):
    mine = evaluator(compiled=True, name="mine")(function)
    for use in (lambda: Engine(mine), lambda: mine.static_value(Position.initial())):
        with pytest.raises(EvaluatorError, match=r"evaluator mine[^\n]*$") as error:
            use()
        assert reason in str(error.value)


def test_colours_are_removed_from_compile_errors():
    message = "\x1b[1mFailed in nopython mode pipeline (step: x)\n\x1b[1mwrong\x1b[0m"
    assert _numba_error_summary(ValueError(message)) == "wrong"
