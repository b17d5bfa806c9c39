"""Time limits: the end of searches under a timer or a game clock, and stops from another thread."""

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
def test_timer_expires_at_soft_limit_or_hard_limit(engine, monkeypatch, timers, limits, settled, expires):
    engine.clear()

    def expire():
        timers[0].function()
        if len(expires) > 1:
            assert engine.switch.requested is False
            timers[1].function()

    monkeypatch.setattr(IterationHistory, "is_settled", settled)
    position = some_positions(Rules(), 1, seed=15, empties=40)[0]
    result, further = stopped_after(50_000, [engine.thread_states], expire, lambda: engine.search(position, limits))
    assert all(low < timer.interval < high for timer, (low, high) in zip(timers, expires, strict=True))
    assert further < AT_ONCE
    assert result.move in position.legal_moves()


@pytest.mark.parametrize(
    ("iterations", "is_settled", "has_same_reply"),
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
def test_search_settles_with_stable_move_and_value(iterations, is_settled, has_same_reply):
    course = IterationHistory()
    for line, value in iterations:
        course.add_iteration(tuple(line.split()), value)
    assert (course.is_settled, course.has_same_reply) == (is_settled, has_same_reply)
    course.failed_low()
    assert not course.is_settled
    assert not course.has_same_reply


def searched_depth(engine, monkeypatch, position, limits, seconds=lambda depth: 100):
    """Return the depth (at most 8) of a search under *limits* whose iterations take *seconds*."""
    iterate, now = deepening.Search._iterate, [0.0]

    def slow(search, depth, **options):
        now[0] += seconds(depth)
        return depth < 9 and iterate(search, depth, **options)

    engine.clear()
    with monkeypatch.context() as patch:
        patch.setattr(deepening.Search, "_iterate", slow)
        patch.setattr(timer, "perf_counter", lambda: now[0])
        return engine.search(position, limits).depth


def test_easy_move_is_played_early_only_under_a_game_clock(engine, monkeypatch):
    far, clock = 2 * deepening.EASY_MOVE_MARGIN / UNIT, Limits(time=3000, soft=2000)

    def lead(position):
        """Return the lead in discs of the best move over the second, in a midgame position with several moves."""
        if not 30 < position.empties < 45 or len(position.legal_moves()) < 4:
            return far / 2
        first, second = engine.search(position, Limits(depth=6), multi_pv=2).moves[:2]
        return first.value - second.value

    ahead = first_position(Rules(), lambda position: lead(position) > far)
    level = first_position(Rules(), lambda position: lead(position) < far / 8)
    monkeypatch.setattr(IterationHistory, "has_same_reply", True)
    assert deepening.EASY_MOVE_TIME_SHARE * 2000 / 100 <= searched_depth(engine, monkeypatch, ahead, clock) < 8
    assert searched_depth(engine, monkeypatch, level, clock) == 8
    assert searched_depth(engine, monkeypatch, ahead, Limits(time=2000)) == 8
    assert searched_depth(engine, monkeypatch, ahead, Limits(time=3000, soft=2000, depth=7)) == 7


def test_settled_search_starts_no_iteration_after_soft_limit(engine, monkeypatch):
    """One slow iteration on a busy machine does not end a search, because the next may be fast."""
    position = some_positions(Rules(), 1, seed=16, empties=40)[0]
    monkeypatch.setattr(deepening, "EASY_MOVE_MARGIN", 1000 * UNIT)
    for settled, depth in ((True, 4), (False, 8)):
        monkeypatch.setattr(IterationHistory, "is_settled", settled)
        assert searched_depth(engine, monkeypatch, position, Limits(time=3000, soft=430)) == depth
    assert (
        searched_depth(engine, monkeypatch, position, Limits(time=4000), lambda depth: 1000 * (depth == 3) + 0.001) == 8
    )


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("exact", [0, 60], ids=["searching", "solving"])
def test_stop_ends_search_at_once_and_engine_stays_usable(threads, exact):
    engine = Engine("six-factor", threads=threads, megabytes=4)
    position, limits = some_positions(Rules(), 1, seed=17, empties=32)[0], Limits(empties_exact=exact)
    records = [engine.thread_states, engine.solver.thread_states]
    for i in range(12):
        result, further = stopped_after(1 + 40_000 * i, records, engine.stop, lambda: engine.search(position, limits))
        assert further < AT_ONCE
        assert result.move in position.legal_moves()
        assert not result.exact
    engine.clear()
    evaluate = quantised("six-factor", Rules())
    assert engine.search(position, at_depth(3)).value == textbook.alpha_beta(position, 3, evaluate).value


def test_stop_between_search_and_solver_is_not_lost():
    """A time limit may expire between the search and the solver, which must not run for hours then."""
    engine = Engine("six-factor", megabytes=1)
    position = some_positions(Rules(), 1, seed=18, empties=30)[0]
    begin_to_solve = engine.solver.prepare_search

    def stop_and_begin(*arguments, **options):
        engine.stop()
        begin_to_solve(*arguments, **options)

    engine.solver.prepare_search = stop_and_begin
    for multi_pv in (1, 3):
        ask = partial(engine.search, position, Limits(empties_exact=30), multi_pv=multi_pv)
        assert not in_background(ask).result(PATIENCE).exact


def test_late_timer_does_not_stop_the_next_search(engine, timers, monkeypatch):
    position, iterate = some_positions(Rules(), 1, seed=19, empties=13)[0], deepening.Search._iterate

    def iterate_after_expiry(search, depth, **options):
        timers[0].function()
        return iterate(search, depth, **options)

    engine.search(position, Limits(time=1000, depth=2))
    monkeypatch.setattr(deepening.Search, "_iterate", iterate_after_expiry)
    assert engine.search(position, at_depth(4)).depth == 4


def test_stop_latency_is_limited_to_a_share_of_the_limit(monkeypatch):
    now, expired = [0.0], threading.Event()
    lateness, limits = timer.StopLatency(), Limits(time=1000)
    monkeypatch.setattr(timer, "perf_counter", lambda: now[0])
    clock = timer.SearchTimer(limits, lateness, lambda: 1000.0, expired.set)
    clock.start()
    clock._timer.function()  # expires now
    now[0] = 50_000.0
    clock.end()
    assert expired.is_set()
    assert lateness.seconds == timer.MAX_SHARE_OF_LIMIT * 1000
