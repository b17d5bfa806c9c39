"""The textbook algorithms agree with each other and with brute force, and count nodes as documented."""

import numpy as np
import pytest

from reversi_env import Position, Rules, batch
from studies.textbook import (
    SearchResult,
    alpha_beta,
    minimax,
    minimax_pruned,
    negamax,
)
from tests.oracles import search as brute_force
from tests.oracles.search import positions

FULL_SEARCHES = [minimax, negamax]
ALL_SEARCHES = [*FULL_SEARCHES, minimax_pruned, alpha_beta]
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
    """Return positions of random games with *empties* empty squares, by default from all plies."""
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
def test_all_algorithms_agree_and_their_moves_have_their_values(rules, evaluate):
    for position in random_positions(rules, 3):
        for depth in range(1, 5 if rules.size < 8 else 4):
            expected = negamax(position, depth, evaluate)
            for search in ALL_SEARCHES:
                result = search(position, depth, evaluate)
                assert result.value == expected.value, (search, depth, position)
                if result.move is not None:
                    played_value = value_after(position, result.move, depth, evaluate)
                    assert played_value == result.value, (search, depth, position)
                assert (result.move is None) == position.is_over()


@every_search
@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_small_endgames_equal_brute_force(search, variant):
    rules = Rules(4, variant)
    for position in random_positions(rules, 12, empties=6):
        result = search(position, TO_THE_END, discs_and_mobility)
        assert (result.value, result.proven) == (brute_force.value(position), True)


@every_search
def test_exact_leaf_values_make_every_depth_exact(search):
    """Section 2.2.3, theorem 2 of report 002."""
    for position in random_positions(Rules(4, "reversed"), 6, empties=6):
        assert {search(position, depth, brute_force.value).value for depth in range(4)} == {brute_force.value(position)}


def never_evaluate(position):
    pytest.fail(f"asked to evaluate\n{position}")


@every_search
def test_a_pass_counts_as_a_node_but_not_as_depth(search):
    position = Position.from_text(BLACK_MUST_PASS)
    result = search(position, 1, never_evaluate)
    assert result == SearchResult(value=-16, move=position.rules.pass_action, nodes=3, depth=1, proven=True)


def test_a_deeper_search_may_choose_a_worse_move():
    """Section 2.2.3, theorem 1 of report 002: two plies miss a best move that one ply finds."""

    def loss(position, depth):
        move = alpha_beta(position, depth, disc_lead).move
        return brute_force.value(position) + brute_force.value(position.play(move))

    unfinished = [p for p in random_positions(Rules(4), 200, empties=8) if not p.is_over()]
    assert any(loss(p, 2) > loss(p, 1) == 0 for p in unfinished)


def test_moves_are_not_invertible():
    """Section 2.2.1, theorem 2: the same move leads from two different positions to the same one."""
    reached, before = {Position.initial(Rules(8))}, {}
    for _ in range(5):
        moves = [(position, action) for position in reached for action in position.legal_actions()]
        reached = {position.play(action) for position, action in moves}
        for position, action in moves:
            before.setdefault((action, position.play(action)), set()).add(position)
    assert any(len(positions) > 1 for positions in before.values())


def test_winning_is_not_transitive():
    """Section 2.2.2, theorem 1: some deterministic players beat each other in a cycle."""
    players = range(9)

    def play(black, white):
        position, numbers = Position.initial(Rules(4, "reversed")), {-1: black, 1: white}
        while not position.is_over():
            actions = position.legal_actions()
            position = position.play(actions[hash((position.own, position.opp, numbers[position.turn])) % len(actions)])
        return np.sign(position.score() * position.turn) * -1

    beats = {(a, b) for a in players for b in players if play(a, b) > play(b, a)}
    assert any((b, c) in beats and (c, a) in beats for a, b in beats for c in players)
