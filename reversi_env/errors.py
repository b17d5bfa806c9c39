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


def quoted(value: object, limit: int = 60) -> str:
    """Return *value* as it appears in an error message: quoted, on one line, and shortened to *limit* characters."""
    text = " ".join(repr(value).split("\n"))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def count_noun(number: int, thing: str, things: str = "") -> str:
    """Return a count with its noun, such as "3 games"; *things* is the plural where an "s" is not enough.

    >>> count_noun(1, "game"), count_noun(1200, "game"), count_noun(0, "ply", "plies")
    ('1 game', '1,200 games', '0 plies')
    """
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return " (did you mean …?)" with the nearest known name for an error message, or "" if none is near."""
    from difflib import get_close_matches  # loaded only for errors

    close = get_close_matches(str(name), known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
