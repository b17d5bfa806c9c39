"""Standard input and output for protocols: lines in, text out, and no error when the other side closes them."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import BinaryIO

#: Longer lines are cut, so that a controller cannot fill the memory.
MAX_LINE_BYTES = 1 << 16


@contextmanager
def protocol_streams() -> Iterator[tuple[Iterator[str], Callable[[str], None]]]:
    """Yield the lines of standard input, and a function that writes to standard output; both may be closed at any time."""
    try:
        yield _lines(_own_input()), partial(print, end="", flush=True)
    except BrokenPipeError:  # the interpreter would flush the rest at its exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _own_input() -> BinaryIO:
    """Return standard input with a separate buffer: a thread that waits for a line would hold the lock of `sys.stdin`."""
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):  # not a file: a test's buffer
        return sys.stdin.buffer


def _lines(stdin: BinaryIO) -> Iterator[str]:
    """Yield every line, decoded as Latin-1, which cannot fail."""
    while line := stdin.readline(MAX_LINE_BYTES):
        yield line.decode("latin-1")
        while not line.endswith(b"\n") and (line := stdin.readline(MAX_LINE_BYTES)):
            pass  # the rest of a line that was cut
