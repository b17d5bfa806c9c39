"""Examples in docstrings of the training side that pytest does not collect by itself."""

import doctest

from train import batch_games


def test_examples_in_docstrings():
    result = doctest.testmod(batch_games)
    assert result.attempted > 0
    assert result.failed == 0
