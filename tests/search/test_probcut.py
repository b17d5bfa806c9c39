"""ProbCut: fitted from data, off by default, and cheaper at nearly the same value when on."""

import numpy as np
import pytest

from reversi_env import Position, ReversiError, Rules, batch
from search import probcut
from search.engine import Engine
from search.limits import Limits


@pytest.fixture(scope="module")
def pairs():
    return probcut.fit("six-factor", deepest=6, positions=40, seed=1)


def test_the_fit_is_a_sensible_line(pairs):
    assert [(pair.deep, pair.shallow) for pair in pairs] == [(3, 1), (4, 2), (5, 1), (6, 2)]
    for pair in pairs:
        assert 0.5 < pair.slope < 1.5
        assert 0 < pair.deviation < 15
        assert pair.positions == 40


def test_the_fit_is_reproducible_and_survives_a_file(pairs):
    assert probcut.from_table(probcut.as_table(pairs)) == pairs
    first, second = (probcut.fit("six-factor", deepest=4, positions=30, seed=1) for _ in range(2))
    assert first == second


def test_pruning_saves_nodes_and_hardly_changes_values(pairs):
    own, opp = batch.random_positions(12, 20, seed=9)
    positions = [Position(Rules(), int(a), int(b)) for a, b in zip(own, opp, strict=True)]
    nodes, values = {}, {}
    for margin in (0.0, 1.5):
        engine = Engine("six-factor")
        engine.set_probcut(margin, probcut.coefficients(pairs))
        results = []
        for position in positions:
            engine.clear()
            results.append(engine.search(position, Limits(depth=7, empties_exact=0)))
        nodes[margin] = sum(result.nodes for result in results)
        values[margin] = np.array([result.value for result in results])
    assert nodes[1.5] < 0.9 * nodes[0.0]
    assert np.abs(values[1.5] - values[0.0]).mean() < 2.0


def test_it_is_off_unless_asked_for(pairs):
    plain, told_not_to = Engine("six-factor"), Engine("six-factor")
    told_not_to.set_probcut(0.0, probcut.coefficients(pairs))
    start = Position.initial().play("f5")
    searched = [engine.search(start, Limits(depth=7)) for engine in (plain, told_not_to)]
    assert searched[0].nodes == searched[1].nodes


def test_bad_requests_are_named():
    with pytest.raises(ReversiError, match="needs fitted coefficients"):
        Engine("discs").set_probcut(1.5)
    with pytest.raises(ReversiError, match="expected at least 30"):
        probcut.fit("discs", positions=3)
    with pytest.raises(ReversiError, match="leaves no midgame"):
        probcut.fit("discs", Rules(4), deepest=8)
    with pytest.raises(ReversiError, match="ProbCut coefficients"):
        probcut.from_table([{"deep": 3}])
