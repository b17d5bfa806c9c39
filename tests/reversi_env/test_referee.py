"""Our rules are those of OpenSpiel."""

import os
from collections import Counter

import pytest

from tests.oracles.referee import compare

PLIES = int(os.environ.get("REVERSI_PLIES", 10**8))


@pytest.mark.slow
@pytest.mark.parametrize("least", [20_000, pytest.param(PLIES, marks=pytest.mark.long)])
def test_the_rules_are_those_of_openspiel(least):
    """The long one plays 10⁸ plies, or REVERSI_PLIES; what its last run found is in docs/lab/speed.md."""
    pytest.importorskip("pyspiel", reason="OpenSpiel is not installed, of the extra bench")
    counts, chunk = Counter(), 0
    while counts["plies"] < least:
        counts, chunk = counts + compare(350, chunk), chunk + 1
    assert counts["passes"] > 0
