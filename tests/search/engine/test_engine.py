"""The engine: the value of plain negamax at every depth, the same result every time, and limits that hold."""

import numpy as np
import pytest

from benchmarks.search import signature
from reversi_env import Position, ReversiError, Rules, batch
from search import evaluators
from search.engine import deepening
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.solver import Solver, solve
from search.engine.table import TranspositionTable
from search.engine.threads import make_thread_states, sharing
from search.kernels.abdada import mark_busy
from search.kernels.evaluate import INFINITY, UNIT, static_values, units
from search.kernels.midgame import search_root
from search.kernels.thread_state import SHARING_THREAD_STATE
from studies import textbook
from tests.oracles.search import GAMES, game_name

every_game = pytest.mark.parametrize("rules", GAMES, ids=game_name)
#: Each evaluator is a search to compile, which takes seconds: all but one are slow tests.
EVALUATORS = [pytest.param(name, marks=[pytest.mark.slow] * (name != "six-factor")) for name in evaluators.formulas()]

#: Nodes of fixed searches. If you changed the search on purpose, or an evaluator's weights or scale, put the new number
#: here (`reversi bench search` prints it) and say in the commit why it moved; if you did not, you have found a bug.
SIGNATURE = 1_010_186


def some_positions(rules, count, seed=0, empties=None):
    """Positions of random games that are not over: anywhere in the game, or with that many empty squares."""
    longest = rules.square_count - 6
    generator = np.random.default_rng(seed)
    plies = generator.integers(0, longest, 8 * count) if empties is None else rules.square_count - 4 - empties
    own, opp = batch.random_positions(8 * count, plies, rules, seed=seed)
    found = [Position(rules, int(a), int(b)) for a, b in zip(own, opp, strict=True)]
    found = [position for position in found if not position.is_over() and empties in (None, position.empties)]
    assert len(found) >= count
    return found[:count]


def first_position(rules, wanted):
    """The first position of random games for which *wanted* is true."""
    generator = np.random.default_rng(0)
    while True:
        position = Position.initial(rules)
        while not position.is_over():
            if wanted(position):
                return position
            position = position.play(int(generator.choice(position.legal_actions())))


def quantised(name, rules):
    """The evaluation as the engine sees it, in discs: whole units, inside the range of scores."""
    net = evaluators.get_evaluator(name).record(rules)

    def evaluate(position):
        own, opp = (np.array([board], np.uint64) for board in (position.own, position.opp))
        return units(float(static_values(net, own, opp)[0]), rules.square_count) / UNIT

    return evaluate


def at_depth(depth):
    return Limits(depth=depth, empties_exact=0)


# --- right values ---------------------------------------------------------------------------------
@every_game
@pytest.mark.parametrize("name", EVALUATORS)
def test_with_an_empty_table_the_value_is_that_of_plain_negamax(rules, name):
    """Shallow entries of earlier iterations only order the moves; deeper ones do not exist yet where they would be used."""
    engine, evaluate = Engine(name, rules, megabytes=0.1), quantised(name, rules)
    must_pass = first_position(rules, lambda position: position.must_pass() and position.empties > 2)
    for position in [*some_positions(rules, 5, seed=1), must_pass]:
        for depth in range(1, 5):
            twin = textbook.negamax if depth < 4 else textbook.alpha_beta
            expected = twin(position, depth, evaluate)
            engine.clear()
            found = engine.search(position, at_depth(depth))
            assert found.value == expected.value, (depth, position)
            assert found.exact == (depth >= position.empties)
            chosen = position.play(found.move)
            depth_left = depth if found.move == "pass" else depth - 1
            assert -textbook.alpha_beta(chosen, depth_left, evaluate).value == found.value, (depth, position)


def test_the_table_grows_with_the_depth_and_keeps_what_it_knows():
    """A search to the same depth again is answered by it. It grows by what the narrowest limit lets a search visit."""
    engine = Engine("six-factor")
    position, used, nodes = some_positions(Rules(), 1, seed=3)[0], [], []
    for depth in (4, 9, 4):
        nodes.append(engine.search(position, at_depth(depth)).nodes)
        used.append(engine.table.bucket_mask + 1)
    assert used[0] < used[1] == used[2] < engine.table.words().size / 12
    engine.search(position, Limits(nodes=1000))
    assert engine.table.bucket_mask + 1 == used[2]
    for limits in (Limits(time=0.001), Limits(depth=10**6, nodes=1)):
        engine.search(position, limits)
        assert engine.table.bucket_mask + 1 == used[2]
    engine.search(position, Limits(time=100_000, depth=12))
    assert engine.table.bucket_mask + 1 == engine.table.words().size / 12
    assert engine.search(position, at_depth(9)).nodes < nodes[1] / 10
    engine.clear()
    assert engine.table.bucket_mask + 1 == used[0]


