"""The kernels of the tree search, on a GPU or run by triton's interpreter, do what torch's operations do."""

from importlib.util import find_spec

import pytest

from tests.oracles.cuda import HAS_GPU, TRITON_SIMULATES
from tests.oracles.processes import output_of


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("triton"), reason="triton is not installed")
def test_kernels_find_what_torch_finds():
    lines = output_of("-m", "tests.oracles.cuda", "trees", *["cuda"] * HAS_GPU, **TRITON_SIMULATES)
    assert len(lines) == 5
    assert all(line.endswith("games alike") for line in lines)
