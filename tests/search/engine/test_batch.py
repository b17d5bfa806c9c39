"""`search_batch`: the values of plain negamax for arrays of positions, for any order and number of threads."""

import numpy as np
import pytest

import models.evaluator  # noqa: F401 - registers the evaluator `network`
from reversi_env import Position, ReversiError, Rules, batch
from search.engine.batch import search_batch
from search.engine.solver import solve_batch
from search.evaluators.registry import get_evaluator
from studies.textbook import negamax
from tests.oracles.search import rounded
from train.labels import LabelOptions, sample_positions

GAMES = [Rules(6, "reversed"), Rules(8)]


def positions(rules, count, empties):
    return sample_positions(LabelOptions(size=rules.size, variant=rules.variant, count=count, empties=empties), 0)


@pytest.mark.parametrize("rules", GAMES, ids=str)
def test_values_equal_negamax_and_are_exact_near_the_end(rules):
    own, opp = positions(rules, 66, (1, 22))
    evaluate = rounded(get_evaluator("six-factor"))
    for depth, count in ((0, 66), (1, 44), (2, 22), (3, 10), (4, 4)):
        expected = [negamax(Position(rules, int(own[i]), int(opp[i])), depth, evaluate).value for i in range(count)]
        assert search_batch(own[:count], opp[:count], "six-factor", rules, depth).tolist() == expected
    own, opp = positions(rules, 200, (1, 6))
    assert (search_batch(own, opp, "six-factor", rules, 6) == solve_batch(own, opp, rules)).all()


@pytest.mark.parametrize("rules", GAMES, ids=str)
def test_values_do_not_depend_on_order_or_threads(rules):
    """All positions of a thread share one table, but none may use deeper results of another."""
    own, opp = positions(rules, 800, (8, 24))
    children = batch.expand(own[:30], opp[:30], rules)
    own, opp = np.concatenate([own, children.own]), np.concatenate([opp, children.opp])
    values = search_batch(own, opp, "six-factor", rules, 4, threads=2)
    shuffled = np.random.default_rng(1).permutation(len(values))
    again = search_batch(own[shuffled], opp[shuffled], get_evaluator("six-factor"), rules, 4, threads=1)
    assert (again == values[shuffled]).all()
    alone = [search_batch(own[i : i + 1], opp[i : i + 1], "six-factor", rules, 4)[0] for i in range(20)]
    assert (alone == values[:20]).all()


@pytest.mark.parametrize("rules", [pytest.param(GAMES[0], marks=pytest.mark.slow), GAMES[1]], ids=str)
def test_probcut_changes_values_by_little(rules):
    own, opp = positions(rules, 120, (20, 25))
    whole, some = (search_batch(own, opp, "network", rules, 6, probcut=margin) for margin in (0.0, 1.0))
    shallow = search_batch(own, opp, "network", rules, 4)
    assert (some != whole).any()
    assert np.abs(some - whole).mean() < np.abs(shallow - whole).mean() / 2
    again = search_batch(own[::-1], opp[::-1], "network", rules, 6, probcut=1.0, threads=2)
    assert (again[::-1] == some).all()


def test_progress_counts_up_and_may_interrupt():
    own, opp = positions(Rules(8), 500, (12, 14))
    reports = []
    search_batch(own, opp, "six-factor", Rules(8), 2, progress=reports.append)
    assert reports == sorted(reports)
    assert reports[-1] == 500

    def interrupt(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search_batch(own, opp, "six-factor", Rules(8), 6, progress=interrupt)
    assert search_batch(own[:0], opp[:0], "six-factor").size == 0


@pytest.mark.parametrize(
    ("evaluator", "options", "words"),
    [
        *(("six-factor", {"depth": depth}, f"depth={depth}") for depth in (61, 1.5)),
        ("six-factor", {"probcut": 1}, "ProbCut"),
        ("network", {"probcut": "much"}, "'much'"),
    ],
)
def test_invalid_input_is_rejected(evaluator, options, words):
    with pytest.raises(ReversiError, match=words):
        search_batch(*batch.start(2), evaluator, **options)
