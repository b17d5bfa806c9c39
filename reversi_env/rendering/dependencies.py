"""Optional dependencies: import them late, and say how to install them when they are absent."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(module: str, package: str) -> Any:
    """The imported *module*, or the error that Gymnasium's users expect, naming the *package* to install."""
    try:
        return import_module(module)
    except ImportError as error:
        from gymnasium.error import DependencyNotInstalled

        raise DependencyNotInstalled(f"{package} is not installed: run `pip install {package}`") from error
