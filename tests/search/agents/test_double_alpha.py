"""Double-Alpha Maximax: equal to its slow twin in every node, by the report's time control, and a player in every game."""

from functools import cache
from math import inf

import numpy as np
import pytest

from reversi_env import Position, ReversiError, Rules, batch
from search import Limits, evaluators
from search.agents.double_alpha import BREADTHS, DoubleAlpha, average_breadth, begins_iteration
from search.engine.solver import solve
from search.kernels.evaluate import static_values
from studies.game_tree.breadth import BreadthOptions, measure
from studies.textbook import ValueTable, double_alpha_maximax, iterative_deepening
from tests.oracles.search import GAMES, game_name, positions

every_game = pytest.mark.parametrize("rules", GAMES, ids=game_name)
EVALUATOR = "sixteen-weight"


@cache
def engine(rules, capacity=1000):
    return DoubleAlpha(EVALUATOR, rules, capacity=capacity)


def sample(rules, count, seed=0, longest=None):
    """Positions of random games, from the start to the end, whose game is not over."""
    plies = np.linspace(0, rules.square_count - 6 if longest is None else longest, count).astype(int)
    found = positions(*batch.random_positions(count, plies, rules, seed=seed), rules)
    return [position for position in found if not position.is_over()]


def twin(position, depth, capacity=1000, **clock):
    net = evaluators.get_evaluator(EVALUATOR).record(position.rules)

    def evaluate(position):
        return float(static_values(net, np.array([position.own], np.uint64), np.array([position.opp], np.uint64))[0])

    return iterative_deepening(position, depth, evaluate, ValueTable(capacity), position.rules.square_count, **clock)


def same(found, expected, rules):
    move = None if expected.move is None else rules.name_of(expected.move)
    expected = (move, expected.value, expected.depth, expected.nodes)
    return (found.move, found.value, found.depth, found.nodes) == expected


@every_game
def test_values_moves_and_nodes_equal_the_textbooks(rules):
    """All games together: more than 200 positions. By nodes for seconds some searches end before, some run out, some are proven."""
    sampled, depths = sample(rules, 40), set()
    assert len(sampled) >= 34
    for number, position in enumerate(sampled):
        depth, capacity = 1 + number % (4 if rules.size < 8 else 3), (0, 20, 1000)[number % 5 % 3]
        found = engine(rules, capacity).search(position, Limits(depth=depth))
        assert same(found, twin(position, min(depth, position.empties), capacity), rules), (depth, capacity, position)
    for number, position in enumerate(sample(rules, 24, seed=1)):
        nodes = (30, 300, 3000)[number % 3]
        found = engine(rules).search(position, Limits(nodes=nodes))
        assert same(found, twin(position, position.empties, nodes=nodes, breadth=average_breadth), rules), position
        depths.add(found.depth)
    assert len(depths) > 2


@every_game
def test_a_proven_result_is_the_solvers_and_a_win_ends_the_search_early(rules):
    empties, early = np.repeat(np.arange(6, 12), 4), 0
    drawn = positions(*batch.random_positions(empties.size, rules.square_count - 4 - empties, rules, seed=2), rules)
    unfinished = [position for position in drawn if not position.is_over() and position.empties >= 6]
    assert len(unfinished) >= 20
    for position in unfinished:
        score = exact_value(position)
        found = engine(rules).search(position, Limits(depth=position.empties))
        assert found.value == rules.square_count * np.sign(score)
        assert np.sign(-exact_value(position.play(found.move))) == np.sign(score)
        early += score > 0 and found.depth < position.empties
    assert early or rules.size != 6


@pytest.mark.parametrize(
    ("used", "soft", "hard", "breadth", "changed", "begins"),
    [
        (1, 100, 100, 10, False, True),
        (8, 100, 100, 10, False, False),  # expected to take 80 of the 80 that may be used
        (8, 100, 100, 10, True, True),  # but the best move has changed
        (80, 100, 100, 10, True, False),  # nothing is left
        (1, 10, 100, 10, False, False),  # a soft limit, of a game clock
        (1, 10, 100, 10, True, True),
        (1e9, inf, inf, 10, False, True),
    ],
)
def test_one_more_iteration_begins_if_it_fits_or_the_best_move_changes(used, soft, hard, breadth, changed, begins):
    assert begins_iteration(used, soft, hard, breadth, changed) is begins


