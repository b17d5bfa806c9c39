"""The examples in docstrings of games, judging and charts, which pytest does not collect by itself."""

import doctest

import pytest

from train.charts import plain
from train.games import batch, ratings, results, sprt
from train.judging import rescaling, review


@pytest.mark.parametrize(
    "module", [batch, ratings, results, sprt, rescaling, review, plain], ids=lambda module: module.__name__
)
def test_examples(module):
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
