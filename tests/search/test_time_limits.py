"""Time limits under load: the promise is 5 ms + 2 %, kept by a program that has to share its machine."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from reversi_env import Rules
from search.engine import Engine
from search.limits import Limits
from tests.search.test_engine import some_positions

SEARCHES = 200
ROUNDS = 3


@pytest.fixture
def busy_neighbour():
    """A process that never rests."""
    neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield
    neighbour.kill()
    neighbour.wait()


def overshoots(engine, seed):
    """By how many seconds each of many searches of 10 to 100 ms went beyond its limit."""
    generator = np.random.default_rng(seed)
    for position in some_positions(Rules(), SEARCHES, seed=seed):
        limit = float(generator.uniform(0.01, 0.1))
        began = time.perf_counter()
        found = engine.search(position, Limits(time=limit))
        elapsed = time.perf_counter() - began
        assert found.move in position.legal_moves()
        yield limit, elapsed - limit


@pytest.mark.slow
@pytest.mark.usefixtures("busy_neighbour")
def test_time_limits_under_load():
    """Whoever else uses the machine can only make a round worse, so the best of three shows what the engine does.

    Where processes queue up for the processor there is nothing to measure.
    """
    engine = Engine("six-factor", megabytes=16)
    shares = []
    for seed in range(ROUNDS):
        limits, beyond = np.array(list(overshoots(engine, seed))).T
        assert beyond.max() < 5
        shares.append((beyond <= 0.005 + 0.02 * limits).mean())
        if shares[-1] >= 0.95:
            return
    busy = os.getloadavg()[0]
    if busy > (os.cpu_count() or 1) + 1:
        pytest.skip(f"the machine is too busy to measure, load average {busy:.1f}; within the limit: {shares}")
    assert max(shares) >= 0.95, shares
