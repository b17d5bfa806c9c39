"""Atomic file writes: a reader sees the old file or the complete new one, even if the writing process is killed.

A file is written to ``.NAME.part`` in the same folder, flushed to the disk and renamed. A killed process can leave this temporary
file: the next write replaces it, and `remove_temporary_files` removes all of a folder. The temporary file is locked, so that two
processes write one after the other (on systems with file locks).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOSPC
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: no locks there
    fcntl = None  # type: ignore[assignment]


def write_atomically(path: Path, data: bytes) -> None:
    with atomic_writer(path) as stream:
        stream.write(data)


@contextmanager
def atomic_writer(path: Path) -> Iterator[BinaryIO]:
    """Yield a stream for the content of a file, which is replaced when the block ends and unchanged if the block raises."""
    part = path.with_name(f".{path.name}.part")
    descriptor = _open_locked(part)
    assert descriptor is not None
    with _named(path), os.fdopen(descriptor, "wb") as stream:
        try:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if fcntl is None:  # pragma: no cover - Windows cannot rename an open file
                stream.close()
            os.replace(part, path)  # noqa: PTH105 - the tests let it fail, as a crash would
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    _sync_folder(path.parent)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in errors of the system, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


def append_atomically(path: Path, data: bytes) -> None:
    """Append *data* to a file in one write, and flush it. A process killed meanwhile leaves an incomplete end at most."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    with _named(path):
        try:
            if os.write(descriptor, data) < len(data):
                raise OSError(ENOSPC, os.strerror(ENOSPC))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_temporary_files(folder: Path) -> None:
    """Remove the temporary files that killed processes have left in *folder*, except those that are being written."""
    for part in folder.glob(".*.part"):
        with suppress(OSError):
            descriptor = _open_locked(part, wait=False)
            if descriptor is not None:
                with os.fdopen(descriptor, "rb"):
                    part.unlink()


def _open_locked(path: Path, *, wait: bool = True) -> int | None:
    """Open, create and truncate a file under an exclusive lock. Return None if it is locked and *wait* is false."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    while True:
        descriptor = os.open(path, flags, 0o666)
        try:
            if lock(descriptor, wait=wait) is False:
                os.close(descriptor)
                return None
            if _is_at(path, descriptor):
                os.ftruncate(descriptor, 0)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # renamed or removed by the process that held it


def lock(descriptor: int, *, wait: bool) -> bool | None:
    """Lock an open file or folder. Return False if another process holds it, None if the system or file system has no locks."""
    if fcntl is None:  # pragma: no cover - Windows
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    """Return whether *path* still names the open file."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sync_folder(folder: Path) -> None:
    """Flush the renames in a folder to the disk (POSIX only)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
