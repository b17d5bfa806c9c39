"""Torch keeps to one thread here: several test processes share the cores, and its threads would wait for each other."""

import pytest
import torch

collect_ignore = ["simulated_games.py", "simulated_solver.py"]  # for processes of their own: they import numba.cuda


@pytest.fixture(autouse=True, scope="package")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
