"""What the GPU's kernels are tested on: a GPU if there is one, and simulators if not."""

from __future__ import annotations

import torch

HAS_GPU = torch.cuda.is_available()
#: Variables of a process whose kernels in numba, or in triton, run on the CPU; none where there is a GPU.
NUMBA_SIMULATES = {} if HAS_GPU else {"NUMBA_ENABLE_CUDASIM": 1}
TRITON_SIMULATES = {} if HAS_GPU else {"TRITON_INTERPRET": 1}
