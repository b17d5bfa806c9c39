"""Examples in docstrings of the training side that pytest does not collect by itself."""

import doctest

import pytest

from train.games import batch as batch_games
from train.judging import rescaling


@pytest.mark.parametrize("module", [batch_games, rescaling])
def test_examples_in_docstrings(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
