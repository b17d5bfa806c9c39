"""Numba's CUDA simulator made quicker: a block pauses before it looks at its threads again."""

import time
from importlib import import_module

#: Seconds between two looks.
PAUSE = 0.0003


def pause_between_looks() -> None:
    """Numba's loop over the threads of a block holds Python's lock, which they need, for most of the time.

    Each time round it makes a new ``set`` of the threads that are left.
    """
    import_module("numba.cuda.simulator.kernel").set = _set_after_a_pause


def _set_after_a_pause(*elements):
    time.sleep(PAUSE)
    return set(*elements)
