"""What can be wrong with a training, and the numbers among its options."""

from __future__ import annotations

from reversi_env.errors import TrainError, quoted

__all__ = ["TrainError", "check_whole"]


def check_whole(name: str, value: object, least: int, most: int) -> None:
    """Refuse an option that is not a whole number from *least* to *most*."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise TrainError(f"{name}={quoted(value)}: expected a whole number from {least} to {most}")
