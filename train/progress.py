"""How far an experiment is: what it does, how many steps are done, and of how many."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]


def silent(doing: str, done: int, total: int) -> None:
    """Tell nobody."""
