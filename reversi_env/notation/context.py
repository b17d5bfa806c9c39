"""Where in the input an error happened: every reader puts the line, game or move in front of the message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from reversi_env.errors import ReversiError


@contextmanager
def within(place: str) -> Iterator[None]:
    """Raise the package's errors again as the same class, with *place* in front of the message."""
    try:
        yield
    except ReversiError as error:
        raise type(error)(f"{place}: {error}") from None