@pytest.mark.parametrize("size", [4, 6, 8])
def test_the_breadths_are_those_of_random_games(size):
    found = [entry["breadth"] for entry in measure(BreadthOptions(size, games=5000, seed=9))["by_round"]]
    np.testing.assert_allclose(BREADTHS[size], found, atol=0.2)
    assert average_breadth(Position.initial(Rules(size)), 2) == 3.5


def test_a_stop_leaves_the_move_of_the_first_iteration(monkeypatch):
    maximax = engine(Rules(8))
    begin = maximax._begin

    def stopped_at_once(tie_rng):
        begin(tie_rng)
        maximax.stop()

    monkeypatch.setattr(maximax, "_begin", stopped_at_once)
    found = maximax.search(Position.initial(), Limits(time=100))
    assert (found.depth, found.move) == (2, "d3")


@every_game
def test_all_moves_can_be_valued_and_ties_are_broken_at_random(rules):
    for position in sample(rules, 6, seed=4)[:5]:
        found = engine(rules).search(position, Limits(depth=3), multi_pv=64)
        assert {entry.move for entry in found.moves} == set(position.legal_moves()) or position.must_pass()
        assert (found.moves[0].move, found.moves[0].value) == (found.move, found.value)
        assert found.value == engine(rules).search(position, Limits(depth=3)).value
    start, limits = Position.initial(rules), Limits(depth=3)
    drawn = {engine(rules).search(start, limits, tie_rng=np.random.default_rng(n)).move for n in range(20)}
    assert drawn == set(start.legal_moves())


def test_finished_games_and_other_games():
    over = Position.from_text("XX-- X--- ---- ----", rules=Rules(4))
    result = engine(Rules(4)).search(over)
    assert (result.move, result.value, result.exact) == (None, 16.0, True)
    with pytest.raises(ReversiError):
        engine(Rules(4)).search(Position.initial(Rules(6)))


def exact_value(position):
    return float(position.score() if position.is_over() else solve(position).score)


def test_a_deeper_search_may_choose_a_worse_move():
    """Section 2.2.3, theorem 1: two plies miss a best move that one ply finds."""
    discs = evaluators.get_evaluator("discs").static_value

    def loss(position, depth):
        move = double_alpha_maximax(position, depth, discs).move
        return exact_value(position) + exact_value(position.play(move))

    found = [p for p in sample(Rules(4), 60, seed=6, longest=8) if loss(p, 2) > loss(p, 1) == 0]
    assert found


def test_moves_are_not_invertible():
    """Section 2.2.1, theorem 2: two positions of real games, the same move, one position after it."""
    reached, before = {Position.initial(Rules(8))}, {}
    for _ in range(5):
        moves = [(position, action) for position in reached for action in position.legal_actions()]
        reached = {position.play(action) for position, action in moves}
        for position, action in moves:
            before.setdefault((action, position.play(action)), set()).add(position)
    assert any(len(positions) > 1 for positions in before.values())


def test_winning_is_not_transitive():
    """Section 2.2.2, theorem 1: of players without chance, some beat each other in a circle."""
    players = range(9)

    def play(black, white):
        position, numbers = Position.initial(Rules(4, "reversed")), {-1: black, 1: white}
        while not position.is_over():
            actions = position.legal_actions()
            position = position.play(actions[hash((position.own, position.opp, numbers[position.turn])) % len(actions)])
        return np.sign(position.score() * position.turn) * -1

    beats = {(a, b) for a in players for b in players if play(a, b) > play(b, a)}
    assert any((b, c) in beats and (c, a) in beats for a, b in beats for c in players)