def test_a_search_and_a_solution_by_its_solver_wait_for_each_other(monkeypatch):
    """They use the same records: side by side, values were wrong and lines illegal."""
    engine, waits = Engine("six-factor", megabytes=1), []
    position = some_positions(Rules(), 1, seed=3, empties=12)[0]

    def climb(*arguments):
        waits.append(engine.solver._one_at_a_time.locked())
        return Solver.solve_at(engine.solver, *arguments)

    monkeypatch.setattr(engine.solver, "solve_at", climb)
    found = engine.search(position, Limits(empties_exact=12))
    assert waits
    assert all(waits)
    assert engine.solver.solve(position).score == found.value

    def begin(**arguments):
        waits[:] = [engine._one_at_a_time.locked()]
        return Solver.prepare_search(engine.solver, **arguments)

    monkeypatch.setattr(engine.solver, "prepare_search", begin)
    engine.solver.solve(position)
    assert waits == [True]


def test_threads_together_find_the_value_that_one_finds(monkeypatch):
    """They search one tree to one depth: who comes first to which position makes no difference. The line is legal."""
    monkeypatch.setattr(deepening, "SINGLE_THREAD_NODES", 0)
    engines, lengths = [Engine("six-factor", threads=threads, megabytes=1) for threads in (1, 3)], []
    for position in some_positions(Rules(), 12, seed=8):
        for engine in engines:
            engine.clear()
        alone, team = (engine.search(position, at_depth(8)) for engine in engines)
        assert team.value == alone.value
        for found in (alone, team):
            assert found.pv[0] == found.move
            assert position.play_all(found.pv)
            lengths.append(len(found.pv))
    assert np.mean(lengths) > 3


def searched_beside(position, marked, depth, share_depth=2, node_limit=10**9):
    """Values of the root moves and nodes of a thread that shares the search, where others search the *marked* positions."""
    thread_states, table = make_thread_states(position.rules, dtype=SHARING_THREAD_STATE), TranspositionTable(1)
    table.attach(thread_states, "estimates")
    thread_states["share_depth"], thread_states["node_limit"] = share_depth, node_limit
    nets = evaluators.get_evaluator("six-factor").record(position.rules)
    squares = np.array([position.rules.square_of(action) for action in position.legal_actions()], np.int64)
    values, boards = np.full(squares.size, -INFINITY), (np.uint64(position.own), np.uint64(position.opp))
    with sharing(thread_states):
        for child, level in marked:
            mark_busy(thread_states["busy"][0], np.uint64(child.own), np.uint64(child.opp), level)
        search_root(thread_states, nets, *boards, squares, values, -INFINITY, INFINITY, depth, 1)
    return values, int(thread_states["nodes"][0])


