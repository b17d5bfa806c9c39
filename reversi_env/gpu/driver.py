"""The one place that imports `numba.cuda`: what it needs before the import, what is missing, arrays and streams.

Import it only when a GPU is asked for. It raises a `MissingExtra` without numba-cuda, and `GpuError` if that cannot work. With
``NUMBA_ENABLE_CUDASIM=1`` in the environment numba simulates a GPU on the CPU, slowly, one Python thread for each of the
GPU's; `SIMULATED` tells.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from numba.core import config

from reversi_env.errors import ReversiError, is_installed, missing_extra_error


class GpuError(ReversiError):
    """A GPU was asked for, and there is none that can be used."""


def _keep_old_numpy_names() -> None:
    """Numba-cuda 0.30 names functions at import time that numpy 2.5 no longer has; none of them is ever called here."""
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
    """What keeps NVIDIA's driver from working, in one line; None: nothing does."""
    driver = cuda.cudadrv.driver.driver
    try:
        reason = None if driver.is_available else driver.initialization_error
    except cuda.cudadrv.error.CudaSupportError as error:  # a driver without a GPU raises it, but only when first asked
        reason = error
    return None if reason is None else " ".join(str(reason).split())[:200] or "unknown reason"


class _ExternalArray:
    """Memory that somebody else owns, described for numba as an array of a type of our choice."""

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


@lru_cache(maxsize=64)
def stream_of(handle: int) -> Any:
    """Numba's name for torch's stream with this handle; 0 is the default stream of both."""
    return cuda.external_stream(handle) if handle and not SIMULATED else 0


def launcher(kernel: Any, blocks: int, threads: int, handle: int) -> Any:
    """A kernel that so many blocks of threads run on torch's stream with this handle, to be called with its arguments."""
    if SIMULATED:  # whose kernels remember the last one's blocks
        return kernel[blocks, threads]
    return _ready(kernel, blocks, threads, handle)


@lru_cache(maxsize=256)
def _ready(kernel: Any, blocks: int, threads: int, handle: int) -> Any:
    with warnings.catch_warnings():
        # how many games there are is the caller's choice; numba would tell every number of blocks below 128
        warnings.filterwarnings("ignore", ".*Grid size .*low occupancy")
        return kernel[blocks, threads, stream_of(handle)]
