"""Loops shared out among threads: every row once, the same results for any number of them, and helpers that sleep."""

import os
import sys
import threading
from time import process_time

import numpy as np
import pytest

from reversi_env import ReversiError, Rules, batch
from reversi_env.envs import ReversiVectorEnv
from reversi_env.kernels import parallel as threads
from reversi_env.kernels.parallel import Pool, claim_rows, claimed_rows, core_count, loop, the_pool
from tests.oracles.processes import PATIENCE, in_background, output_of, wait_until

RULES = Rules(8)


@loop(grain=1)
def count_visits(share, visits):
    while claim_rows(share):
        for i in claimed_rows(share):
            visits[i] += 1


@loop(grain=1)
def fail_at(share, row, visits):
    while claim_rows(share):
        for i in claimed_rows(share):
            if i == row:
                raise ValueError("this row cannot be")
            visits[i] += 1


@pytest.fixture
def pool_of(monkeypatch):
    """Make the process share loops out among so many threads, whether it pays or not."""
    monkeypatch.setattr(threads, "LONGEST_REST", 0.0)

    def use(count):
        monkeypatch.setattr(threads, "_pool", Pool(count))
        return the_pool()

    return use


@pytest.fixture
def helped_first(pool_of, monkeypatch):
    """Two threads, where the helper is always quicker: it is called before the caller begins."""
    pool = pool_of(2)
    monkeypatch.setattr(pool, "_wake", lambda helpers: pool._open[-1].help(pool._openings, 1))
    return pool


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 7, 64, 1001])
def test_every_row_is_visited_once(pool_of, count, rows):
    pool_of(count)
    visits = np.zeros(rows, np.int64)
    for _ in range(50):
        count_visits(rows, visits, parallel=True)
    assert (visits == 50).all()


def everything(parallel):
    """What all loops of the rules and of the vector environment write."""
    own, opp = batch.random_positions(500, np.arange(500) % 50, RULES, seed=3, parallel=parallel)
    yield own, opp
    yield np.array([batch.random_plies(100, RULES, seed=4, parallel=parallel)])
    for question in (batch.legal_moves, batch.is_over, batch.final_scores, batch.frontier, batch.stable_discs):
        yield (question(own, opp, RULES, parallel=parallel),)
    yield batch.canonical(own, opp, parallel=parallel)
    yield (batch.position_hash(own, opp, parallel=parallel),)
    children = batch.expand(own, opp, RULES, parallel=parallel)
    yield children
    moves = (children.square, own[children.parent], opp[children.parent])
    yield batch.play(*moves, RULES, parallel=parallel)
    yield (batch.flips(*moves, RULES, parallel=parallel),)
    for opponent, observation in ((None, "planes"), ("random", "flat"), (first_legal, "planes")):
        envs = ReversiVectorEnv(
            37, opponent=opponent, observation=observation, size=4, autoreset_mode="SAME_STEP", parallel=parallel
        )
        yield (envs.reset(seed=5)[0],)
        for _ in range(12):
            boards, rewards, terminated, _, infos = envs.step(envs.sample_legal())
            yield boards, rewards, terminated, infos["action_mask"], infos["to_move"], infos["illegal_action"]
        yield (envs.get_state(),)


def first_legal(boards, masks):
    return masks.argmax(-1)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_results_do_not_depend_on_the_number_of_threads(pool_of, count):
    pool_of(count)
    assert_same_results()


@pytest.mark.usefixtures("helped_first")
def test_a_helper_gives_the_same_results():
    assert_same_results()


def assert_same_results():
    for alone, shared in zip(everything(parallel=False), everything(parallel=True), strict=True):
        for expected, found in zip(alone, shared, strict=True):
            assert np.array_equal(expected, found)


@pytest.mark.parametrize("row", [0, 40, 99])
def test_an_error_in_a_helper_is_the_callers(helped_first, row):
    visits = np.zeros(100, np.int64)
    fail_at(100, 1000, visits, parallel=False)
    with pytest.raises(ValueError, match="this row cannot be"):
        fail_at(100, row, visits, parallel=True)
    assert not helped_first._open


@pytest.mark.parametrize("count", [2, 7])
def test_after_an_error_the_threads_go_on(pool_of, count):
    pool = pool_of(count)
    visits = np.zeros(100, np.int64)
    for row in range(0, 100, 7):
        with pytest.raises(ValueError, match="this row cannot be"):
            fail_at(100, row, visits, parallel=True)
        assert visits.max() <= 1
        visits[:] = 0
        count_visits(100, visits, parallel=True)
        assert (visits == 1).all()
        visits[:] = 0
    assert not pool._open


