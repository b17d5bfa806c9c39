"""Time limits: when a search ends under a timer or a game clock, and stops from another thread."""

import threading
from functools import partial
from typing import ClassVar

import pytest

from reversi_env import Rules
from search.engine import deepening, timer
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.timer import MAX_VALUE_DROP, IterationHistory
from search.kernels.evaluate import UNIT
from studies import textbook
from tests.oracles.jobs import PATIENCE
from tests.oracles.processes import AT_ONCE, in_background, stopped_after
from tests.search.engine.test_engine import at_depth, first_position, quantised, some_positions


@pytest.fixture(scope="module")
def engine():
    return Engine("six-factor", megabytes=4)


# --- timers ---------------------------------------------------------------------------------------


class ManualTimer(threading.Timer):
    """A timer that expires when a test says so."""

    started: ClassVar = []

    def start(self):
        self.started.append(self)


@pytest.fixture
def timers(monkeypatch):
    monkeypatch.setattr(timer.threading, "Timer", ManualTimer)
    ManualTimer.started.clear()
    return ManualTimer.started


@pytest.mark.parametrize(
    ("limits", "settled", "expires"),
    [
        (Limits(time=1000), True, [(999, 1000)]),
        (Limits(time=3000, soft=1000), True, [(999, 1000)]),
        (Limits(time=3000, soft=1000), False, [(999, 1000), (2990, 3000)]),
    ],
)
def test_the_timer_expires_at_the_soft_limit_and_at_the_hard_one_if_nothing_has_settled(
    engine, monkeypatch, timers, limits, settled, expires
):
    """And the search ends at once."""
    engine.clear()

    def expire():
        timers[0].function()
        if len(expires) > 1:
            assert engine.switch.requested is False
            timers[1].function()

    monkeypatch.setattr(IterationHistory, "is_settled", settled)
    position = some_positions(Rules(), 1, seed=15, empties=40)[0]
    result, further, _ = stopped_after(50_000, [engine.thread_states], expire, lambda: engine.search(position, limits))
    assert all(low < timer.interval < high for timer, (low, high) in zip(timers, expires, strict=True))
    assert further < AT_ONCE
    assert result.move in position.legal_moves()


def test_an_iteration_that_was_held_up_does_not_end_the_search(monkeypatch):
    """The time is used though one iteration took long, for the machine was busy: the next may be quick."""
    engine, position = Engine("six-factor", megabytes=4), some_positions(Rules(), 1, seed=16, empties=40)[0]
    iterate, now = deepening.Search._iterate, [0.0]

    def held_up(search, depth, **options):
        now[0] += 1000 if depth == 3 else 0.001
        return depth < 7 and iterate(search, depth, **options)

    monkeypatch.setattr(deepening.Search, "_iterate", held_up)
    monkeypatch.setattr(timer, "perf_counter", lambda: now[0])
    assert engine.search(position, Limits(time=4000)).depth == 6


# --- game clocks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("iterations", "is_settled", "is_steady"),
    [
        ([("d3 c3", 1.0)] * 2, False, False),  # too early to say
        ([("d3 c3", 1.0)] * 3, True, True),
        ([("d3 c3 c4", 1.0), ("d3 c3", 1.0), ("d3 c3 f6", 1.0)], True, True),
        ([("c4 c3", 1.0), ("d3 c3", 1.0), ("d3 c3", 1.0)], True, False),
        ([("d3 c3", 1.0), ("d3 c3", 1.0), ("c4 c3", 1.0)], False, False),  # another move
        ([("d3 c3", 1.0), ("d3 e3", 1.0), ("d3 c3", 1.0)], True, False),  # another reply
        ([("d3", 1.0)] * 3, True, False),  # no reply is known
        ([("d3 c3", 1.0), ("d3 c3", 9.0), ("d3 c3", 1.0)], True, True),  # odd and even depths differ
        ([("d3 c3", 1.0), ("d3 c3", 1.0), ("d3 c3", 1.0 - MAX_VALUE_DROP)], False, False),
    ],
)
def test_a_search_settles_when_its_move_stays_and_is_not_worth_less(iterations, is_settled, is_steady):
    course = IterationHistory()
    for line, value in iterations:
        course.add_iteration(tuple(line.split()), value)
    assert (course.is_settled, course.is_steady) == (is_settled, is_steady)
    course.failed_low()
    assert not course.is_settled
    assert not course.is_steady


def lead(engine, position):
    """Discs by which the best move is ahead of the second."""
    first, second = engine.search(position, Limits(depth=6), multi_pv=2).moves[:2]
    return first.value - second.value


def searched(engine, monkeypatch, position, limits, seconds=100):
    """The depth of a search under *limits* whose every iteration takes so many seconds, up to depth 8."""
    iterate, now = deepening.Search._iterate, [0.0]

    def slow(search, depth, **options):
        now[0] += seconds
        return depth < 9 and iterate(search, depth, **options)

    engine.clear()
    with monkeypatch.context() as patch:
        patch.setattr(deepening.Search, "_iterate", slow)
        patch.setattr(timer, "perf_counter", lambda: now[0])
        return engine.search(position, limits).depth


