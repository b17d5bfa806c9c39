"""The examples in the docstrings of the arena."""

import doctest

import pytest

from train.games import ratings, sprt


@pytest.mark.parametrize("module", [ratings, sprt], ids=lambda module: module.__name__)
def test_examples(module):
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
