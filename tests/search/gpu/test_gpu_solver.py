"""The GPU's endgame solver, on a GPU or on numba's CUDA simulator, gives the scores of the CPU's."""

from importlib.util import find_spec

import pytest

from tests.oracles.cuda import NUMBA_SIMULATES
from tests.oracles.processes import output_of

pytestmark = pytest.mark.skipif(not find_spec("numba_cuda"), reason="numba-cuda is not installed")


@pytest.mark.slow
def test_every_size_both_variants_and_every_way_to_the_end():
    """A board with one empty square, passes, unsorted and sorted levels, and positions given up.

    From ten empties on the shared table is asked; four simulated threads write to it.
    """
    jobs = [f"8,{v},{e},8" for v in ("normal", "reversed") for e in (1, 4)]
    jobs += [
        f"{size},{v},{e},{n}" for size, e, n in ((8, 10, 1), (6, 10, 2), (4, 9, 6)) for v in ("normal", "reversed")
    ]
    jobs += ["8,normal,7,2", "6,reversed,7,2", "8,reversed,5,6", "8,normal,6,4,tired"]
    lines = output_of("-m", "tests.oracles.cuda", "solver", *jobs, **NUMBA_SIMULATES)
    differing, left_to_the_cpu = zip(*(map(int, line.split()) for line in lines), strict=True)
    assert differing == (0,) * len(jobs)
    assert left_to_the_cpu[-1] > 0
    assert not any(left_to_the_cpu[:-1])
