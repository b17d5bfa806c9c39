"""Without a GPU or without numba-cuda: nothing is imported unasked, and ``device="cuda"`` gives one clear error."""

import sys
from importlib.util import find_spec

import pytest

from reversi_env.envs import TorchVectorEnv
from reversi_env.errors import MissingExtra
from tests.oracles.processes import output_of

ASK = """
import sys
import reversi_env
assert not {"torch", "numba.cuda", "numba_cuda"} & set(sys.modules)
from reversi_env.envs import TorchVectorEnv
TorchVectorEnv(2, device="cpu").reset(seed=1)
assert "numba.cuda" not in sys.modules
try:
    TorchVectorEnv(2, device="cuda")
except ValueError as error:
    print(type(error).__name__, error)
import numpy as np
from search.gpu.solver import solve_batch_cuda
try:
    solve_batch_cuda(np.array([2**64 - 8], np.uint64), np.array([2], np.uint64))
except ValueError as error:
    print(type(error).__name__, error)
import warnings
from reversi_env.gpu.driver import cuda, launcher, require_gpu

class DriverWithoutGpu:
    @property
    def is_available(self):
        raise cuda.cudadrv.error.CudaSupportError("Error at driver init: no device")

driver, cuda.cudadrv.driver.driver = cuda.cudadrv.driver.driver, DriverWithoutGpu()
try:
    require_gpu()
except ValueError as error:
    print(type(error).__name__, error)
cuda.cudadrv.driver.driver = driver
kernel = cuda.jit(lambda numbers: None)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    launcher(kernel, 3, 32, 0)
    assert not told, "few games are the caller's choice"
    kernel[2, 32]
    assert told, "nothing is told of kernels that are not ours"
"""


def test_the_extra_is_not_installed(monkeypatch):
    for module in ("driver", "kernels", "batch"):
        monkeypatch.delitem(sys.modules, f"reversi_env.gpu.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "numba_cuda", None)
    expected = r"device=.cuda. needs numba-cuda, .*\.\[cuda\]"
    with pytest.raises(MissingExtra, match=expected):
        TorchVectorEnv(2, device="cuda")


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("numba_cuda"), reason="numba-cuda is not installed")
def test_there_is_no_gpu(monkeypatch):
    """Environments and solver, in one process: importing torch and CUDA takes seconds."""
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    lines = output_of(ASK, CUDA_VISIBLE_DEVICES="")  # no GPU for this process, wherever it runs
    assert len(lines) == 3
    for line in lines:
        assert line.startswith("GpuError device='cuda': no usable NVIDIA GPU or driver (")
        assert line.endswith("device='cpu' works without")