def test_what_another_thread_is_searching_is_left_for_later():
    depth, put_off, reordered = 5, 0, 0
    sampled = [position for position in some_positions(Rules(), 8, seed=1, empties=40) if not position.must_pass()]
    for position in sampled:
        children = [position.play(action) for action in position.legal_actions()]
        grandchildren = [(child.play(action), depth - 1) for child in children for action in child.legal_actions()]
        values, nodes = searched_beside(position, [], depth)
        assert nodes == searched_beside(position, [], depth, share_depth=depth + 1)[1]  # alone if it meets nobody
        others, other_nodes = searched_beside(position, grandchildren, depth)
        assert others.max() == values.max()
        reordered += other_nodes != nodes
        cut, _ = searched_beside(position, [(child, depth) for child in children[1:2]], depth, node_limit=nodes // 2)
        if cut.size > 3 and cut[2] > -INFINITY == cut[-1]:  # stopped behind the third move, before the last
            assert cut[1] == -INFINITY < cut[0]
            put_off += 1
    assert put_off
    assert reordered


def test_a_move_that_was_put_off_and_only_bounded_stands_behind_the_best():
    """The four first moves are worth the same, but of what comes last it is only known that it is not better."""
    position = Position.initial()
    values, _ = searched_beside(position, [(position.play(position.legal_actions()[1]), 5)], 5)
    best = values[0]
    assert values.tolist() == [best, best - 1, best, best]


@pytest.mark.parametrize(
    ("limits", "empties", "solves"),
    [
        *((Limits(depth=40), 46, True), (Limits(depth=40, time=1), 46, False)),
        (Limits(depth=40, nodes=100_000), 30, False),
        *((Limits(depth=8, time=1), 14, True), (Limits(depth=4, time=1), 14, False)),
        *((Limits(nodes=100_000), 6, True), (Limits(time=5), 14, True)),
        *((Limits(depth=4, empties_exact=14), 14, True), (Limits(depth=4, empties_exact=13), 14, False)),
        *((Limits(time=0.2, depth=3, empties_exact=0), 14, False), (Limits(depth=12), 12, True)),
        (Limits(), 12, True),
    ],
)
def test_the_solver_takes_over_when_every_limit_lets_it(limits, empties, solves):
    """A depth alone is the caller's own affair; with a clock or a number of nodes beside it they count too."""
    position = some_positions(Rules(), 1, seed=5, empties=empties)[0]
    assert bool(Engine("six-factor", preload=False).selectivity_levels(position, limits)) == solves


# --- the same every time --------------------------------------------------------------------------
def test_the_node_signature():
    assert [signature(), signature()] == [SIGNATURE, SIGNATURE]


def test_equal_moves_are_drawn_by_lot_when_asked():
    """At the start all moves are images of each other. Without multi-PV they are not listed."""
    engine, start = Engine("six-factor", megabytes=0.1), Position.initial()
    plain = [engine.search(start, Limits(depth=depth)) for depth in (1, 2, 5)]
    assert [(found.move, found.depth, found.moves) for found in plain] == [("d3", depth, ()) for depth in (1, 2, 5)]
    engine.clear()  # table entries of depth 5 give moves other values
    assert {engine.search(start, at_depth(3)).move for _ in range(5)} == {"d3"}
    tie_rng = np.random.default_rng(0)
    drawn = [engine.search(start, at_depth(3), tie_rng=tie_rng) for _ in range(40)]
    assert {found.move for found in drawn} == set(start.legal_moves())
    assert len({found.value for found in drawn}) == 1


# --- the result -----------------------------------------------------------------------------------
@every_game
def test_multi_pv_values_are_those_of_separate_searches_best_first(rules):
    """At a fixed depth a move is worth what a search of the position after it says at one ply less."""
    engine = Engine("six-factor", rules, megabytes=1)
    for position in some_positions(rules, 4, seed=6):
        if position.must_pass():
            continue
        separate = {}
        for move in position.legal_moves():
            after = position.play(move)
            separate[move] = -textbook.alpha_beta(after, 2, quantised("six-factor", rules)).value
        for lines in (2, 3, 100):
            found = engine.search(position, at_depth(3), multi_pv=lines)
            values = [entry.value for entry in found.moves]
            assert len(values) == min(lines, len(separate))
            assert values == sorted(separate.values(), reverse=True)[:lines]
            assert all(separate[entry.move] == entry.value for entry in found.moves)
            assert (found.move, found.value) == (found.moves[0].move, found.moves[0].value)


@every_game
def test_excluded_moves_are_not_searched_and_iterations_are_reported(rules):
    engine = Engine("six-factor", rules, megabytes=1)
    for position in [*some_positions(rules, 2, seed=6), *some_positions(rules, 2, seed=6, empties=6)]:
        if len(position.legal_moves()) < 2:
            continue
        first, *others = engine.search(position, at_depth(3), multi_pv=100).moves
        reports = []
        found = engine.search(position, at_depth(3), exclude=[first.move], on_iteration=reports.append)
        assert found.value == others[0].value
        assert found.move != first.move
        assert [report.depth for report in reports] == sorted({report.depth for report in reports})
        assert (reports[-1].move, reports[-1].value) == (found.move, found.value)
        assert engine.search(position, at_depth(3)).value == first.value  # nothing of it is left in the tables


def test_multi_pv_values_are_all_of_one_depth():
    """Neither an iteration that was not finished nor a deeper search before it gets into the list.

    It goes on from shallower searches: the same values for fewer nodes than from an empty table.
    """
    position = Position.initial().play_all(["d3", "c5", "e6", "d2"])
    used = Engine("six-factor", megabytes=1)
    for nodes in (3_000, 10_000, 30_000):
        used.search(position, at_depth(8))
        found = used.search(position, Limits(nodes=nodes), multi_pv=64)
        expected = Engine("six-factor", megabytes=1).search(position, at_depth(found.depth), multi_pv=64)
        assert found.nodes >= nodes  # it was cut short
        assert found.moves == expected.moves
        assert len(found.moves) == len(position.legal_moves())
    used.clear()
    for depth in range(1, 7):
        found = used.search(position, at_depth(depth), multi_pv=64, keep_estimates=depth > 1)
    anew = used.search(position, at_depth(6), multi_pv=64)
    assert found.moves == anew.moves
    assert found.nodes < anew.nodes


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        *((lambda wrong=wrong: small_search(multi_pv=wrong), "multi_pv=") for wrong in (0, -1, 1.5, True, "2")),
        (lambda: small_search(rules=Rules(6)), "expected one of"),
        (lambda: Engine("six-factor", threads=0), "threads=0: expected"),
        *((lambda wrong=wrong: Limits(time=wrong), "^time=.*expected") for wrong in (0, -1.5, float("nan"), "1", True)),
        *((lambda wrong=wrong: Limits(depth=wrong), "^depth=.*expected") for wrong in (0, 2.5, True)),
        *((lambda wrong=wrong: Limits(nodes=wrong), "^nodes=.*expected") for wrong in (0, 1 << 63)),
        (lambda: Limits(empties_exact=-1), "^empties_exact=.*expected"),
        *((lambda wrong=wrong: Limits(**wrong), "^soft=.*expected") for wrong in ({"soft": 1}, {"soft": 0, "time": 1})),
    ],
)
def test_bad_input_is_named(ask, words):
    with pytest.raises(ReversiError, match=words):
        ask()


