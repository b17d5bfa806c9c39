"""GPU kernels of the environments and the solver on a simulated device, and errors without a GPU."""

import sys
from importlib.util import find_spec

import pytest

from reversi_env.envs import TorchVectorEnv
from reversi_env.errors import MissingExtra
from tests.oracles.cuda import NUMBA_SIMULATES
from tests.oracles.processes import output_of

pytestmark = pytest.mark.skipif(not find_spec("numba_cuda"), reason="numba-cuda is not installed")
#: Games in the format of `tests.oracles.cuda`: whole games on small boards, the first plies on the others.
WHOLE_GAMES = [
    "4,normal,greedy,half,8,reward=shaped,discount=0.9,illegal=random",
    *(f"4,{variant},none,planes,14" for variant in ("normal", "reversed")),
    *(f"4,{variant},random,planes,8" for variant in ("normal", "reversed")),
    *("4,reversed,greedy,planes,8", "6,reversed,none,planes,34", "6,normal,greedy,planes,18"),
]
LAYOUTS = ((4, "packed"), (6, "planes"), (6, "packed"), (6, "half"), (8, "half"))
FIRST_PLIES = [f"{size},normal,none,{layout},4,reward=discs" for size, layout in LAYOUTS]
FIRST_PLIES += ["8,normal,random,packed,3", "8,reversed,greedy,planes,3"]


@pytest.mark.slow
def test_games_match_cpu_for_every_layout_and_opponent():
    lines = output_of("-m", "tests.oracles.cuda", "games", *WHOLE_GAMES, *FIRST_PLIES, **NUMBA_SIMULATES)
    assert len(lines) == len(WHOLE_GAMES + FIRST_PLIES)
    assert all(int(line.split()[-1]) > 0 for line in lines[: len(WHOLE_GAMES)])  # finished episodes


NO_GPU = """
import sys
import reversi_env
assert not {"torch", "numba.cuda", "numba_cuda"} & set(sys.modules)
from reversi_env.envs import TorchVectorEnv
TorchVectorEnv(2, device="cpu").reset(seed=1)
assert "numba.cuda" not in sys.modules

def report(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except ValueError as error:
        print(type(error).__name__, error)

report(TorchVectorEnv, 2, device="cuda")
import numpy as np
from search.gpu.solver import solve_batch_cuda
report(solve_batch_cuda, np.array([2**64 - 8], np.uint64), np.array([2], np.uint64))
import warnings
from reversi_env.gpu.driver import configured_kernel, cuda, require_gpu

class DriverWithoutGpu:
    @property
    def is_available(self):
        raise cuda.cudadrv.error.CudaSupportError("Error at driver init: no device")

driver, cuda.cudadrv.driver.driver = cuda.cudadrv.driver.driver, DriverWithoutGpu()
report(require_gpu)
cuda.cudadrv.driver.driver = driver
kernel = cuda.jit(lambda numbers: None)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    configured_kernel(kernel, 3, 32, 0)
    assert not caught, "few games are the caller's choice"
    kernel[2, 32]
    assert caught, "no warning about a kernel of another package"
"""


def test_missing_cuda_extra_is_reported(monkeypatch):
    for module in ("driver", "kernels", "batch"):
        monkeypatch.delitem(sys.modules, f"reversi_env.gpu.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "numba_cuda", None)
    with pytest.raises(MissingExtra, match=r"numba-cuda.*\[cuda\]"):
        TorchVectorEnv(2, device="cuda")


@pytest.mark.slow
def test_missing_gpu_is_reported(monkeypatch):
    """Environments and solver share one process, because the import of torch and CUDA takes seconds."""
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    lines = output_of(NO_GPU, CUDA_VISIBLE_DEVICES="")  # no GPU for this process, wherever it runs
    assert len(lines) == 3
    assert all(line.startswith("GpuError device='cuda'") for line in lines)


@pytest.mark.slow
def test_gpu_solver_matches_cpu_solver():
    """The jobs have boards with one empty square, passes, unsorted and sorted levels, and positions left to the CPU.

    From ten empties on, the kernel probes the shared table, to which four simulated threads write.
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
