"""Time limits under load: the promise is 5 ms + 2 %, kept by a program that has to share its machine."""

import subprocess
import sys
import time

import numpy as np
import pytest

from reversi_env import Rules
from search.engine.engine import Engine
from search.engine.limits import Limits
from tests.search.engine.test_engine import some_positions

SEARCHES = 200
ROUNDS = 3
#: Seconds that a program which only works does so after every search, to see whether the processor is its own.
WORK = 0.003
#: The least share of that time for which it was: with one process more than processors it is two thirds on two of them.
OWN = 0.95


@pytest.fixture
def busy_neighbour():
    """A process that never rests."""
    neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield
    neighbour.kill()
    neighbour.wait()


def overshoots(engine, seed):
    """The limits of many searches of 10 to 100 ms, by how many seconds each went beyond, and the processor seconds in *WORK*."""
    generator = np.random.default_rng(seed)
    for position in some_positions(Rules(), SEARCHES, seed=seed):
        limit = float(generator.uniform(0.01, 0.1))
        began = time.perf_counter()
        found = engine.search(position, Limits(time=limit))
        elapsed = time.perf_counter() - began
        assert found.move in position.legal_moves()
        yield limit, elapsed - limit, share_of_processor()


def share_of_processor():
    """Which part of a short time this process could work, having nothing else to do; there is less of it in a queue."""
    began, used = time.perf_counter(), time.process_time()
    while (elapsed := time.perf_counter() - began) < WORK:
        pass
    return (time.process_time() - used) / elapsed


@pytest.mark.slow
@pytest.mark.usefixtures("busy_neighbour")
def test_time_limits_under_load():
    """Whoever else uses the machine can only make a round worse, so the best of three shows what the engine does.

    Where processes queue up for the processor there is nothing to measure.
    """
    engine = Engine("six-factor", megabytes=16)
    shares, own = [], []
    for seed in range(ROUNDS):
        limits, beyond, worked = np.array(list(overshoots(engine, seed))).T
        assert beyond.max() < 5
        shares.append(float((beyond <= 0.005 + 0.02 * limits).mean()))
        own.append(round(float(worked.mean()), 2))
        if shares[-1] >= 0.95:
            return
    if max(own) < OWN:
        pytest.skip(f"the processor was ours for {own} of the time only; within the limit: {shares}")
    raise AssertionError(shares)
