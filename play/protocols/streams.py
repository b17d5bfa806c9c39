"""Standard input and output as protocols want them: lines of bytes in, text out, a quiet end when the other side goes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import BinaryIO

#: Longer lines are cut: no command is anywhere near as long, and memory is not the other side's to use.
LONGEST_LINE = 1 << 16


@contextmanager
def protocol_streams() -> Iterator[tuple[Iterator[str], Callable[[str], None]]]:
    """The lines of standard input, and what sends text to standard output; both may be closed at any moment without an error."""
    try:
        yield _lines(_own_input()), partial(print, end="", flush=True)
    except BrokenPipeError:
        # What is still in the buffer has no reader: let the interpreter's last flush go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _own_input() -> BinaryIO:
    """Return standard input with a buffer of its own: a thread that waits for a line would hold the lock of `sys.stdin`."""
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):  # not a file: a test's buffer
        return sys.stdin.buffer


def _lines(stdin: BinaryIO) -> Iterator[str]:
    """Yield every line, decoded as Latin-1, which cannot fail."""
    while line := stdin.readline(LONGEST_LINE):
        yield line.decode("latin-1")
        while not line.endswith(b"\n") and (line := stdin.readline(LONGEST_LINE)):
            pass  # the rest of a line that was cut
