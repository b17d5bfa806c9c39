"""The engine: equality with plain negamax, deterministic results, multi-PV, special positions and limits."""

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
#: Every evaluator needs its own compilation of the search, which takes seconds: all but one are slow tests.
EVALUATORS = [pytest.param(name, marks=[pytest.mark.slow] * (name != "six-factor")) for name in evaluators.formulas()]

#: Nodes of fixed searches. After an intended change of the search, or of an evaluator's weights or scale, write the new
#: number here (`reversi bench search` prints it) and the reason in the commit. An unintended change is a bug.
SIGNATURE = 1_010_186


def some_positions(rules, count, seed=0, empties=None):
    """Return unfinished positions of random games, from all stages or with that many empty squares."""
    longest = rules.square_count - 6
    generator = np.random.default_rng(seed)
    plies = generator.integers(0, longest, 8 * count) if empties is None else rules.square_count - 4 - empties
    own, opp = batch.random_positions(8 * count, plies, rules, seed=seed)
    sampled = [Position(rules, int(a), int(b)) for a, b in zip(own, opp, strict=True)]
    sampled = [position for position in sampled if not position.is_over() and empties in (None, position.empties)]
    assert len(sampled) >= count
    return sampled[:count]


def first_position(rules, wanted):
    """Return the first position of random games that fulfils the condition *wanted*."""
    generator = np.random.default_rng(0)
    while True:
        position = Position.initial(rules)
        while not position.is_over():
            if wanted(position):
                return position
            position = position.play(int(generator.choice(position.legal_actions())))


def quantised(name, rules):
    """Return the evaluation as the engine uses it, in discs: rounded to units and clipped to the range of scores."""
    net = evaluators.get_evaluator(name).record(rules)

    def evaluate(position):
        own, opp = (np.array([board], np.uint64) for board in (position.own, position.opp))
        return units(float(static_values(net, own, opp)[0]), rules.square_count) / UNIT

    return evaluate


def at_depth(depth):
    return Limits(depth=depth, empties_exact=0)


# --- values ---------------------------------------------------------------------------------------
@every_game
@pytest.mark.parametrize("name", EVALUATORS)
def test_value_equals_negamax_with_an_empty_table(rules, name):
    """Shallow entries of earlier iterations only order the moves, and no deeper entries exist."""
    engine, evaluate = Engine(name, rules, megabytes=0.1), quantised(name, rules)
    must_pass = first_position(rules, lambda position: position.must_pass() and position.empties > 2)
    for position in [*some_positions(rules, 5, seed=1), must_pass]:
        for depth in range(1, 5):
            reference = textbook.negamax if depth < 4 else textbook.alpha_beta
            expected = reference(position, depth, evaluate)
            engine.clear()
            result = engine.search(position, at_depth(depth))
            assert result.value == expected.value, (depth, position)
            assert result.exact == (depth >= position.empties)
            chosen = position.play(result.move)
            depth_left = depth if result.move == "pass" else depth - 1
            assert -textbook.alpha_beta(chosen, depth_left, evaluate).value == result.value, (depth, position)


def test_table_grows_with_depth_and_keeps_its_entries():
    """A repeated search is answered from the table. The narrowest limit of a search decides how much the table grows."""
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


def test_engine_and_its_solver_never_run_at_the_same_time(monkeypatch):
    """Both use the same thread states: at the same time, values were wrong and lines illegal."""
    engine, locked = Engine("six-factor", megabytes=1), []
    position = some_positions(Rules(), 1, seed=3, empties=12)[0]

    def climb(*arguments):
        locked.append(engine.solver._one_at_a_time.locked())
        return Solver.solve_at(engine.solver, *arguments)

    monkeypatch.setattr(engine.solver, "solve_at", climb)
    result = engine.search(position, Limits(empties_exact=12))
    assert locked
    assert all(locked)
    assert engine.solver.solve(position).score == result.value

    def begin(**arguments):
        locked[:] = [engine._one_at_a_time.locked()]
        return Solver.prepare_search(engine.solver, **arguments)

    monkeypatch.setattr(engine.solver, "prepare_search", begin)
    engine.solver.solve(position)
    assert locked == [True]


def test_value_does_not_depend_on_thread_count(monkeypatch):
    """At a fixed depth the order of the threads does not change the value. The PV is legal."""
    monkeypatch.setattr(deepening, "SINGLE_THREAD_NODES", 0)
    engines, lengths = [Engine("six-factor", threads=threads, megabytes=1) for threads in (1, 3)], []
    for position in some_positions(Rules(), 12, seed=8):
        for engine in engines:
            engine.clear()
        alone, team = (engine.search(position, at_depth(8)) for engine in engines)
        assert team.value == alone.value
        for result in (alone, team):
            assert result.pv[0] == result.move
            assert position.play_all(result.pv)
            lengths.append(len(result.pv))
    assert np.mean(lengths) > 3


