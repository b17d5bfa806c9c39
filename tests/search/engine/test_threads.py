"""Threads of one search: the number of awake threads, errors, stops and interrupts."""

import threading

import numpy as np
import pytest

from reversi_env import Position, Rules, batch
from search.engine import threads as thread_group
from search.engine.solver import Solver
from search.engine.table import TranspositionTable
from search.engine.threads import CoreUsage, ThreadGroup
from search.engine.timer import StopSwitch
from search.kernels.thread_state import THREAD_STATE
from tests.oracles.processes import PATIENCE, in_background, wait_until


def test_awake_threads_follow_the_available_cores():
    for threads, cores, awake in ((2, 2.0, 2), (2, 1.33, 2), (2, 1.1, 1), (2, 0.3, 1), (8, 6.9, 7), (8, 2.0, 2)):
        core_usage = CoreUsage(threads)
        core_usage.add_sample(1.0, cores)
        assert core_usage.awake == awake, (threads, cores)


def thread_states_and_switch(threads):
    thread_states = np.zeros(threads, THREAD_STATE)
    thread_states["node_limit"] = 1
    return thread_states, StopSwitch(thread_states)


def test_sleeping_helper_resumes_its_search(monkeypatch):
    """The measured CPU time is 0, so helpers sleep and wake repeatedly."""
    monkeypatch.setattr(thread_group, "process_time", lambda: 0.0)
    monkeypatch.setattr(thread_group, "BACKOFF_SECONDS", 0.0)
    monkeypatch.setattr(thread_group, "SAMPLE_SECONDS", 0.001)
    thread_states, switch = thread_states_and_switch(2)
    calls, often = [], threading.Event()

    def search(k):
        if k == 0:
            return often.wait(PATIENCE)
        calls.append(k)
        if len(calls) > 5:
            often.set()
        wait_until(lambda: thread_states["stop"][1], pause=0.0001)
        return False

    ThreadGroup(thread_states, switch).run(search)
    assert len(calls) > 5
    assert thread_states["stop"].all()


def test_error_in_a_thread_reaches_caller_and_stops_others():
    thread_states, switch = thread_states_and_switch(3)

    def search(k):
        if k == 1:
            raise KeyError("lost")
        wait_until(lambda: thread_states["stop"][k])
        return True

    with pytest.raises(KeyError, match="lost"):
        ThreadGroup(thread_states, switch).run(search)


def test_stop_works_while_a_helper_sleeps(monkeypatch):
    monkeypatch.setattr(thread_group, "process_time", lambda: 0.0)
    solver = Solver(threads=2, table=TranspositionTable(1))
    own, opp = batch.random_positions(1, 20, seed=4)
    future = in_background(lambda: solver.solve(Position(Rules(), int(own[0]), int(opp[0]))))
    wait_until(lambda: solver._thread_group._core_usage.awake == 1)
    solver.stop()
    assert not future.result(PATIENCE).proven


def test_interrupted_search_leaves_no_threads(monkeypatch):
    """Ctrl-C reaches the caller's thread, which only monitors the others."""
    thread_states, switch = thread_states_and_switch(2)
    before = threading.active_count()

    def interrupted(seconds, used):
        raise KeyboardInterrupt

    run = ThreadGroup(thread_states, switch)
    monkeypatch.setattr(run._core_usage, "add_sample", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.run(lambda k: wait_until(lambda: thread_states["stop"][k]) or True)
    assert threading.active_count() == before
