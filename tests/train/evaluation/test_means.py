"""Means over positions of games: exact cases, closed forms, and simulated coverage of their 95 % intervals."""

import math
from itertools import pairwise

import numpy as np
import pytest

from reversi_env import Rules
from train.evaluation.endgames import noisy_endgames
from train.evaluation.exact_set import ILLEGAL, ExactSet, Judgement
from train.evaluation.means import Sample
from train.evaluation.options import EndgameOptions

#: Samples per measured coverage; its standard error is 0.7 % or 0.22 %.
SOME, MANY = 1000, 10_000


def test_standard_error_of_independent_values():
    values = np.random.default_rng(0).normal(size=40)
    expected_error = values.std(ddof=1) / math.sqrt(40)
    assert Sample(np.zeros(40)).standard_error(values) == pytest.approx(expected_error)
    # A second position of each game with the same value adds no information.
    twice = Sample(np.repeat([0, 1], 40), np.tile(np.arange(40), 2))
    assert twice.standard_error(np.tile(values, 2)) == pytest.approx(expected_error)
    # Independent strata of different sizes: the variances of their means add up.
    strata = np.repeat([0, 1], [10, 30])
    parts = [values[strata == one] for one in (0, 1)]
    expected = math.sqrt(sum(part.var(ddof=1) / len(part) for part in parts)) / 2
    assert Sample(strata).standard_error(values) == pytest.approx(expected)


def test_clustered_error_equals_that_of_game_means():
    """With equally many positions per game, the games are the sampling units."""
    generator = np.random.default_rng(1)
    values = generator.normal(size=(30, 5)) + generator.normal(size=(30, 1))
    games, strata = np.repeat(np.arange(30), 5), np.tile(np.arange(5), 30)
    by_game = values.mean(axis=1)
    expected = by_game.std(ddof=1) / math.sqrt(30)
    assert Sample(np.zeros(150), games).standard_error(values.ravel()) == pytest.approx(expected)
    # centred within each stratum instead of at the overall mean
    assert Sample(strata, games).standard_error(values.ravel()) == pytest.approx(expected)


def test_intervals_of_single_games_and_of_rare_losses():
    for sample in (Sample([0]), Sample([0, 0, 1], [7, 7, 7])):
        values = np.zeros(len(sample.strata))
        assert math.isnan(sample.standard_error(values))
        assert all(math.isnan(end) for end in (*sample.mean(values).interval, *sample.loss(values, values).interval))
    low, high = Sample(np.zeros(100)).loss(np.zeros(100), np.full(100, 20.0)).interval
    assert low == 0
    assert high == pytest.approx(0.2 * 3.689, rel=0.01)  # the Poisson bound of no event, each worth 20 of 100
    assert Sample(np.zeros(100)).share(np.zeros(100)).interval[1] > 0.03
    # Many equal losses: the Poisson interval of 16 events.
    losses = np.where(np.arange(10_000) < 16, 1.0, 0.0)
    low, high = Sample(np.zeros(10_000)).loss(losses, np.ones(10_000)).interval
    assert (1e4 * low, 1e4 * high) == pytest.approx((9.145, 25.98), rel=0.01)


def test_exact_sets_cluster_by_game():
    rules, count = Rules(4), 12
    own, opp = np.full(count, 0b11 << 18, np.uint64), np.full(count, 1 << 20, np.uint64)
    opp[1::2] = 0b11 << 20
    values = np.full((count, 16), ILLEGAL, np.int8)
    values[:, 4], values[:, 5] = 2, -2
    truth = ExactSet.of_values(rules, own, opp, values)
    clustered = ExactSet.of_values(rules, own, opp, values, np.arange(count) // 2)
    actions = np.where(np.arange(count) < 6, 4, 5)
    alone, together = truth.judge(actions).overall, clustered.judge(actions).overall
    assert (alone.regret, alone.optimal) == (together.regret, together.optimal) == (2.0, 0.5)
    assert together.regret_standard_error == pytest.approx(math.sqrt(2) * alone.regret_standard_error)
    assert together.optimal_interval[0] < alone.optimal_interval[0]
    assert clustered.rows(np.arange(4)).games.tolist() == [0, 0, 1, 1]
    single = clustered.rows(np.array([0, 1, 3])).judge([4, 4, 5])
    assert [math.isnan(part.regret_standard_error) for part in single.by_empties] == [False, True]
    assert single.as_dict()["by_empties"][1]["regret_standard_error"] is None
    assert Judgement.from_dict(single.as_dict()).as_dict() == single.as_dict()


def test_sampled_positions_have_their_game_numbers(tmp_path):
    truth = noisy_endgames(EndgameOptions(6, "normal", 30, (3, 7)), tmp_path, threads=1)
    pairs = set(zip(truth.games.tolist(), truth.empties.tolist(), strict=True))
    assert len(pairs) == len(truth) > 2 * len(np.unique(truth.games))
    discs, order = truth.own | truth.opp, np.lexsort((truth.empties, truth.games))
    pairs_of_one_game = [(later, row) for later, row in pairwise(order) if truth.games[later] == truth.games[row]]
    assert len(pairs_of_one_game) > 50
    assert all(discs[earlier] & ~discs[later] == 0 for later, earlier in pairs_of_one_game)


def coverage(estimate, truth, draw, samples):
    """Return the share of samples whose 95 % interval contains the true mean."""
    intervals = np.array([estimate(draw()).interval for _ in range(samples)])
    return ((intervals[:, 0] <= truth) & (truth <= intervals[:, 1])).mean()


def sample_of(games, strata, generator):
    """Return a sample in which each game has a position in the only stratum, or in 80 % of several strata."""
    rows = np.flatnonzero(generator.random(games * strata) < (0.8 if strata > 1 else 1))
    return Sample(rows % strata, rows // strata)


def simulate(kind, games, strata, rate, correlation, mean_loss, samples):
    """Return the coverage if moves are wrong at *rate*, correlated within games, and wrong moves lose even numbers of discs."""
    generator = np.random.default_rng((games, strata, round(1e4 * rate), round(100 * correlation), mean_loss))
    sample = sample_of(games, strata, generator)
    count = len(sample.games)

    def draw():
        rates = np.full(games, rate)
        if correlation:
            spread = (1 - correlation) / correlation
            rates = generator.beta(rate * spread, (1 - rate) * spread, games)
        wrong = generator.random(count) < rates[sample.games]
        return wrong if kind == "share" else wrong * 2 * generator.geometric(2 / mean_loss, count)

    if kind == "share":
        return coverage(sample.share, rate, draw, samples)
    worst = np.full(count, 3.0 * mean_loss)
    return coverage(lambda losses: sample.loss(losses, worst), rate * mean_loss, draw, samples)


#: Games, strata, rate of wrong moves, and the correlation of moves within a game.
FREQUENT = [(200, 1, 0.3, 0.0), (300, 13, 0.3, 0.1), (60, 5, 0.5, 0.3)]
RARE = [(200, 1, 0.003, 0.0), (200, 1, 0.02, 0.0), (300, 13, 0.01, 0.1), (60, 5, 0.02, 0.1)]


@pytest.mark.slow
@pytest.mark.parametrize("samples", [SOME, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["loss", "share"])
def test_interval_coverage_of_regrets_and_shares(kind, samples):
    for case in FREQUENT:
        assert 0.93 <= simulate(kind, *case, 6, samples) <= 0.98, case
    for case in RARE:  # documented as conservative
        assert simulate(kind, *case, 6, samples) >= 0.93, case
