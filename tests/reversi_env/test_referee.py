"""The rules agree with OpenSpiel."""

import os
from collections import Counter

import pytest

from tests.oracles.referee import compare

PLIES = int(os.environ.get("REVERSI_PLIES", 10**8))


@pytest.mark.slow
@pytest.mark.parametrize("min_plies", [20_000, pytest.param(PLIES, marks=pytest.mark.long)])
def test_rules_match_openspiel(min_plies):
    """The long test plays 10⁸ plies, or REVERSI_PLIES; docs/lab/speed.md has its last result."""
    pytest.importorskip("pyspiel", reason="OpenSpiel is not installed, of the extra bench")
    counts, chunk = Counter(), 0
    while counts["plies"] < min_plies:
        counts, chunk = counts + compare(350, chunk), chunk + 1
    assert counts["passes"] > 0