def test_a_move_that_is_far_ahead_is_played_early_under_a_game_clock_alone(engine, monkeypatch):
    far = 2 * deepening.EASY_MOVE_MARGIN / UNIT

    def midgame_position(wanted):
        return first_position(
            Rules(), lambda p: 30 < p.empties < 45 and len(p.legal_moves()) > 3 and wanted(lead(engine, p))
        )

    ahead, level = midgame_position(lambda lead: lead > far), midgame_position(lambda lead: lead < far / 8)
    clock = Limits(time=3000, soft=2000)
    monkeypatch.setattr(IterationHistory, "is_steady", True)
    early = searched(engine, monkeypatch, ahead, clock)
    assert deepening.EASY_MOVE_TIME_SHARE * 2000 / 100 <= early < 8
    assert searched(engine, monkeypatch, level, clock) == 8
    assert searched(engine, monkeypatch, ahead, Limits(time=2000)) == 8
    assert searched(engine, monkeypatch, ahead, Limits(time=3000, soft=2000, depth=7)) == 7


def test_a_search_that_has_settled_begins_nothing_after_its_soft_limit(engine, monkeypatch):
    position = some_positions(Rules(), 1, seed=16, empties=40)[0]
    clock = Limits(time=3000, soft=430)
    monkeypatch.setattr(deepening, "EASY_MOVE_MARGIN", 1000 * UNIT)
    for settled, depth in ((True, 4), (False, 8)):
        monkeypatch.setattr(IterationHistory, "is_settled", settled)
        assert searched(engine, monkeypatch, position, clock) == depth


# --- stopping -------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("exact", [0, 60], ids=["searching", "solving"])
def test_stop_is_honoured_at_once_and_leaves_all_in_order(threads, exact):
    engine = Engine("six-factor", threads=threads, megabytes=4)
    position, limits = some_positions(Rules(), 1, seed=17, empties=32)[0], Limits(empties_exact=exact)
    records = [engine.thread_states, engine.solver.thread_states]
    for i in range(12):
        found, further, _ = stopped_after(1 + 40_000 * i, records, engine.stop, lambda: engine.search(position, limits))
        assert further < AT_ONCE
        assert found.move in position.legal_moves()
        assert not found.exact
    engine.clear()
    evaluate = quantised("six-factor", Rules())
    assert engine.search(position, at_depth(3)).value == textbook.alpha_beta(position, 3, evaluate).value


def test_a_stop_at_any_moment_of_the_hand_over_is_not_lost():
    """The clock may run out between the search and the solution after it; the solution must not run for hours then."""
    engine = Engine("discs", megabytes=1)
    position = some_positions(Rules(), 1, seed=18, empties=30)[0]
    begin_to_solve = engine.solver.prepare_search

    def stop_and_begin(*arguments, **options):
        engine.stop()
        begin_to_solve(*arguments, **options)

    engine.solver.prepare_search = stop_and_begin
    for multi_pv in (1, 3):
        ask = partial(engine.search, position, Limits(empties_exact=30), multi_pv=multi_pv)
        assert not in_background(ask).result(PATIENCE).exact


def test_a_late_clock_does_not_stop_the_next_search():
    engine = Engine("six-factor", megabytes=1)
    position = some_positions(Rules(), 1, seed=19, empties=13)[0]
    for _ in range(30):  # each ends by itself, about when its clock rings
        found = engine.search(position, Limits(time=0.003, depth=4))
        engine.clear()
        assert engine.search(position, at_depth(4)).depth == 4
    assert found.move in position.legal_moves()


def test_how_late_results_come_is_learnt_at_once_and_forgotten_slowly():
    lateness = timer.StopLatency()
    assert lateness.seconds == timer.MIN_STOP_SECONDS
    lateness.observe(0.1)
    assert lateness.seconds == 0.1
    lateness.observe(0.0)
    assert lateness.seconds == pytest.approx(0.1 * timer.LATENCY_DECAY)
    for _ in range(200):
        lateness.observe(0.0)
    assert lateness.seconds == timer.MIN_STOP_SECONDS


def test_after_a_long_sleep_the_clock_rings_no_earlier_than_a_share_of_the_limit(monkeypatch):
    now, rung = [0.0], threading.Event()
    lateness, limits = timer.StopLatency(), Limits(time=1000)
    monkeypatch.setattr(timer, "perf_counter", lambda: now[0])
    clock = timer.SearchTimer(limits, lateness, lambda: 1000.0, rung.set)
    clock.start()
    clock._timer.function()  # it rings now
    now[0] = 50_000.0
    clock.end()
    assert rung.is_set()
    assert lateness.seconds == timer.MAX_SHARE_OF_LIMIT * 1000
