r"""The syntax of GGF, not its meaning: a game is a list of properties ``NAME[value]`` between ``(;`` and ``;)``.

White space between the parts means nothing. In a value, ``\`` makes the next character an ordinary one, so that ``\]``
does not end it. In the archives of the server the number of games of a match stands in front of them
(``2 (;…;)(;…;)``); it is read over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from reversi_env.errors import NotationError, quoted

Property = tuple[str, str]

_NAME = r"[A-Za-z][A-Za-z0-9_]*"
_SPACE = re.compile(r"\s*")
_GAME_BEGIN = re.compile(r"\s*(?:[0-9]+\s*)?\(\s*;")
_GAME_END = re.compile(r"\s*;\s*\)")
_PROPERTY = re.compile(rf"\s*({_NAME})\s*\[([^\]\\]*(?:\\.[^\]\\]*)*)\]", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def read_properties(text: str, offset: int) -> tuple[list[Property], int]:
    """Read the properties of the game that begins at *offset*: (properties, offset where the game ends)."""
    begin = _GAME_BEGIN.match(text, offset)
    if begin is None:
        raise NotationError(f"{_found(text, offset)}: expected '(;'")
    offset = begin.end()
    properties = []
    while (end := _GAME_END.match(text, offset)) is None:
        entry = _PROPERTY.match(text, offset)
        if entry is None:
            raise NotationError(f"{_found(text, offset)}: expected a property like B[d3], or ';)'")
        properties.append((entry[1], _ESCAPE.sub(r"\1", entry[2])))
        offset = entry.end()
    return properties, end.end()


def looks_like_ggf(text: str) -> bool:
    """Say whether *text* begins as a game does, perhaps with a number before it, and nothing else that we read does."""
    return _GAME_BEGIN.match(text) is not None


def is_blank(text: str, offset: int) -> bool:
    """Say whether nothing but white space follows."""
    return _SPACE.fullmatch(text, offset) is not None


def check_end(text: str, offset: int) -> None:
    """Raise if anything but white space follows."""
    if not is_blank(text, offset):
        raise NotationError(f"{_found(text, offset)} after the game: expected nothing more")


def is_property_name(name: str) -> bool:
    """Say whether *name* can be the name of a property."""
    return re.fullmatch(_NAME, name) is not None


def write_properties(properties: Iterable[Property]) -> str:
    """Write one game."""
    return f"(;{''.join(f'{name}[{_escaped(value)}]' for name, value in properties)};)"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("]", "\\]")


def _found(text: str, offset: int) -> str:
    """Describe what stands at *offset*, for an error message."""
    if offset >= len(text):
        return "end of the text"
    return f"{quoted(text[offset : offset + 40])} at character {offset + 1}"
