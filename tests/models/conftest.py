"""Fixtures of small networks; torch runs on one thread in every test."""

import pytest

from tests.oracles.policies import policy_file, positions, tiny_net

__all__ = ["policy_file", "positions", "tiny_net"]


@pytest.fixture(autouse=True)
def _one_thread(one_torch_thread):
    """Use the fixture in every test."""
