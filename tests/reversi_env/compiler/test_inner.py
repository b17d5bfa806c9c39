"""Without one of numba's internals kernels are compiled by plain `njit`, with the same results."""

from tests.oracles.processes import output_of

SCRIPT = """
import warnings
from numba.core import codegen
del codegen.JITCodeLibrary
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from reversi_env import Position
    from reversi_env.compiler import kernel
    print(kernel.building is None, Position.initial().perft(5))
    print(sum("JITCodeLibrary" in str(warning.message) for warning in caught))
"""


def test_a_missing_internal_of_numba_is_reported_once():
    assert output_of(SCRIPT) == ["True 1396", "1"]
