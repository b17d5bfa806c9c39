"""GPU kernels on a simulated device, their writing of observations, and errors without a GPU."""

import sys
from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest

from reversi_env import Rules
from reversi_env.envs import TorchVectorEnv
from reversi_env.errors import MissingExtra
from reversi_env.kernels import autoreset as rollout
from tests.oracles.cuda import NUMBA_SIMULATES
from tests.oracles.processes import output_of

OPPONENTS = ("none", "random", "greedy")

pytestmark = pytest.mark.skipif(not find_spec("numba_cuda"), reason="numba-cuda is not installed")


def episodes_ended(*games):
    """Play the games (as `tests.oracles.cuda` takes them); ended episodes of each."""
    lines = output_of("-m", "tests.oracles.cuda", "games", *games, **NUMBA_SIMULATES)
    assert len(lines) == len(games)
    return [int(line.split()[-1]) for line in lines]


@pytest.mark.slow
def test_every_layout_and_opponent():
    """Whole games of the smaller boards, and beginnings on the others; all in one process, whose start takes seconds."""
    whole = ["4,normal,greedy,half,8,reward=shaped,discount=0.9,illegal=random"]
    whole += whole_games(4, [("normal", "none"), ("normal", "random"), ("reversed", "none"), ("reversed", "random")])
    whole += whole_games(4, [("reversed", "greedy")]) + whole_games(6, [("reversed", "none"), ("normal", "greedy")])
    layouts = ((4, "packed"), (6, "planes"), (6, "packed"), (6, "half"), (8, "half"))
    others = [f"{size},normal,none,{layout},4,reward=discs" for size, layout in layouts]
    others += ["8,normal,random,packed,3", "8,reversed,greedy,planes,3"]
    assert min(episodes_ended(*whole, *others)[: len(whole)]) > 0


def whole_games(size, kinds):
    plies = {4: 14, 6: 34, 8: 62}[size]
    steps = {"none": plies, "random": plies // 2 + 1, "greedy": plies // 2 + 1}
    return [f"{size},{variant},{opponent},planes,{steps[opponent]}" for variant, opponent in kinds]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("size", [4, 6, 8])
def test_whole_games_of_every_size_variant_and_opponent(size):
    assert min(episodes_ended(*whole_games(size, product(("normal", "reversed"), OPPONENTS)))) > 0


@pytest.mark.parametrize("size", [4, 6, 8])
def test_planes_and_masks_word_by_word(size):
    squares = np.array(list(Rules(size).squares()), np.uint64)
    count, playable = squares.size, np.uint64(Rules(size).playable)
    rng = np.random.default_rng(size)
    own, opp, legal = (rng.integers(0, 2**64, 12, np.uint64) & playable for _ in range(3))
    legal[3] = legal[7] = 0
    bits = [((boards[:, None] >> squares) & np.uint64(1)).astype(np.uint8) for boards in (own, opp, legal)]
    compact = [[np.uint64(rollout.compact(board, count)) for board in boards] for boards in (own, opp, legal)]

    def eight_from(rows, split, first):
        return np.uint64(rows[0] if first < split else rows[1]) >> np.uint64(first if first < split else first - split)

    planes = np.concatenate(bits[:2], axis=1)
    for row, mine, theirs in zip(planes, compact[0], compact[1], strict=True):
        rows, split = rollout.plane_rows(mine, theirs, count), rollout.plane_split(count)
        words = [rollout.spread_to_bytes(eight_from(rows, split, first)) for first in range(0, 2 * count, 8)]
        assert np.array_equal(np.array(words, np.uint64).view(np.uint8), row)
        words = [rollout.spread_to_float16(eight_from(rows, split, first)) for first in range(0, 2 * count, 4)]
        assert np.array_equal(np.array(words, np.uint64).view(np.float16), row)

    masks = np.column_stack([bits[2], (legal == 0).astype(np.uint8)]).ravel()
    words = []
    for place in range(0, masks.size // 8 * 8, 8):
        environment, first = divmod(place, count + 1)
        rows = rollout.mask_rows(compact[2][environment], compact[2][min(environment + 1, 11)], count)
        words.append(rollout.spread_to_bytes(eight_from(rows, rollout.mask_split(count), first)))
    assert np.array_equal(np.array(words, np.uint64).view(np.uint8), masks[: 8 * len(words)])


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
from reversi_env.gpu.driver import configured_kernel, cuda, require_gpu

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
    configured_kernel(kernel, 3, 32, 0)
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
