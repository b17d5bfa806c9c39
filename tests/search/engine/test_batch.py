"""`search_batch`: plain negamax's values for arrays of positions, whatever their order and the threads."""

import numpy as np
import pytest

import models.evaluator  # noqa: F401 - registers the evaluator `network`
from reversi_env import Position, ReversiError, Rules, batch
from search.engine.batch import search_batch
from search.engine.solver import solve_batch
from search.evaluators.registry import get_evaluator
from search.kernels.evaluate import UNIT
from tests.oracles.search import negamax
from train.labels import LabelOptions, sample_positions

GAMES = [Rules(6, "reversed"), Rules(8)]


def positions(rules, count, empties):
    return sample_positions(LabelOptions(size=rules.size, variant=rules.variant, count=count, empties=empties), 0)


@pytest.mark.parametrize("rules", GAMES, ids=str)
def test_values_are_those_of_negamax(rules):
    own, opp = positions(rules, 66, (1, 22))
    evaluator = get_evaluator("six-factor")
    for depth, count in ((0, 66), (1, 44), (2, 22), (3, 10), (4, 4)):
        expected = [negamax(Position(rules, int(own[i]), int(opp[i])), evaluator, depth) / UNIT for i in range(count)]
        assert search_batch(own[:count], opp[:count], "six-factor", rules, depth).tolist() == expected


@pytest.mark.parametrize("rules", GAMES, ids=str)
def test_the_order_and_the_threads_do_not_matter(rules):
    """One table serves all positions of a thread: none may see another's deeper results."""
    own, opp = positions(rules, 800, (8, 24))
    both = (
        np.concatenate([own, batch.expand(own[:30], opp[:30], rules).own]),
        np.concatenate([opp, batch.expand(own[:30], opp[:30], rules).opp]),
    )
    values = search_batch(*both, "six-factor", rules, 4, threads=2)
    shuffled = np.random.default_rng(1).permutation(len(values))
    again = search_batch(both[0][shuffled], both[1][shuffled], get_evaluator("six-factor"), rules, 4, threads=1)
    assert (again == values[shuffled]).all()
    alone = [search_batch(both[0][i : i + 1], both[1][i : i + 1], "six-factor", rules, 4)[0] for i in range(20)]
    assert (alone == values[:20]).all()


@pytest.mark.parametrize("rules", GAMES, ids=str)
def test_values_are_exact_where_the_game_ends_within_the_depth(rules):
    own, opp = positions(rules, 200, (1, 6))
    assert (search_batch(own, opp, "six-factor", rules, 6) == solve_batch(own, opp, rules)).all()


@pytest.mark.parametrize("rules", [Rules(6, "reversed"), Rules(8)], ids=str)
def test_selective_searches_leave_out_next_to_nothing(rules):
    """And what they find depends on the position alone."""
    own, opp = positions(rules, 120, (20, 25))
    whole, some = (search_batch(own, opp, "network", rules, 6, probcut=margin) for margin in (0.0, 1.0))
    shallow = search_batch(own, opp, "network", rules, 4)
    assert (some != whole).any()
    assert np.abs(some - whole).mean() < np.abs(shallow - whole).mean() / 2
    again = search_batch(own[::-1], opp[::-1], "network", rules, 6, probcut=1.0, threads=2)
    assert (again[::-1] == some).all()


def test_progress_counts_up_and_may_end_it():
    own, opp = positions(Rules(8), 500, (12, 14))
    heard = []
    search_batch(own, opp, "six-factor", Rules(8), 2, progress=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 500

    def enough(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search_batch(own, opp, "six-factor", Rules(8), 6, progress=enough)
    assert search_batch(own[:0], opp[:0], "six-factor").size == 0


def test_bad_input():
    own, opp = batch.start(2)
    for arguments, message in (
        (("six-factor", Rules(8), 61), "depth=61"),
        (("six-factor", Rules(8), 1.5), "depth=1.5: expected"),
        (("six-facto", Rules(8), 2), "did you mean 'six-factor'"),
    ):
        with pytest.raises(ReversiError, match=message):
            search_batch(own, opp, *arguments)
    with pytest.raises(ReversiError, match="ProbCut"):
        search_batch(own, opp, "six-factor", probcut=1)
    with pytest.raises(ReversiError, match="'much'"):
        search_batch(own, opp, "network", probcut="much")
    with pytest.raises(ReversiError, match="threads=0: expected"):
        search_batch(own, opp, "six-factor", threads=0)