def search_with_busy(position, marked, depth, share_depth=2, node_limit=10**9):
    """Return root values and nodes of a thread that shares the search while others search the *marked* positions."""
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


def test_positions_searched_by_other_threads_are_deferred():
    depth, deferred, reordered = 5, 0, 0
    sampled = [position for position in some_positions(Rules(), 8, seed=1, empties=40) if not position.must_pass()]
    for position in sampled:
        children = [position.play(action) for action in position.legal_actions()]
        grandchildren = [(child.play(action), depth - 1) for child in children for action in child.legal_actions()]
        values, nodes = search_with_busy(position, [], depth)
        assert nodes == search_with_busy(position, [], depth, share_depth=depth + 1)[1]  # as without other threads
        others, other_nodes = search_with_busy(position, grandchildren, depth)
        assert others.max() == values.max()
        reordered += other_nodes != nodes
        cut, _ = search_with_busy(position, [(child, depth) for child in children[1:2]], depth, node_limit=nodes // 2)
        if cut.size > 3 and cut[2] > -INFINITY == cut[-1]:  # stopped after the third move, before the last
            assert cut[1] == -INFINITY < cut[0]
            deferred += 1
    assert deferred
    assert reordered


def test_deferred_move_with_a_bound_ranks_behind_the_best():
    """The four first moves have equal values, but the deferred one has only an upper bound."""
    position = Position.initial()
    values, _ = search_with_busy(position, [(position.play(position.legal_actions()[1]), 5)], 5)
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
def test_solver_is_used_only_if_all_limits_allow_it(limits, empties, solves):
    """A limit of depth alone never excludes the solver; a time or node limit may."""
    position = some_positions(Rules(), 1, seed=5, empties=empties)[0]
    assert bool(Engine("six-factor", preload=False).selectivity_levels(position, limits)) == solves


# --- determinism ----------------------------------------------------------------------------------
def test_node_signature():
    assert [signature(), signature()] == [SIGNATURE, SIGNATURE]


def test_ties_are_broken_at_random_with_tie_rng():
    """At the start position all moves are symmetric. Without multi-PV the result has no list of moves."""
    engine, start = Engine("six-factor", megabytes=0.1), Position.initial()
    plain = [engine.search(start, Limits(depth=depth)) for depth in (1, 2, 5)]
    assert [(result.move, result.depth, result.moves) for result in plain] == [("d3", depth, ()) for depth in (1, 2, 5)]
    engine.clear()  # table entries of depth 5 would change the values
    assert {engine.search(start, at_depth(3)).move for _ in range(5)} == {"d3"}
    tie_rng = np.random.default_rng(0)
    drawn = [engine.search(start, at_depth(3), tie_rng=tie_rng) for _ in range(40)]
    assert {result.move for result in drawn} == set(start.legal_moves())
    assert len({result.value for result in drawn}) == 1


# --- the result -----------------------------------------------------------------------------------
@every_game
def test_multi_pv_values_equal_separate_searches(rules):
    """At a fixed depth, the value of a move is that of a search of the next position, one ply less deep."""
    engine = Engine("six-factor", rules, megabytes=1)
    for position in some_positions(rules, 4, seed=6):
        if position.must_pass():
            continue
        separate = {}
        for move in position.legal_moves():
            after = position.play(move)
            separate[move] = -textbook.alpha_beta(after, 2, quantised("six-factor", rules)).value
        for lines in (2, 3, 100):
            result = engine.search(position, at_depth(3), multi_pv=lines)
            values = [entry.value for entry in result.moves]
            assert len(values) == min(lines, len(separate))
            assert values == sorted(separate.values(), reverse=True)[:lines]
            assert all(separate[entry.move] == entry.value for entry in result.moves)
            assert (result.move, result.value) == (result.moves[0].move, result.moves[0].value)


@every_game
def test_excluded_moves_and_iteration_reports(rules):
    engine = Engine("six-factor", rules, megabytes=1)
    for position in [*some_positions(rules, 2, seed=6), *some_positions(rules, 2, seed=6, empties=6)]:
        if len(position.legal_moves()) < 2:
            continue
        first, *others = engine.search(position, at_depth(3), multi_pv=100).moves
        reports = []
        result = engine.search(position, at_depth(3), exclude=[first.move], on_iteration=reports.append)
        assert result.value == others[0].value
        assert result.move != first.move
        assert [report.depth for report in reports] == sorted({report.depth for report in reports})
        assert (reports[-1].move, reports[-1].value) == (result.move, result.value)
        assert engine.search(position, at_depth(3)).value == first.value  # the tables keep nothing of it


def test_multi_pv_values_have_the_same_depth():
    """An unfinished iteration or an earlier, deeper search does not change the list.

    A search that continues shallower ones has the same values and fewer nodes than one with an empty table.
    """
    position = Position.initial().play_all(["d3", "c5", "e6", "d2"])
    used = Engine("six-factor", megabytes=1)
    for nodes in (3_000, 10_000, 30_000):
        used.search(position, at_depth(8))
        result = used.search(position, Limits(nodes=nodes), multi_pv=64)
        expected = Engine("six-factor", megabytes=1).search(position, at_depth(result.depth), multi_pv=64)
        assert result.nodes >= nodes  # the limit stopped it
        assert result.moves == expected.moves
        assert len(result.moves) == len(position.legal_moves())
    used.clear()
    for depth in range(1, 7):
        result = used.search(position, at_depth(depth), multi_pv=64, keep_estimates=depth > 1)
    anew = used.search(position, at_depth(6), multi_pv=64)
    assert result.moves == anew.moves
    assert result.nodes < anew.nodes


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
def test_invalid_input_is_named(ask, words):
    with pytest.raises(ReversiError, match=words):
        ask()


def small_search(rules=None, **options):
    return Engine("six-factor", rules or Rules(), megabytes=0.1).search(Position.initial(), **options)


# --- special positions ----------------------------------------------------------------------------
@every_game
def test_finished_game_and_forced_pass(rules):
    over = Position.from_text("X" * (rules.square_count - 1) + "-", rules=rules)
    engine, position = Engine("six-factor", rules, megabytes=0.1), first_position(rules, Position.must_pass)
    result = engine.search(over, Limits(time=1), multi_pv=3)
    assert (result.move, result.value, result.exact) == (None, rules.sign * rules.square_count, True)
    assert (result.pv, result.moves, result.depth) == ((), (), 0)
    engine.clear()
    result = engine.search(position, at_depth(2), multi_pv=2)
    engine.clear()
    other = engine.search(position.play("pass"), at_depth(2))
    assert (result.move, result.value) == ("pass", -other.value)
    assert result.pv == ("pass", *other.pv)
    assert [(entry.move, entry.value) for entry in result.moves] == [("pass", -other.value)]
    assert engine.search(position, at_depth(2)).moves == ()


def test_forced_move_is_played_at_once_under_a_time_limit():
    position = first_position(Rules(), lambda p: p.legal_board().bit_count() == 1 and p.empties > 25)
    engine = Engine("six-factor", megabytes=1)
    result = engine.search(position, Limits(time=5))
    assert (result.move, result.depth) == (position.legal_moves()[0], 1)
    assert engine.search(position, at_depth(4)).depth == 4  # without a time limit the caller wants the value


# --- limits ---------------------------------------------------------------------------------------
def test_node_limit_holds_and_result_has_a_move():
    engine = Engine("six-factor", megabytes=1)
    for limit in (1, 10, 100, 1000, 30_000):
        for position in some_positions(Rules(), 3, seed=12, empties=30):
            engine.clear()
            result = engine.search(position, Limits(nodes=limit))
            assert result.nodes <= limit + result.depth + 2  # one more node per ply while the search returns
            assert result.move in position.legal_moves()
            assert abs(result.value) <= 64
    alone = deepening.Search(Engine("six-factor", threads=2, megabytes=0.1), Position.initial(), Limits(nodes=1000), 1)
    alone.thread_states["nodes"] = 300, 280
    assert alone._nodes_left() == 700  # nodes of helper threads do not reduce the solver's limit


def test_stopped_search_stores_no_wrong_table_entries():
    """The node limit may stop a search at any node; the next search has the correct value."""
    rules = Rules(4)
    engine, position = Engine("six-factor", rules, megabytes=0.1), some_positions(rules, 1, seed=21, empties=9)[0]
    whole = engine.search(position, at_depth(4))
    assert whole.value == textbook.alpha_beta(position, 4, quantised("six-factor", rules)).value
    for limit in range(1, whole.nodes, 2):
        engine.clear()
        assert engine.search(position, Limits(depth=4, nodes=limit, empties_exact=0)).depth < 4
        assert engine.search(position, at_depth(4)).value == whole.value, limit


def test_node_limit_includes_the_solver():
    """The solver gets the remaining nodes, but may exceed them: nodes of the last six squares are not counted singly."""
    position = some_positions(Rules(), 1, seed=13, empties=18)[0]
    engine = Engine("six-factor", megabytes=1)
    for multi_pv in (1, 5):
        engine.clear()
        result = engine.search(position, Limits(nodes=50_000, empties_exact=18), multi_pv=multi_pv)
        assert not result.exact
        assert 20_000 < result.nodes < 60_000
    engine.clear()
    assert engine.search(position, Limits(nodes=10**8, empties_exact=18)).exact


def test_solver_completes_the_last_iteration():
    """With enough nodes left, the faster solver does the last iteration, unless `empties_exact` is 0."""
    engine = Engine("six-factor", megabytes=4)
    for position in some_positions(Rules(), 3, seed=21, empties=9):
        engine.clear()
        result = engine.search(position, Limits(nodes=10**7))
        assert (result.exact, result.depth, result.value) == (True, 9, solve(position).score)
        assert engine.search(position, Limits(nodes=10**7, empties_exact=0)).value == result.value
