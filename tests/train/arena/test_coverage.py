"""Simulated coverage of the intervals of match results: 95 % intervals contain the truth in 93 to 98 % of all repetitions.

Intervals that are documented as conservative have no upper limit. The SPRT errs in at most 5.5 % of all tests.
Small simulations may miss these limits by two standard errors, large ones may not.
Print the tables with ``pytest -m long -s tests/train/arena/test_coverage.py``.
"""

import itertools

import numpy as np
import pytest

from reversi_env import Rules
from train.arena.batch import RandomPlayer
from train.arena.ratings import DROP_95, ELO, _Davidson, fit_ratings
from train.arena.results import MAX_PAIR_EFFICIENCY, MAX_RARE_POINTS, Results
from train.arena.sequential import PAIR_SCORES, Sprt, expected_score
from train.evaluation.ladder import Ladder

pytestmark = pytest.mark.slow
#: Results of both games of a pair with 0, ½, 1, 1½ and 2 points, as signs of the disc difference.
PAIRS = np.array([[-1, -1], [-1, 0], [0, 0], [0, 1], [1, 1]])
#: Each simulation runs twice: small for CI, and large.
by_size = pytest.mark.parametrize("scale", [1, pytest.param(10, marks=pytest.mark.long)])


def check(scale, name, hits, low=0.93, high=0.98):
    """Compare the share of *hits* with the claimed limits."""
    share, slack = np.mean(hits), 2 * (0.05 * 0.95 / len(hits)) ** 0.5 * (scale == 1)
    print(f"{name}: {100 * share:.1f} % of {len(hits)}")
    assert low - slack <= share <= high + slack, name


def pair_probabilities(loss, draw, win, mirrored=0.0):
    """Return the probabilities of a pair's five outcomes. In a share *mirrored* of the pairs the games are anticorrelated."""
    game = np.array([loss, draw, win])
    up_to = np.pad(np.maximum(np.add.outer(game.cumsum(), game.cumsum()) - 1, 0), ((1, 0), (1, 0)))
    opposite = np.diff(np.diff(up_to, axis=0), axis=1)  # as negatively correlated as such games can be
    joint = (1 - mirrored) * np.outer(game, game) + mirrored * opposite
    return np.array([np.trace(joint[::-1], number) for number in range(-2, 3)])


@by_size
@pytest.mark.parametrize("games", [100, 1000])
def test_win_rate_interval_coverage(scale, games):
    """*won* is the share of the decided games. The score counts draws as half."""
    generator = np.random.default_rng(games)
    for won, draw, mirrored in itertools.product((0.5, 0.7, 0.95, 0.99), (0.0, 0.2, 0.6), (0.0, 0.5)):
        chances = pair_probabilities((1 - won) * (1 - draw), draw, won * (1 - draw), mirrored)
        score = chances @ PAIR_SCORES
        counts, repeats = np.unique(
            generator.multinomial(games // 2, chances, 1000 * scale), axis=0, return_inverse=True
        )
        ends = np.array([Results(np.repeat(PAIRS, count, axis=0).ravel()).interval() for count in counts])[repeats]
        efficiency = score * (1 - score) / (2 * (chances @ (PAIR_SCORES - score) ** 2))
        is_conservative = efficiency > 0.9 * MAX_PAIR_EFFICIENCY or efficiency * games * (1 - score) < MAX_RARE_POINTS
        covered = (ends[:, 0] <= score) & (score <= ends[:, 1])
        name = f"{games} games, {won:.0%} won, {draw:.0%} drawn, {mirrored:.0%} mirrored"
        check(
            scale, name + (" (conservative)" if is_conservative else ""), covered, high=1 if is_conservative else 0.98
        )


def simulated(generator, strengths, draw_factor, games):
    """Return wins and draws of a round robin by Davidson's model."""
    wins, draws = np.zeros((2, len(strengths), len(strengths)))
    for i, j in itertools.combinations(range(len(strengths)), 2):
        gap = np.exp((strengths[i] - strengths[j]) / 2)
        weights = np.array([gap, 1 / gap, draw_factor])
        wins[i, j], wins[j, i], draws[i, j] = generator.multinomial(games, weights / weights.sum())
        draws[j, i] = draws[i, j]
    return wins, draws


def is_covered(wins, draws, player, strength, anchor=None):
    """Return whether the interval contains *strength*, by the profile likelihood: faster than computing both ends."""
    model = _Davidson(wins, draws, anchor)
    best = model.fit(np.zeros(model.unknowns))
    return model.log_likelihood(best) - model.log_likelihood(model.fit(best, (player, strength))) <= DROP_95


@by_size
@pytest.mark.parametrize(
    ("strengths", "draw_factor", "games", "anchor"),
    [
        *(
            ((own, *others), 0.1, 100, 1)
            for own, others in [(0.0, (0.0, 0.3)), (1.0, (0.0, 0.3)), (0.0, (0.0, 1.5, 2.2))]
        ),
        ((1.2, 0.3, -0.4, -1.1), 0.5, 40, None),
    ],
)
def test_elo_interval_coverage(scale, strengths, draw_factor, games, anchor):
    generator, covered = np.random.default_rng(7), []
    for repetition in range(300 * scale):
        wins, draws = simulated(generator, strengths, draw_factor, games)
        player = repetition % len(strengths) if anchor is None else 0
        covered.append(is_covered(wins, draws, player, strengths[player], anchor))
        if repetition < 10:
            rating = fit_ratings(wins, draws, anchor).players[player]
            assert covered[-1] == (rating.low <= ELO * strengths[player] <= rating.high)
    check(scale, f"Elo of {strengths}", covered)


@by_size
def test_elo_interval_coverage_of_a_random_policy(scale):
    rules, covered = Rules(6), []
    for seed in range(300 * scale):
        standing = Ladder(rules, 40, seed, ("random", "greedy")).measure(RandomPlayer(rules))
        covered.append(standing.low <= 0 <= standing.high)
    check(scale, "random policy on a ladder of two", covered)


def sprt_outcomes(generator, sprt, chances, runs):
    """Return for each of *runs* simulated tests whether it accepts H1, and its pair counts."""
    counts, accepted, going = np.zeros((runs, 5), np.int64), np.zeros(runs, np.bool_), np.arange(runs)
    while going.size:
        counts[going, generator.choice(5, going.size, p=chances)] += 1
        ratios = sprt.llrs(counts[going])
        accepted[going] = ratios >= sprt.bounds[1]
        going = going[(ratios < sprt.bounds[1]) & (ratios > sprt.bounds[0])]
    return accepted, counts


@by_size
@pytest.mark.parametrize(("draw", "mirrored"), [(0.0, 0.0), (0.2, 0.0), (0.6, 0.0), (0.2, 0.5)])
@pytest.mark.parametrize("hypothesis", [0, 1])
def test_sprt_error_rates(scale, draw, mirrored, hypothesis):
    sprt = Sprt(0, 100 if scale == 1 else 50)
    score = expected_score((sprt.elo0, sprt.elo1)[hypothesis])
    chances = pair_probabilities(1 - score - draw / 2, draw, score - draw / 2, mirrored)
    accepted, _ = sprt_outcomes(np.random.default_rng(5), sprt, chances, 1000 * scale)
    name = f"SPRT 0, {sprt.elo1} wrong if H{hypothesis} is true, {draw:.0%} drawn, {mirrored:.0%} mirrored"
    check(scale, name, accepted != hypothesis, 0, 0.055)
