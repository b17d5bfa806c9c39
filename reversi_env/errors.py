"""The errors that bad input raises. Each is a `ValueError` whose message names the input and what was expected."""

from __future__ import annotations

from collections.abc import Iterable


class ReversiError(ValueError):
    """Base of all errors of this package."""


class RulesError(ReversiError):
    """A game that does not exist: unsupported size, variant or start."""


class PositionError(ReversiError):
    """A board that cannot be: overlapping or off-board discs, wrong length, unknown characters."""


class IllegalMoveError(ReversiError):
    """A move that the rules do not allow in the position it was played in."""


class NotationError(ReversiError):
    """Text or bytes that do not follow the format they were read as."""


class TrainError(ReversiError):
    """Options that make no training, data that do not fit them, or a folder that holds another training."""


def shown(value: object, limit: int = 60) -> str:
    """*value* as it should appear in an error message: quoted, on one line, and cut when it is long."""
    text = " ".join(repr(value).split("\n"))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def counted(number: int, thing: str, things: str = "") -> str:
    """So many of a *thing*, in words; *things* is its plural where an s is not enough.

    >>> counted(1, "game"), counted(1200, "game"), counted(0, "ply", "plies")
    ('1 game', '1,200 games', '0 plies')
    """
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def hint(name: object, known: Iterable[str]) -> str:
    """The nearest known name in words, for an error message; nothing if none is near."""
    from difflib import get_close_matches  # not loaded before something is wrong

    close = get_close_matches(str(name), known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
