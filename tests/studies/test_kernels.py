"""The kernels of the experiments: breadth of random games, the known mistake, and the search with switches."""

import numpy as np
import pytest
from numba.np.numpy_support import from_dtype

from reversi_env import Position, Rules
from search import evaluators
from search.kernels.evaluate import UNIT
from search.kernels.thread_state import THREAD_STATE
from studies.game_tree import counting
from studies.game_tree.kernels import ROUNDS, count_breadths
from studies.textbook import alpha_beta
from studies.textbook import negamax as minimax
from tests.oracles.search import rounded

RULES = Rules(6)


def boards(rules=RULES, games=4, rounds=(12, 18, 24)):
    result = counting.positions_by_round(rules, games, rounds, seed=1)
    return tuple(np.concatenate([result[number][side] for number in rounds]) for side in (0, 1))


def counted(rules, games, seed, one_line=False, groups=10):
    moves, visits = np.zeros((groups, ROUNDS), np.int64), np.zeros((groups, ROUNDS), np.int64)
    lengths = np.zeros(groups, np.int64)
    own, opp = (np.uint64(board) for board in rules.start_boards)
    playable = np.uint64(rules.playable)
    count_breadths(groups, own, opp, playable, games // groups, np.uint64(seed), one_line, moves, visits, lengths)
    return moves, visits, lengths


@pytest.mark.parametrize("rules", [Rules(4), Rules(6, "reversed"), Rules(8)])
def test_counts_add_up(rules):
    moves, visits, lengths = counted(rules, 1000, 7)
    assert visits[:, 4].sum() == 1000
    assert moves[:, 4].sum() == 4000  # every first move
    assert moves[:, 5].sum() == 3000  # and every reply
    assert (moves[:, rules.square_count :] == 0).all()
    assert (visits[:, rules.square_count :] == 0).all()
    assert lengths.sum() <= visits.sum()  # the rest are passes
    again = counted(rules, 1000, 7, groups=20)
    assert (again[0].sum(axis=0) == moves.sum(axis=0)).all()  # a game depends on its number, not on its group


@pytest.mark.parametrize(("refinement", "textbook"), [(counting.MINIMAX, minimax), (counting.ALPHA_BETA, alpha_beta)])
def test_without_refinements_it_is_the_textbook_search_node_for_node(refinement, textbook):
    own, opp = boards(games=2)
    for depth in (1, 3):
        counts = counting.count_nodes(own, opp, "six-factor", RULES, depth, refinement)
        for i, (mine, theirs) in enumerate(zip(own.tolist(), opp.tolist(), strict=True)):
            result = textbook(Position(RULES, mine, theirs), depth, rounded(evaluators.get_evaluator("six-factor")))
            assert (counts.nodes[i], counts.values[i] / UNIT) == (result.nodes, result.value)


def test_every_refinement_keeps_the_value_of_minimax():
    own, opp = boards()
    truth = counting.count_nodes(own, opp, "six-factor", RULES, 5, counting.MINIMAX).values
    for refinement in counting.REFINEMENTS[1:-1]:
        assert np.array_equal(counting.count_nodes(own, opp, "six-factor", RULES, 5, refinement).values, truth), (
            refinement.name
        )


def test_a_record_with_switches_is_never_taken_for_the_engines():
    """Numba lets a record stand for another that it begins like: code for the engine would then run, without switches."""
    assert from_dtype(counting.COUNTED).can_convert_to(None, from_dtype(THREAD_STATE)) is None
