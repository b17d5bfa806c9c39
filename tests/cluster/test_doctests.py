"""The examples in docstrings run as written."""

import doctest

import pytest

from play.commands import clusters
from train.cluster import executor


@pytest.mark.parametrize("module", [clusters, executor], ids=lambda module: module.__name__)
def test_examples(module):
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
