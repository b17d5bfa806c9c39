"""Game clocks: when a search has settled and ends at its soft limit or before, and when it goes on."""

import threading

import pytest

from reversi_env import Rules
from search.engine import clock as clock_module
from search.engine import engine as engine_module
from search.engine.clock import MAX_VALUE_DROP, IterationHistory
from search.engine.engine import EASY_MOVE_MARGIN, EASY_MOVE_TIME_SHARE, Engine
from search.engine.limits import Limits
from search.kernels.midgame import UNIT
from tests.oracles.processes import AT_ONCE, stopped_after
from tests.search.engine.test_engine import first_position, some_positions


def settling(*iterations):
    course = IterationHistory()
    for line, value in iterations:
        course.add_iteration(tuple(line.split()), value)
    return course


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
    course = settling(*iterations)
    assert (course.is_settled, course.is_steady) == (is_settled, is_steady)
    course.failed_low()
    assert not course.is_settled
    assert not course.is_steady


@pytest.fixture(scope="module")
def engine():
    return Engine("six-factor", megabytes=4)


def lead(engine, position):
    """Discs by which the best move is ahead of the second."""
    first, second = engine.search(position, Limits(depth=6), multi_pv=2).moves[:2]
    return first.value - second.value


def searched(engine, monkeypatch, position, limits, seconds=100):
    """The depth of a search under *limits* whose every iteration takes so many seconds, up to depth 8."""
    iterate, now = engine_module._Search._iterate, [0.0]

    def slow(search, depth, **options):
        now[0] += seconds
        return depth < 9 and iterate(search, depth, **options)

    engine.clear()
    with monkeypatch.context() as patch:
        patch.setattr(engine_module._Search, "_iterate", slow)
        patch.setattr(clock_module, "perf_counter", lambda: now[0])
        return engine.search(position, limits).depth


def test_a_move_that_is_far_ahead_is_played_early_under_a_game_clock_alone(engine, monkeypatch):
    far = 2 * EASY_MOVE_MARGIN / UNIT
    ahead = first_position(
        Rules(), lambda p: 30 < p.empties < 45 and len(p.legal_moves()) > 3 and lead(engine, p) > far
    )
    level = first_position(
        Rules(), lambda p: 30 < p.empties < 45 and len(p.legal_moves()) > 3 and lead(engine, p) < far / 8
    )
    clock = Limits(time=3000, soft=2000)
    monkeypatch.setattr(IterationHistory, "is_steady", True)
    early = searched(engine, monkeypatch, ahead, clock)
    assert EASY_MOVE_TIME_SHARE * 2000 / 100 <= early < 8
    assert searched(engine, monkeypatch, level, clock) == 8
    assert searched(engine, monkeypatch, ahead, Limits(time=2000)) == 8
    assert searched(engine, monkeypatch, ahead, Limits(time=3000, soft=2000, depth=7)) == 7


def test_a_search_that_has_settled_begins_nothing_after_its_soft_limit(engine, monkeypatch):
    position = some_positions(Rules(), 1, seed=16, empties=40)[0]
    clock = Limits(time=3000, soft=430)
    monkeypatch.setattr(engine_module, "EASY_MOVE_MARGIN", 1000 * UNIT)
    for settled, depth in ((True, 4), (False, 8)):
        monkeypatch.setattr(IterationHistory, "is_settled", settled)
        assert searched(engine, monkeypatch, position, clock) == depth


@pytest.mark.parametrize("settled", [True, False])
def test_the_clock_rings_at_the_soft_limit_and_again_at_the_hard_one_if_nothing_has_settled(
    engine, monkeypatch, settled
):
    clocks = []

    class Clock(threading.Timer):
        """One that rings when it is told to."""

        def start(self):
            clocks.append(self)

    def ring():
        clocks[0].function()
        if not settled:
            assert engine._switch.requested is False
            clocks[1].function()

    monkeypatch.setattr(clock_module.threading, "Timer", Clock)
    monkeypatch.setattr(IterationHistory, "is_settled", settled)
    position = some_positions(Rules(), 1, seed=15, empties=40)[0]
    found, further, _ = stopped_after(
        50_000, [engine._thread_states], ring, lambda: engine.search(position, Limits(time=3000, soft=1000))
    )
    assert [999 < clocks[0].interval < 1000, *(2990 < clock.interval < 3000 for clock in clocks[1:])] == [True] * (
        1 if settled else 2
    )
    assert further < AT_ONCE
    assert found.move in position.legal_moves()
