"""The GPU's endgame solver, on a GPU or on numba's CUDA simulator, gives the scores of the CPU's."""

from importlib.util import find_spec

import pytest

from tests.oracles.cuda import NUMBA_SIMULATES
from tests.oracles.processes import output_of

pytestmark = pytest.mark.skipif(not find_spec("numba_cuda"), reason="numba-cuda is not installed")


def differing_and_left_over(*jobs):
    """(scores that differ from the CPU's, positions left to the CPU) of each job, as `tests.oracles.cuda` takes them."""
    lines = output_of("-m", "tests.oracles.cuda", "solver", *jobs, **NUMBA_SIMULATES)
    return [tuple(map(int, line.split())) for line in lines]


@pytest.mark.slow
def test_both_variants_and_every_way_to_the_end():
    """A board with one empty square, passes, unsorted and sorted levels, and positions given up."""
    jobs = [f"8,{v},{e},8" for v in ("normal", "reversed") for e in (1, 4)]
    jobs += ["8,normal,7,2", "6,reversed,7,2", "8,reversed,5,6", "8,normal,6,4,tired"]
    result = differing_and_left_over(*jobs)
    assert [differing for differing, _ in result] == [0] * len(jobs)
    assert result[-1][1] > 0
    assert not any(left for _, left in result[:-1])


@pytest.mark.slow
def test_every_size_with_the_table_in_use():
    """From ten empties on the shared table is asked; four simulated threads write to it."""
    jobs = [f"{size},{v},{e},{n}" for size, e, n in ((8, 10, 1), (6, 10, 2), (4, 9, 6)) for v in ("normal", "reversed")]
    result = differing_and_left_over(*jobs)
    assert not any(differing or left for differing, left in result)
