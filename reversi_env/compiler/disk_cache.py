"""Compiled kernels as files: their paths, checksums and removal.

An entry is one file, ``kernels/ENVIRONMENT/GROUP/NAME-KEY.kernel`` below the user's cache folder:

* ENVIRONMENT: package version, Python, numba and CPU, so that machines with a shared home directory do not share code;
* GROUP: the layer and a fingerprint of the sources that its kernels are made of;
* NAME, KEY: the function, and a hash of its argument types and options.

Every entry is one file, written atomically, so processes may compile at the same time. It begins with a hash of its content and
key: a damaged or exchanged entry is compiled again, never run.
"""

import hashlib
import os
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path

from reversi_env.storage.atomic import remove_temporary_files, write_atomically
from reversi_env.storage.user_cache import cache_folder, size_of

#: First bytes of an entry, with the version of the file format.
HEADER = b"reversi-lab kernel 1\n"
_DIGEST_SIZE = hashlib.sha256().digest_size
#: Groups are removed after this many days without use; above the total size, those unused for the longest time go first.
MAX_UNUSED_DAYS = 30
MAX_TOTAL_BYTES = 2**30
#: Precision of the date of a group's last use.
TOUCH_INTERVAL_SECONDS = 24 * 3600


class KernelFiles:
    """The entries of one environment in the user's cache."""

    def __init__(self, environment: str) -> None:
        self._cache = cache_folder("kernels")
        self._folder = self._cache / environment
        self._touched: set[Path] = set()
        self._is_writable, self._pruned = True, False

    def read(self, group: str, name: str, key: str) -> bytes | None:
        """Return the content saved under these names, or None if there is none. A damaged file is removed."""
        path = self._path(group, name, key)
        try:
            entry = path.read_bytes()
        except OSError:
            return None
        begin = len(HEADER) + _DIGEST_SIZE
        content = entry[begin:]
        if entry[:begin] == HEADER + _digest(content, key):
            self._touch_group(path.parent)
            return content
        with suppress(OSError):
            path.unlink()
        return None

    def write(self, group: str, name: str, key: str, content: bytes) -> None:
        """Save *content*. If the folder cannot be written, print one message per process and save nothing."""
        if not self._is_writable:
            return
        try:
            path = self._path(group, name, key)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, HEADER + _digest(content, key) + content)
        except OSError as error:
            self._is_writable = False
            reason = (error.strerror or str(error)).lower()
            print(
                f"reversi: the cache of compiled kernels {str(self._cache)!r} cannot be written ({reason}): "
                "kernels are compiled at every start; set REVERSI_CACHE_DIR to another folder",
                file=sys.stderr,
            )
        else:
            if not self._pruned:
                self._pruned = True
                prune(self._cache)

    def _path(self, group: str, name: str, key: str) -> Path:
        return self._folder / group / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.kernel"

    def _touch_group(self, group: Path) -> None:
        """Set the date of a group's folder to that of its last use."""
        if group in self._touched:
            return
        self._touched.add(group)
        with suppress(OSError):
            if time.time() - group.stat().st_mtime > TOUCH_INTERVAL_SECONDS:
                os.utime(group)


def prune(folder: Path, now: float | None = None) -> None:
    """Remove groups of kernels that were not used for MAX_UNUSED_DAYS, and the oldest ones above MAX_TOTAL_BYTES."""
    now = time.time() if now is None else now
    total, groups = 0, []
    for group in folder.glob("*/*"):
        with suppress(OSError):  # removed by another process
            groups.append((group.stat().st_mtime, group))
    for used, group in sorted(groups, reverse=True):
        total += size_of(group)[1]
        if now - used > MAX_UNUSED_DAYS * 24 * 3600 or (
            total > MAX_TOTAL_BYTES and now - used > TOUCH_INTERVAL_SECONDS
        ):
            shutil.rmtree(group, ignore_errors=True)
            with suppress(OSError):  # not empty
                group.parent.rmdir()
        else:
            remove_temporary_files(group)


def _digest(content: bytes, key: str) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + content).digest()
