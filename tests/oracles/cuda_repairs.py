"""Repairs numba's CUDA simulator when it is imported, for tests that run kernels on it."""

from __future__ import annotations

import sys
import threading
import time
from importlib import import_module
from typing import Any

import numpy as np

_kernelapi: Any = import_module("numba.cuda.simulator.kernelapi")
_lock = threading.Lock()
#: Seconds between two looks at the threads of a block.
PAUSE = 0.0003


def _shared_array(self: Any, shape: Any, dtype: Any, alignment: Any = None) -> np.ndarray:
    """A block's shared array, one for every line of source that asks for one.

    Numba-cuda 0.30's own looks for the array and makes it without a lock, so that now and then two threads of a block got one
    each; and it finds the line by way of the whole traceback, which took most of a simulated kernel's time.
    """
    frame = sys._getframe(1)
    line = (frame.f_code.co_filename, frame.f_lineno)
    with _lock:
        if line not in self._allocations:
            kind = _kernelapi.numpy_support.as_dtype(dtype) if isinstance(dtype, _kernelapi.types.Type) else dtype
            self._allocations[line] = np.empty(shape, kind)
        return self._allocations[line]


_kernelapi.FakeCUDAShared.array = _shared_array


def _set_after_a_pause(*elements: Any) -> set[Any]:
    """Numba's loop over the threads of a block, which begins each round with a new ``set`` of those that are left.

    Without a pause it holds Python's lock, which they need, for most of the time.
    """
    time.sleep(PAUSE)
    return set(*elements)


import_module("numba.cuda.simulator.kernel").set = _set_after_a_pause  # type: ignore[attr-defined]
