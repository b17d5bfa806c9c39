"""The examples in the docstrings of the networks."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["models.core.patterns", "models.network", "models.torch_evaluator"])
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted
    assert not result.failed
