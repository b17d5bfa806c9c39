"""Files that are there as a whole or not at all, whatever ends the process that writes them.

A file is written beside its place, as ``.NAME.part``, flushed to the disk and renamed. What a killed process leaves has that one
name: the next who writes the file begins it anew, and `remove_parts` clears a folder of them. Where the system has locks, a part
is locked while it is written: two processes that write one file write it one after the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOSPC
from pathlib import Path
from typing import BinaryIO

from reversi_env.errors import ReversiError, shown

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: nothing keeps two processes from one file there
    fcntl = None  # type: ignore[assignment]


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that at any moment it is there as a whole or not at all."""
    with written_whole(path) as stream:
        stream.write(data)


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A stream for the content of a file that is in its place once the block has ended, and not there at all if it raises."""
    part = path.with_name(f".{path.name}.part")
    descriptor = _claimed(part)
    assert descriptor is not None
    with os.fdopen(descriptor, "wb") as stream:
        try:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if (
                fcntl is None
            ):  # pragma: no cover - Windows renames no open file; elsewhere the lock holds until it is closed
                stream.close()
            os.replace(part, path)  # noqa: PTH105 - the tests let it fail, as a crash would
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    _sync_folder(path.parent)


def append_whole(path: Path, data: bytes) -> None:
    """Add *data* to the end of a file in one write, and flush it: a process killed meanwhile leaves a torn end at most."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        if os.write(descriptor, data) < len(data):
            raise OSError(ENOSPC, "no room for all of it", str(path))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_parts(folder: Path) -> None:
    """Remove what killed processes have left of files in *folder*; not what one is writing now."""
    for part in folder.glob(".*.part"):
        with suppress(OSError):
            descriptor = _claimed(part, wait=False)
            if descriptor is not None:
                part.unlink()
                os.close(descriptor)


@contextmanager
def only_user(path: Path) -> Iterator[None]:
    """Keep other processes from a file that is replaced again and again, by a lock beside it that ends with the process."""
    lock = path.with_name(f".{path.name}.lock")
    descriptor = _claimed(lock, wait=False)
    if descriptor is None:
        raise ReversiError(
            f"{shown(str(path), 300)} is in use by another process: expected it to end first, or another file"
        )
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)  # while it is locked: who has opened it meanwhile sees that it is gone
        os.close(descriptor)


def _claimed(path: Path, *, wait: bool = True) -> int | None:
    """Open a file, made if need be and emptied, that nobody else can claim until it is closed; None if that would be to *wait*."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    while True:
        descriptor = os.open(path, flags, 0o666)
        try:
            if not lock(descriptor, wait=wait):
                os.close(descriptor)
                return None
            if _is_at(path, descriptor):
                os.ftruncate(descriptor, 0)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # renamed or removed by who had it before


def lock(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file or folder, unless another process has; on a file system without locks all is as if there were no others."""
    if fcntl is None:  # pragma: no cover - Windows
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sync_folder(folder: Path) -> None:
    """Flush the renames of a folder to the disk, where that can be done."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
