"""Torch on one thread, in every test."""

import pytest

collect_ignore = ["simulated_games.py", "simulated_solver.py"]  # for processes of their own: they import numba.cuda


@pytest.fixture(autouse=True)
def _one_thread(one_torch_thread):
    """As asked for."""
