"""Torch on one thread, in every test."""

import pytest

#: For processes of their own, which say what simulates a GPU.
collect_ignore = ["simulated_games.py", "simulated_solver.py", "simulated_trees.py"]


@pytest.fixture(autouse=True)
def _one_thread(one_torch_thread):
    """As asked for."""
