"""The kernels of the experiments: breadth of random games and node counts of a plain search."""

import numpy as np
import pytest

from reversi_env import Position, Rules
from search import evaluators
from search.kernels.evaluate import UNIT
from studies.game_tree import counting
from studies.game_tree.kernels import ROUNDS, count_breadths
from studies.textbook import alpha_beta
from studies.textbook import negamax as minimax
from tests.oracles.search import rounded

pytestmark = pytest.mark.slow  # only this module compiles these kernels

RULES = Rules(6)


def breadth_counts(rules, games, seed, one_line=False, groups=10):
    moves, visits = np.zeros((groups, ROUNDS), np.int64), np.zeros((groups, ROUNDS), np.int64)
    lengths = np.zeros(groups, np.int64)
    own, opp = (np.uint64(board) for board in rules.start_boards)
    playable = np.uint64(rules.playable)
    count_breadths(groups, own, opp, playable, games // groups, np.uint64(seed), one_line, moves, visits, lengths)
    return moves, visits, lengths


@pytest.mark.parametrize("rules", [Rules(4), Rules(6, "reversed"), Rules(8)])
def test_breadth_counts_add_up(rules):
    moves, visits, lengths = breadth_counts(rules, 1000, 7)
    assert visits[:, 4].sum() == 1000
    assert moves[:, 4].sum() == 4000  # every first move
    assert moves[:, 5].sum() == 3000  # and every reply
    assert (moves[:, rules.square_count :] == 0).all()
    assert (visits[:, rules.square_count :] == 0).all()
    assert lengths.sum() <= visits.sum()  # the rest are passes
    again = breadth_counts(rules, 1000, 7, groups=20)
    assert (again[0].sum(axis=0) == moves.sum(axis=0)).all()  # a game depends on its index, not on its group


@pytest.mark.parametrize("textbook", [minimax, alpha_beta])
def test_node_counts_equal_the_textbook_search(textbook):
    own, opp, _ = counting.positions_of_games(RULES, 2, (12, 18, 24), seed=1)
    for depth in (1, 3):
        counts = counting.count_nodes(own, opp, "six-factor", RULES, depth, prunes=textbook is alpha_beta)
        assert (counts.inner <= counts.moves).all()
        for i, (mine, theirs) in enumerate(zip(own.tolist(), opp.tolist(), strict=True)):
            result = textbook(Position(RULES, mine, theirs), depth, rounded(evaluators.get_evaluator("six-factor")))
            assert (counts.nodes[i], counts.values[i] / UNIT) == (result.nodes, result.value)
