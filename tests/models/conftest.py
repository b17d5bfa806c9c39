"""Torch on one thread, in every test."""

import pytest


@pytest.fixture(autouse=True)
def _one_thread(one_torch_thread):
    """As asked for."""
