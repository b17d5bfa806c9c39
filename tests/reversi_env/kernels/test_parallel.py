"""Parallel loops: every row once, results independent of the thread count, and helper threads that sleep when idle."""

import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from reversi_env import ReversiError, Rules, batch
from reversi_env.envs import ReversiVectorEnv
from reversi_env.kernels import parallel
from reversi_env.kernels.parallel import Pool, claim_rows, claimed_rows, core_count, loop
from tests.oracles.processes import PATIENCE, in_background, output_of, wait_until

RULES, HELPER_FIRST = Rules(8), "helper first"
new_pool = parallel.shared_pool.__wrapped__  # without the pool of this process


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
    """Set the number of threads of the pool. HELPER_FIRST: two threads, and the helper runs before the caller."""

    def use(count):
        pool = Pool(2 if count == HELPER_FIRST else count)
        monkeypatch.setattr(parallel, "shared_pool", lambda: pool)
        if count == HELPER_FIRST:
            pool._helpers = 1
            monkeypatch.setattr(pool, "_jobs", SimpleNamespace(put=lambda job: job.help()))

    return use


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 7, 64, 1001])
def test_every_row_is_visited_once_per_call(pool_of, count, rows):
    pool_of(count)
    visits = np.zeros(rows, np.int64)
    for _ in range(50):
        count_visits(rows, visits, parallel=True)
    assert (visits == 50).all()


def results_of_all_loops(parallel):
    """Yield the results of all loops of the rules and of the vector environment."""
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


@pytest.mark.parametrize("count", [1, 2, 3, 7, HELPER_FIRST])
def test_results_do_not_depend_on_thread_count(pool_of, count):
    pool_of(count)
    for alone, shared in zip(results_of_all_loops(parallel=False), results_of_all_loops(parallel=True), strict=True):
        for expected, result in zip(alone, shared, strict=True):
            assert np.array_equal(expected, result)


@pytest.mark.parametrize("count", [2, 7, HELPER_FIRST])
def test_error_reaches_caller_and_pool_stays_usable(pool_of, count):
    pool_of(count)
    visits = np.zeros(100, np.int64)
    for row in range(0, 100, 11):
        with pytest.raises(ValueError, match="row"):
            fail_at(100, row, visits, parallel=True)
        assert visits.max() <= 1
        visits[:] = 0
        count_visits(100, visits, parallel=True)
        assert (visits == 1).all()
        visits[:] = 0


def test_several_callers_run_loops_concurrently(pool_of):
    pool_of(3)
    own, opp = batch.random_positions(3000, 20, seed=1, parallel=False)
    expected = batch.legal_moves(own, opp, parallel=False)

    def work():
        return all(np.array_equal(batch.legal_moves(own, opp, parallel=True), expected) for _ in range(100))

    assert all(future.result(PATIENCE) for future in [in_background(work) for _ in range(5)])


@pytest.mark.skipif(sys.platform != "linux", reason="reads the states of threads from /proc")
def test_idle_threads_sleep(pool_of):
    pool_of(7)
    others = set(threading.enumerate())
    visits = np.zeros(1000, np.int64)
    count_visits(1000, visits, parallel=False)
    count_visits(1000, visits, parallel=True)
    helpers = set(threading.enumerate()) - others
    assert len(helpers) == 6

    def sleep():
        states = [Path(f"/proc/self/task/{helper.native_id}/stat").read_text() for helper in helpers]
        return all(state.rpartition(")")[2].split()[0] == "S" for state in states)

    wait_until(sleep)


def test_pool_keeps_no_reference_to_arrays(pool_of):
    pool_of(3)
    visits = np.zeros(1000, np.int64)
    references = sys.getrefcount(visits)
    for _ in range(20):
        count_visits(1000, visits, parallel=True)
    wait_until(lambda: sys.getrefcount(visits) == references)


def test_small_batches_run_on_one_thread(monkeypatch):
    monkeypatch.setattr(parallel, "shared_pool", lambda: pytest.fail("used the pool"))
    own, opp = batch.start(1000)
    batch.legal_moves(own, opp)
    ReversiVectorEnv(16).reset(seed=1)


def test_thread_count_is_core_count_or_environment_variable(monkeypatch):
    monkeypatch.delenv("REVERSI_THREADS", raising=False)
    assert new_pool().threads == core_count() >= 1
    monkeypatch.setenv("REVERSI_THREADS", "5")
    assert new_pool().threads == 5
    for wanted in ("0", "two", "-1", "1.5", "5000"):
        monkeypatch.setenv("REVERSI_THREADS", wanted)
        with pytest.raises(ReversiError, match=f"REVERSI_THREADS='{wanted}'"):
            new_pool()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux's affinities")
def test_process_limited_to_one_core_has_one_thread():
    program = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "from reversi_env.kernels.parallel import shared_pool; print(shared_pool().threads)"
    )
    assert output_of(program) == ["1"]


FORKING = """
import os, sys
from reversi_env import batch
from reversi_env.kernels import parallel
def plies():
    return [batch.random_plies(200, seed=seed, parallel=True) for seed in range(20)]
expected = plies()
assert parallel.shared_pool()._helpers == 2
child = os.fork()
if child == 0:
    same = plies() == expected and parallel.shared_pool()._helpers == 2
    os._exit(0 if same else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), plies() == expected)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_process_has_its_own_threads():
    assert output_of(FORKING, REVERSI_THREADS=3) == ["0 True"]
