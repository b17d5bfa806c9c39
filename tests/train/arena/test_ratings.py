"""Elo by Davidson's model, compared with coordinate ascent on a plain likelihood and with closed forms."""

import itertools
import math

import numpy as np
import pytest

from reversi_env import ReversiError
from train.arena.ratings import ELO, fit_ratings


def plain_log_likelihood(strengths, nu, wins, draws):
    """Return the log-likelihood as Davidson defines it, with the pseudo-games that the fit adds."""
    players, total = len(strengths), 0.0
    for i in range(players):
        for j in range(players):
            if i == j:
                continue
            own, other = math.exp(strengths[i]), math.exp(strengths[j])
            tie = nu * math.sqrt(own * other)
            everything = own + other + tie
            total += (wins[i][j] + 0.5 / (players - 1)) * math.log(own / everything)
            if draws[i][j]:
                total += draws[i][j] / 2 * math.log(tie / everything)  # each draw is in the table twice
    return total


def max_log_likelihood(wins, draws, fixed=None):
    """Return the maximum log-likelihood by coordinate ascent; *fixed* is (player, its strength minus the mean)."""
    players = len(wins)
    unknowns, step = [0.0] * players + [0.0], 1.0

    def value(unknowns):
        strengths = np.array(unknowns[:players])
        strengths -= strengths.mean()
        if fixed is not None:
            player, strength = fixed
            others = [p for p in range(players) if p != player]
            strengths[player] = strength
            strengths[others] -= strengths[others].mean() + strength / (players - 1)
        return plain_log_likelihood(strengths, math.exp(unknowns[-1]), wins, draws)

    best = value(unknowns)
    while step > 1e-5:
        improved = False
        for k in range(players + 1):
            for change in (step, -step):
                tried = unknowns.copy()
                tried[k] += change
                if (found := value(tried)) > best + 1e-12:
                    unknowns, best, improved = tried, found, True
        if not improved:
            step /= 2
    return best


@pytest.fixture(scope="module")
def three_players():
    wins = np.array([[0, 7, 10], [3, 0, 6], [0, 2, 0]])
    draws = np.array([[0, 2, 0], [2, 0, 4], [0, 4, 0]])
    return wins, draws, fit_ratings(wins, draws)


def test_the_fit_maximises_the_likelihood(three_players):
    wins, draws, fit = three_players
    strengths = [player.elo / ELO for player in fit.players]
    at_fit = plain_log_likelihood(strengths, fit.draw_factor, wins, draws)
    assert at_fit == pytest.approx(max_log_likelihood(wins, draws), abs=1e-6)
    assert sum(strengths) == pytest.approx(0, abs=1e-9)


def test_intervals_end_at_the_profile_likelihood_limit(three_players):
    wins, draws, fit = three_players
    level = max_log_likelihood(wins, draws) - 3.8414588 / 2  # half the 95 % quantile of χ² with one degree of freedom
    for number, player in enumerate(fit.players):
        for end in (player.low, player.high):
            assert max_log_likelihood(wins, draws, (number, end / ELO)) == pytest.approx(level, abs=1e-3)
        assert player.low < player.elo < player.high


def test_two_players_without_draws_have_a_closed_form():
    fit = fit_ratings(np.array([[0, 30], [10, 0]]), np.zeros((2, 2)))
    first, second = fit.players
    assert first.elo - second.elo == pytest.approx(400 * math.log10(30.5 / 10.5))
    assert (first.low, first.high) == (pytest.approx(-second.high, abs=0.1), pytest.approx(-second.low, abs=0.1))
    assert fit.draw_factor == 0


def test_only_draws_give_equal_ratings():
    fit = fit_ratings(np.zeros((3, 3)), 5 * (1 - np.eye(3)))
    assert [player.elo for player in fit.players] == pytest.approx([0, 0, 0], abs=1e-6)
    # Each pair has 5 draws and half a win per side; draws are nu times as likely as a win.
    assert fit.draw_factor == pytest.approx(5 / 0.25, rel=1e-6)


def directions_without_loss(wins, draws):
    """Yield the directions of (λ, ln ν) along which no observed outcome becomes less likely, by the definition."""
    players = len(wins)
    for *rises, gamma in itertools.product((0,), *[range(-4, 5)] * (players - 1), (0, 1)):
        for i, j in itertools.combinations(range(players), 2):
            changes = [rises[i], rises[j], (rises[i] + rises[j]) / 2 + gamma][: 2 + bool(draws.any())]
            seen = (wins[i, j], wins[j, i], draws[i, j])
            if any(count and change < max(changes) for count, change in zip(seen, changes, strict=False)):
                break
        else:
            yield np.array(rises)


@pytest.mark.parametrize("anchor", [None, 2])
def test_intervals_are_unbounded_where_results_set_no_limit(anchor):
    generator, seen = np.random.default_rng(4), set()
    for _ in range(40):
        wins, draws = generator.integers(0, 4, (2, 3, 3)) * (generator.random((2, 3, 3)) < 0.4)
        wins, draws = wins * (1 - np.eye(3, dtype=int)), np.triu(draws, 1) + np.triu(draws, 1).T
        shifts = [
            rises - (rises.mean() if anchor is None else rises[anchor])
            for rises in directions_without_loss(wins, draws)
        ]
        expected = np.stack([np.min(shifts, axis=0) < 0, np.max(shifts, axis=0) > 0])
        fit = fit_ratings(wins, draws, anchor).players
        unbounded = [[math.isinf(player.low) for player in fit], [math.isinf(player.high) for player in fit]]
        assert np.array_equal(unbounded, expected)
        assert all(math.isfinite(player.elo) for player in fit)
        seen |= {tuple(ends) for ends in expected.T.tolist()}
    assert len(seen) == 4  # open at both ends, one of them, or none


def test_anchored_elo_is_a_difference_with_its_own_interval(three_players):
    wins, draws, fit = three_players
    anchored = fit_ratings(wins, draws, anchor=1).players
    assert [player.elo for player in anchored] == pytest.approx([one.elo - fit.players[1].elo for one in fit.players])
    assert (anchored[1].low, anchored[1].high) == (0, 0)
    assert anchored[0].high - anchored[0].low > fit.players[0].high - fit.players[0].low
    # The difference of two players is twice the distance from their mean.
    pair, above = (fit_ratings(wins[:2, :2], draws[:2, :2], anchor).players[0] for anchor in (None, 1))
    assert (above.low, above.high) == pytest.approx((2 * pair.low, 2 * pair.high), abs=0.01)


@pytest.mark.parametrize(
    ("wins", "draws"),
    [
        *((np.zeros((2, 3)), np.zeros((2, 3))), (np.zeros((1, 1)), np.zeros((1, 1)))),
        *((np.zeros((2, 2)), np.array([[0, 1], [0, 0]])), (np.array([[0, -1], [0, 0]]), np.zeros((2, 2)))),
    ],
)
def test_bad_tables_are_refused(wins, draws):
    with pytest.raises(ReversiError, match="wins and draws"):
        fit_ratings(wins, draws)
