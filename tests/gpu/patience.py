"""Imported by what runs on numba's CUDA simulator, to make it quicker: a block pauses before it looks at its threads again.

Numba's loop over the threads of a block never pauses, and holds Python's lock, which those threads need, for most of the time.
Each time round it makes a new ``set`` of the threads that are left.
"""

import time
from importlib import import_module

from reversi_env.gpu.driver import SIMULATED

assert SIMULATED
#: Seconds between two looks.
PAUSE = 0.0003


def set_after_a_pause(*elements):
    time.sleep(PAUSE)
    return set(*elements)


import_module("numba.cuda.simulator.kernel").set = set_after_a_pause
