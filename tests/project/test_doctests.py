"""The examples in docstrings of the layers that pytest does not look through by itself."""

import doctest
import importlib

import pytest

from tests.conftest import REPOSITORY

FILES = [
    path
    for layer in ("models", "train", "studies", "play", "benchmarks")
    for path in (REPOSITORY / layer).rglob("*.py")
]
MODULES = [path.relative_to(REPOSITORY).with_suffix("") for path in sorted(FILES) if ">>> " in path.read_text("utf-8")]


@pytest.mark.parametrize("name", [".".join(module.parts) for module in MODULES])
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(name))
    assert (result.failed, result.attempted > 0) == (0, True)
