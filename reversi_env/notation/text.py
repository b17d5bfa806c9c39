"""Sources of the file readers: a path, or the contents themselves."""

import codecs
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from reversi_env.errors import NotationError, ReversiError, quoted

#: A file's path, or lines of text (a list, an open text file …).
TextSource = str | os.PathLike[str] | Iterable[str]
#: A file's path, or the bytes of the file.
BytesSource = str | os.PathLike[str] | bytes | bytearray | memoryview
IN_MEMORY = (bytes, bytearray, memoryview)
#: First bytes of text in UTF-16, which Windows may write.
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def file_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the contents of the file; a missing or unreadable file raises the usual `OSError`."""
    try:
        return Path(path).read_bytes()
    except ValueError:
        raise NotationError(f"{quoted(path)} cannot be a file's name: expected a path") from None


def contents(source: BytesSource) -> bytes:
    if isinstance(source, IN_MEMORY):
        return bytes(source)
    if isinstance(source, (str, os.PathLike)):
        return file_bytes(source)
    raise NotationError(f"{quoted(source)} cannot be read: expected a path or bytes")


def text_lines(source: TextSource) -> Iterator[str]:
    """Yield the lines of *source* without their line ends."""
    if isinstance(source, (str, os.PathLike)):
        source = io.StringIO(decoded(file_bytes(source)), newline=None)
    if not isinstance(source, Iterable):
        raise NotationError(f"{quoted(source)} cannot be read: expected a path or lines of text")
    for line in source:
        if not isinstance(line, str):
            raise NotationError(f"{quoted(line)} is not a line of text: expected a str")
        yield line.rstrip("\r\n")


def decoded(data: bytes) -> str:
    """Decode UTF-16 with a byte order mark, UTF-8, or else Latin-1, the encoding of old archives, which accepts any bytes."""
    if data.startswith(UTF_16):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


@contextmanager
def within(place: str) -> Iterator[None]:
    """Raise the package's errors again as the same class, with *place* in front of the message."""
    try:
        yield
    except ReversiError as error:
        raise type(error)(f"{place}: {error}") from None
