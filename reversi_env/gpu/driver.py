"""The one place that imports `numba.cuda`: errors, shared arrays and launches.

Import it only when a GPU is requested. It raises a `MissingExtra` without numba-cuda, and `GpuError` if that cannot work. With
``NUMBA_ENABLE_CUDASIM=1`` in the environment numba simulates a GPU on the CPU, slowly, with one Python thread per GPU thread;
`SIMULATED` is then true.
"""

import warnings
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import numpy as np
from numba.core import config

from reversi_env.errors import ReversiError, extra_libraries, is_installed, missing_extra_error

with extra_libraries():
    import torch


class GpuError(ReversiError):
    """A GPU was requested, and none can be used."""


def _keep_old_numpy_names() -> None:
    """Numba-cuda 0.30 refers at import time to functions that numpy 2.5 no longer has. None of them is called here."""
    if tuple(map(int, np.__version__.split(".")[:2])) < (2, 4):
        return
    for old, new in (("row_stack", "vstack"), ("in1d", "isin"), ("trapz", "trapezoid")):
        if not hasattr(np, old):
            setattr(np, old, getattr(np, new))


def _import_cuda() -> Any:
    if not is_installed("numba_cuda"):
        raise missing_extra_error("numba_cuda", "device='cuda'")
    _keep_old_numpy_names()
    try:
        from numba import cuda
    except ImportError as error:
        raise GpuError(f"device='cuda': numba-cuda cannot be imported ({error}); device='cpu' works without") from error
    return cuda


cuda = _import_cuda()
SIMULATED = bool(getattr(config, "ENABLE_CUDASIM", False))


def require_gpu() -> None:
    """Raise `GpuError` unless numba can use a GPU here (or simulates one)."""
    if SIMULATED:
        return
    if reason := _driver_error():
        raise GpuError(f"device='cuda': no usable NVIDIA GPU or driver ({reason}); device='cpu' works without")
    if not cuda.is_available():
        raise GpuError(
            "device='cuda': NVIDIA's NVVM library was not found: expected pip install 'numba-cuda[cu13]' "
            "or a CUDA toolkit; device='cpu' works without"
        )


def _driver_error() -> str | None:
    """Return in one line why NVIDIA's driver does not work, or None if it does."""
    driver = cuda.cudadrv.driver.driver
    try:
        reason = None if driver.is_available else driver.initialization_error
    except cuda.cudadrv.error.CudaSupportError as error:  # raised at the first query, by a driver without a GPU
        reason = error
    return None if reason is None else " ".join(str(reason).split())[:200] or "unknown reason"


class _ExternalArray:
    """Memory of another owner, described for numba as an array of any type."""

    def __init__(self, owner: Any, address: int, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {
            "shape": shape,
            "strides": None,
            "typestr": dtype.str,
            "data": (address, False),
            "version": 3,
        }


def shared_array(tensor: Any, dtype: Any = None) -> Any:
    """A contiguous torch tensor's memory as a kernel's argument, no copy; *dtype* of the same size reads it differently."""
    if SIMULATED:
        host = tensor.detach().numpy()
        return host if dtype is None else host.view(dtype)
    own_dtype = np.dtype(str(tensor.dtype).removeprefix("torch."))
    memory = _ExternalArray(tensor, tensor.data_ptr(), tuple(tensor.shape), np.dtype(dtype) if dtype else own_dtype)
    return cuda.as_cuda_array(memory, sync=False)


def launch(kernel: Any, threads: int, block: int, device: torch.device, *arguments: Any) -> None:
    """Run a kernel on torch's current stream of the *device*, with at least *threads* threads in blocks of *block*."""
    blocks = (threads + block - 1) // block
    if SIMULATED:  # its kernels remember the number of blocks of the last launch
        kernel[blocks, block](*arguments)
        return
    run = configured_kernel(kernel, blocks, block, torch.cuda.current_stream(device).cuda_stream)
    with nullcontext() if torch.cuda.device_count() == 1 else cuda.gpus[device.index]:
        run(*arguments)


@lru_cache(maxsize=256)
def configured_kernel(kernel: Any, blocks: int, block: int, stream: int) -> Any:
    with warnings.catch_warnings():
        # The number of games is the caller's choice; numba warns of fewer than 128 blocks.
        warnings.filterwarnings("ignore", ".*Grid size .*low occupancy")
        return kernel[blocks, block, cuda.external_stream(stream) if stream else 0]