def small_search(rules=None, **options):
    return Engine("six-factor", rules or Rules(), megabytes=0.1).search(Position.initial(), **options)


# --- special positions ----------------------------------------------------------------------------
@every_game
def test_a_finished_game_and_a_pass(rules):
    over = Position.from_text("X" * (rules.square_count - 1) + "-", rules=rules)
    engine, position = Engine("six-factor", rules, megabytes=0.1), first_position(rules, Position.must_pass)
    found = engine.search(over, Limits(time=1), multi_pv=3)
    assert (found.move, found.value, found.exact) == (None, rules.sign * rules.square_count, True)
    assert (found.pv, found.moves, found.depth) == ((), (), 0)
    engine.clear()
    found = engine.search(position, at_depth(2), multi_pv=2)
    engine.clear()
    other = engine.search(position.play("pass"), at_depth(2))
    assert (found.move, found.value) == ("pass", -other.value)
    assert found.pv == ("pass", *other.pv)
    assert [(entry.move, entry.value) for entry in found.moves] == [("pass", -other.value)]
    assert engine.search(position, at_depth(2)).moves == ()


def test_with_a_clock_an_only_move_is_played_at_once():
    position = first_position(Rules(), lambda p: p.legal_board().bit_count() == 1 and p.empties > 25)
    engine = Engine("six-factor", megabytes=1)
    found = engine.search(position, Limits(time=5))
    assert (found.move, found.depth) == (position.legal_moves()[0], 1)
    assert engine.search(position, at_depth(4)).depth == 4  # without one, the value is what is asked for


# --- limits ---------------------------------------------------------------------------------------
def test_the_node_limit_holds_and_there_is_always_a_move():
    engine = Engine("six-factor", megabytes=1)
    for limit in (1, 10, 100, 1000, 30_000):
        for position in some_positions(Rules(), 3, seed=12, empties=30):
            engine.clear()
            found = engine.search(position, Limits(nodes=limit))
            assert found.nodes <= limit + found.depth + 2  # on its way up the search looks once more at every level
            assert found.move in position.legal_moves()
            assert abs(found.value) <= 64
    alone = deepening.Search(Engine("six-factor", threads=2, megabytes=0.1), Position.initial(), Limits(nodes=1000), 1)
    alone.thread_states["nodes"] = 300, 280
    assert alone._nodes_left() == 700  # each thread's own: what helpers visited is not taken from what the solver may


def test_nothing_that_a_stopped_search_returns_gets_into_the_table():
    """Wherever the limit strikes, at the last ply above all: the next search finds only what is true."""
    rules = Rules(4)
    engine, position = Engine("six-factor", rules, megabytes=0.1), some_positions(rules, 1, seed=21, empties=9)[0]
    whole = engine.search(position, at_depth(4))
    assert whole.value == textbook.alpha_beta(position, 4, quantised("six-factor", rules)).value
    for limit in range(1, whole.nodes, 2):
        engine.clear()
        assert engine.search(position, Limits(depth=4, nodes=limit, empties_exact=0)).depth < 4
        assert engine.search(position, at_depth(4)).value == whole.value, limit


def test_the_node_limit_holds_for_the_solver_too():
    """Nodes left over from the search, shared out; a few hundred more, since the last six squares are not counted singly."""
    position = some_positions(Rules(), 1, seed=13, empties=18)[0]
    engine = Engine("six-factor", megabytes=1)
    for multi_pv in (1, 5):
        engine.clear()
        found = engine.search(position, Limits(nodes=50_000, empties_exact=18), multi_pv=multi_pv)
        assert not found.exact
        assert 20_000 < found.nodes < 60_000
    engine.clear()
    assert engine.search(position, Limits(nodes=10**8, empties_exact=18)).exact


def test_the_solver_proves_what_was_searched_to_the_last_ply_but_one():
    """With nodes to spare the last iteration is the solver's, which is faster; unless it is forbidden."""
    engine = Engine("six-factor", megabytes=4)
    for position in some_positions(Rules(), 3, seed=21, empties=9):
        engine.clear()
        found = engine.search(position, Limits(nodes=10**7))
        assert (found.exact, found.depth, found.value) == (True, 9, solve(position).score)
        assert engine.search(position, Limits(nodes=10**7, empties_exact=0)).value == found.value
