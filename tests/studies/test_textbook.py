"""The textbook algorithms agree with each other, with brute force and with published values, and count as they say."""

import numpy as np
import pytest

from reversi_env import Position, Rules, batch
from studies.textbook import (
    SearchResult,
    alpha_beta,
    double_alpha_maximax,
    iterative_deepening,
    minimax,
    minimax_pruned,
    negamax,
)
from tests.oracles import search as brute_force
from tests.oracles.search import positions

FULL_SEARCHES = [minimax, negamax]
ALL_SEARCHES = [*FULL_SEARCHES, minimax_pruned, alpha_beta, double_alpha_maximax, iterative_deepening]
TO_THE_END = 60

every_search = pytest.mark.parametrize("search", ALL_SEARCHES)
every_board = pytest.mark.parametrize(
    "rules", [Rules(size, variant) for size in (4, 6, 8) for variant in ("normal", "reversed")], ids=str
)

#: Black has no move; white then takes black's last disc by c1.
BLACK_MUST_PASS = "OX-- ---- ---- ----"


def discs_and_mobility(position):
    return position.rules.sign * (position.disc_difference() + 0.25 * position.legal_board().bit_count())


def disc_lead(position):
    return position.rules.sign * position.disc_difference()


EVALUATIONS = [discs_and_mobility, disc_lead]


def random_positions(rules, count, empties=None):
    """Positions of random games: with that many squares empty, if the game goes on so far, or anywhere in the game."""
    plies = (
        np.linspace(0, rules.square_count - 6, count).astype(int)
        if empties is None
        else rules.square_count - 4 - empties
    )
    return positions(*batch.random_positions(count, plies, rules, seed=1), rules)


def value_after(position, move, depth, evaluate):
    """Value of *move* for the side that plays it, in a search of *depth* plies."""
    depth_left = depth if move == position.rules.pass_action else depth - 1
    return -negamax(position.play(move), depth_left, evaluate).value


@every_board
@pytest.mark.parametrize("evaluate", EVALUATIONS)
def test_all_algorithms_agree_and_their_moves_keep_what_they_promise(rules, evaluate):
    for position in random_positions(rules, 3):
        for depth in range(1, 5 if rules.size < 8 else 4):
            expected = negamax(position, depth, evaluate)
            for search in ALL_SEARCHES:
                result = search(position, depth, evaluate)
                assert result.value == expected.value, (search, depth, position)
                if result.move is not None:
                    promised = value_after(position, result.move, depth, evaluate)
                    assert promised == result.value, (search, depth, position)
                assert (result.move is None) == position.is_over()


@every_search
@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_small_endgames_equal_brute_force(search, variant):
    rules = Rules(4, variant)
    for position in random_positions(rules, 12, empties=6):
        result = search(position, TO_THE_END, discs_and_mobility)
        assert (result.value, result.proven) == (brute_force.value(position), True)


def never_evaluate(position):
    pytest.fail(f"asked to evaluate\n{position}")


@every_search
def test_a_pass_is_a_node_and_a_move_but_uses_up_no_depth(search):
    position = Position.from_text(BLACK_MUST_PASS)
    result = search(position, 1, never_evaluate)
    assert result == SearchResult(value=-16, move=position.rules.pass_action, nodes=3, depth=1, proven=True)
