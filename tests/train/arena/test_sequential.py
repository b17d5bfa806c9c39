"""The SPRT and the confidence sequence, compared with plain implementations."""

import math

import numpy as np
import pytest

from reversi_env import ReversiError
from train.arena import sequential
from train.arena.sequential import MAX_BET, PAIR_SCORES, ConfidenceSequence, Sprt, _likeliest, expected_score


def test_likeliest_distribution_has_the_mean_and_is_optimal():
    generator = np.random.default_rng(1)
    seen = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    for mean in (0.3, 0.5, 0.62):
        best = _likeliest(seen[None], mean)[0]
        assert best.sum() == pytest.approx(1)
        assert best @ PAIR_SCORES == pytest.approx(mean)
        others = generator.dirichlet(np.ones(5), 20_000)
        below, above = others[others @ PAIR_SCORES < mean], others[others @ PAIR_SCORES >= mean]
        count = min(len(below), len(above))
        below, above = below[:count], above[:count]
        weight = (mean - below @ PAIR_SCORES) / (above @ PAIR_SCORES - below @ PAIR_SCORES)
        mixed = (1 - weight[:, None]) * below + weight[:, None] * above
        assert np.allclose(mixed @ PAIR_SCORES, mean)
        assert (np.log(mixed) @ seen).max() <= np.log(best) @ seen + 1e-12


def test_llr_of_decisive_pairs_is_binomial():
    sprt, won, lost = Sprt(0, 100), 37, 20
    low, high = expected_score(0), expected_score(100)
    binomial = won * math.log(high / low) + lost * math.log((1 - high) / (1 - low))
    assert sprt.llr([lost, 0, 0, 0, won]) == pytest.approx(binomial, abs=0.02)


def test_sprt_bounds_are_walds_and_decide_the_verdict():
    sprt = Sprt(0, 50, 0.05, 0.05)
    assert sprt.bounds == pytest.approx((-math.log(19), math.log(19)))
    assert Sprt(0, 50, 0.01, 0.2).bounds == pytest.approx((math.log(0.2 / 0.99), math.log(0.8 / 0.01)))
    assert sprt.llr(np.zeros(5)) == 0
    assert [sprt.verdict([0, 0, 0, 0, count]) for count in (0, 5, 40)] == [None, None, "H1"]
    assert [sprt.verdict([0, 0, count, 0, 0]) for count in (5, 40)] == [None, "H0"]
    assert sprt.verdict([40, 0, 0, 0, 0]) == "H0"


@pytest.mark.parametrize("values", [(50, 0), (0, 0), (-3000, 0), (float("nan"), 1), (0, 50, 0.5), (0, 50, 0.05, 0)])
def test_bad_sprt_parameters_are_refused(values):
    with pytest.raises(ReversiError, match="expected"):
        Sprt(*values)


def plain_capitals(values, rate, confidence):
    """Return both betting capitals against *rate*, as the paper defines them."""
    alpha, more, less = 1 - confidence, 1.0, 1.0
    for turn, value in enumerate(values, 1):
        before = values[: turn - 1]
        means = [(0.5 + sum(before[:k])) / (k + 1) for k in range(1, turn)]
        variance = (0.25 + sum((v - m) ** 2 for v, m in zip(before, means, strict=True))) / turn
        stake = math.sqrt(2 * math.log(2 / alpha) / (variance * turn * math.log(turn + 1)))
        more *= 1 + min(stake, MAX_BET / rate) * (value - rate)
        less *= 1 - min(stake, MAX_BET / (1 - rate)) * (value - rate)
    return more, less


def test_confidence_sequence_equals_plain_betting():
    values = np.random.default_rng(2).choice([0, 0.5, 1], 60, p=[0.1, 0.1, 0.8]).tolist()
    sequence, refuted, rates = ConfidenceSequence(0.9), set(), (0.3, 0.5, 0.6, 0.7, 0.85, 0.95, 0.99)
    for turn, value in enumerate(values, 1):
        sequence.add(value)
        refuted |= {rate for rate in rates if max(plain_capitals(values[:turn], rate, 0.9)) >= 2 / 0.1}
    low, high = sequence.interval
    for rate in rates:
        assert (rate in refuted) == (not low < rate < high)
    assert refuted >= {0.3, 0.5}
    assert sequence.mean == pytest.approx(np.mean(values))


def sequence_of(values):
    sequence = ConfidenceSequence()
    for value in values:
        sequence.add(value)
    return sequence


def test_interval_is_rounded_outwards_and_never_empty(monkeypatch):
    monkeypatch.setattr(sequential, "GRID_STEPS", 100)
    assert sequence_of([1] * 1000).interval == (0.99, 1)  # every rate on the grid but 1 is refuted
    with pytest.raises(ReversiError, match="refuted"):
        sequence_of([0] * 50 + [1] * 1000)


def test_bad_observations_are_refused():
    with pytest.raises(ReversiError, match="observation 1.5"):
        ConfidenceSequence().add(1.5)
    with pytest.raises(ReversiError, match="confidence 1: expected"):
        ConfidenceSequence(1)
