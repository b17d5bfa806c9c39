"""Arrays and tensors by the same code: numpy and torch have most functions by the same names."""

from __future__ import annotations

import sys
from typing import Any


def array_module(numbers: Any) -> Any:
    """The library of an array or of a tensor."""
    return sys.modules[type(numbers).__module__.partition(".")[0]]
