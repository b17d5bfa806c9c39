"""Folders of a training, a tournament or a data set, where one process at a time may write."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from reversi_env.writing import remove_parts
from train.errors import TrainError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: nothing keeps two processes from one folder there
    fcntl = None  # type: ignore[assignment]


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Make the folder if need be, and keep other processes from writing there; the lock ends with the process.

    What a process that was killed there has left of its files is removed.
    """
    if folder.exists() and not folder.is_dir():
        raise TrainError(f"{str(folder)!r} is a file: expected a folder, or a name for a new one")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TrainError(
            f"folder {str(folder)!r} cannot be made, {reason}: expected a place where you may write"
        ) from None
    if not os.access(folder, os.W_OK):
        raise TrainError(f"folder {str(folder)!r} is read-only: expected a place where you may write")
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TrainError(
                f"{str(folder)!r} is being written by another process: expected it to end first, or another folder"
            ) from None
        remove_parts(folder)
        yield
    finally:
        os.close(descriptor)


def read_arrays(path: Path, names: Sequence[str]) -> list[np.ndarray]:
    """Arrays of an npz file, whose checksums find damage; a `TrainError` if it has any."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as saved:
            return [saved[name] for name in names]
    except (OSError, ValueError, LookupError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise TrainError(f"{str(path)!r} cannot be read ({error}): expected it as it was written") from None