def test_many_threads_share_out_loops_at_once(pool_of):
    pool_of(3)
    own, opp = batch.random_positions(3000, 20, seed=1, parallel=False)
    expected = batch.legal_moves(own, opp, parallel=False)

    def work():
        return all(np.array_equal(batch.legal_moves(own, opp, parallel=True), expected) for _ in range(100))

    assert all(future.result(PATIENCE) for future in [in_background(work) for _ in range(5)])


def test_threads_with_nothing_to_do_sleep(pool_of):
    """Six that spin would use up a core or two of the half second."""
    pool = pool_of(7)
    visits = np.zeros(1000, np.int64)
    count_visits(1000, visits, parallel=False)
    wait_until(lambda: count_visits(1000, visits, parallel=True) or pool._helpers == 6)
    wait_until(lambda: len(pool._asleep) == 6)
    used = process_time()
    threading.Event().wait(0.5)
    assert process_time() - used < 0.1


def test_what_a_loop_worked_on_is_forgotten_when_it_is_done(pool_of):
    pool = pool_of(3)
    visits = np.zeros(1000, np.int64)
    references = sys.getrefcount(visits)
    for _ in range(20):
        count_visits(1000, visits, parallel=True)
    wait_until(lambda: len(pool._asleep) == pool._helpers)
    assert sys.getrefcount(visits) == references


# --- whether help pays -------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the pool sees on its clock, which stands still."""
    time = [100.0]
    monkeypatch.setattr(threads, "perf_counter", lambda: time[0])
    return time


def shares(pool, monkeypatch):
    """Whether a loop would be shared out now."""
    shared = []
    monkeypatch.setattr(pool, "_run_shared", lambda *call: shared.append(call))
    count_visits.kernel.overloads or count_visits(1, np.zeros(1, np.int64))
    pool.run(count_visits.kernel, 1000, 2, (np.zeros(1000, np.int64),))
    return bool(shared)


def test_helpers_that_cost_more_than_they_save_rest_longer_each_time(clock, monkeypatch):
    pool = Pool(2)
    assert shares(pool, monkeypatch)
    rests = []
    for _ in range(12):
        began = clock[0]
        while shares(pool, monkeypatch):
            pool._account(-0.0004)
        while not shares(pool, monkeypatch):
            clock[0] += 0.001
        rests.append(clock[0] - began)
    assert rests == sorted(rests)
    assert 0.01 <= rests[0] < 0.02
    assert rests[-1] == pytest.approx(threads.LONGEST_REST, abs=0.01)
    for _ in range(100):
        pool._account(0.0004)
    pool._account(-0.005)  # one bad moment is forgiven
    assert shares(pool, monkeypatch)


def test_one_long_wait_is_not_held_against_them_for_long(clock, monkeypatch):
    """As when the machine was asleep."""
    pool = Pool(2)
    pool._account(-1000.0)
    clock[0] += 0.2
    assert shares(pool, monkeypatch)


def test_small_batches_are_not_shared_out(monkeypatch):
    monkeypatch.setattr(threads, "the_pool", lambda: pytest.fail("shared out"))
    own, opp = batch.start(1000)
    batch.legal_moves(own, opp)
    ReversiVectorEnv(16).reset(seed=1)


# --- how many threads, and processes -----------------------------------------------------------------


def test_the_number_of_threads_is_that_of_the_cores_or_given(monkeypatch):
    monkeypatch.delenv("REVERSI_THREADS", raising=False)
    monkeypatch.setattr(threads, "_pool", None)
    assert the_pool().threads == core_count() >= 1
    monkeypatch.setattr(threads, "_pool", None)
    monkeypatch.setenv("REVERSI_THREADS", "5")
    assert the_pool().threads == 5


@pytest.mark.parametrize("wanted", ["0", "two", "-1", "1.5", "5000"])
def test_a_number_of_threads_that_is_none_is_named(monkeypatch, wanted):
    monkeypatch.setattr(threads, "_pool", None)
    monkeypatch.setenv("REVERSI_THREADS", wanted)
    with pytest.raises(ReversiError, match=f"REVERSI_THREADS='{wanted}': expected a whole number from 1 to 1024"):
        the_pool()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux's affinities")
def test_a_process_confined_to_one_core_has_one_thread():
    program = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "from reversi_env.kernels.parallel import the_pool; print(the_pool().threads)"
    )
    assert output_of(program) == ["1"]


FORKING = """
import os, sys
from reversi_env import batch
from reversi_env.kernels import parallel as threads
threads.LONGEST_REST = 0.0
def plies():
    return [batch.random_plies(200, seed=seed, parallel=True) for seed in range(20)]
expected = plies()
assert threads.the_pool()._helpers == 2
child = os.fork()
if child == 0:
    same = plies() == expected and threads.the_pool()._helpers == 2
    os._exit(0 if same else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), plies() == expected)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_threads_of_its_own_and_both_end():
    assert output_of(FORKING, REVERSI_THREADS=3) == ["0 True"]
