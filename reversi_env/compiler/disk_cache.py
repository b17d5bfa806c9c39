"""Compiled kernels as files: where they are, how damage is found, and when they are thrown away.

An entry is one file, ``kernels/ENVIRONMENT/GROUP/NAME-KEY.kernel`` below the user's cache folder:

* ENVIRONMENT: package version, Python, numba and CPU, so that machines that share a home do not share code;
* GROUP: the layer and a fingerprint of the sources that its kernels are made of;
* NAME, KEY: the function, and a hash of its argument types and options.

Files of their own, written whole: processes that compile at the same time cannot get in each other's way.
Every file begins with a hash of its content and key, so that one that was cut, flipped or exchanged is compiled again, not run.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from reversi_env.storage.atomic import remove_temporary_files, write_atomically
from reversi_env.storage.user_cache import cache_folder, size_of

#: The first bytes of an entry; another layout of the file gets another number.
HEADER = b"reversi-lab kernel 1\n"
_DIGEST_SIZE = hashlib.sha256().digest_size
#: Groups that nothing has used for so long are removed, and the longest unused ones if all are larger than that.
MAX_UNUSED_DAYS = 30
MAX_TOTAL_BYTES = 2**30
#: A group's date is that of its last use, to within this many seconds.
TOUCH_INTERVAL_SECONDS = 24 * 3600


class KernelFiles:
    """The entries of one environment, in the user's cache or, where that cannot be written, in a temporary folder."""

    def __init__(self, environment: str) -> None:
        self.environment = environment
        #: Where entries are looked for, and where new ones go: None if nowhere can be written.
        self._places = [folder for folder in (cache_folder("kernels"), _fallback_folder()) if folder is not None]
        self._target: Path | None = self._places[0]
        self._used: set[Path] = set()
        self._pruned = False

    def read(self, group: str, name: str, key: str) -> bytes | None:
        """The content saved under these names, or None if there is none; a damaged file is removed."""
        for place in self._places:
            path = self._path(place, group, name, key)
            try:
                entry = path.read_bytes()
            except OSError:
                continue
            content = _checked(entry, key)
            if content is not None:
                self._touch_group(path.parent)
                return content
            _remove(path)
        return None

    def write(self, group: str, name: str, key: str, content: bytes) -> None:
        """Save *content*; where the user's cache has no room or may not be written, in a temporary one, and say so once."""
        entry = HEADER + _digest(content, key) + content
        while self._target is not None:
            try:
                path = self._path(self._target, group, name, key)
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, entry)
            except OSError as error:
                self._fall_back(self._target, error)
            else:
                self._prune(self._target)
                return

    def _path(self, place: Path, group: str, name: str, key: str) -> Path:
        return place / self.environment / group / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.kernel"

    def _fall_back(self, place: Path, error: OSError) -> None:
        """Write to the temporary cache from now on, or nowhere, after saying why."""
        spare = None if place == _fallback_name() else _new_fallback_folder()
        if spare is not None and spare not in self._places:
            self._places.append(spare)
        self._target = None if spare == place else spare
        if place == self._places[0]:
            reason = (error.strerror or str(error)).lower()
            instead = f"{str(spare)!r} serves instead" if spare else "they are compiled at every start"
            print(
                f"reversi: the cache of compiled kernels {str(place)!r} cannot be written ({reason}): {instead}; "
                "REVERSI_CACHE_DIR names another place",
                file=sys.stderr,
            )

    def _touch_group(self, group: Path) -> None:
        """Let the date of a group's folder tell when it was last used."""
        if group in self._used:
            return
        self._used.add(group)
        with suppress(OSError):
            if time.time() - group.stat().st_mtime > TOUCH_INTERVAL_SECONDS:
                os.utime(group)

    def _prune(self, folder: Path) -> None:
        """Once a process that has compiled something: remove what nobody has used for long."""
        if not self._pruned:
            self._pruned = True
            prune(folder)


def prune(folder: Path, now: float | None = None) -> None:
    """Remove groups of kernels that were not used for MAX_UNUSED_DAYS, and the longest unused ones above MAX_TOTAL_BYTES in all."""
    now = time.time() if now is None else now
    total = 0
    for used, group in sorted(_groups(folder), reverse=True):
        total += size_of(group)[1]
        if now - used > MAX_UNUSED_DAYS * 24 * 3600 or (
            total > MAX_TOTAL_BYTES and now - used > TOUCH_INTERVAL_SECONDS
        ):
            shutil.rmtree(group, ignore_errors=True)
            with suppress(OSError):  # there are others
                group.parent.rmdir()
        else:
            remove_temporary_files(group)


def _groups(folder: Path) -> list[tuple[float, Path]]:
    groups = []
    for group in folder.glob("*/*"):
        try:
            groups.append((group.stat().st_mtime, group))
        except OSError:  # removed by another process
            continue
    return groups


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _digest(content: bytes, key: str) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + content).digest()


def _checked(entry: bytes, key: str) -> bytes | None:
    """The content of an entry that is whole and was saved under *key*."""
    begin = len(HEADER) + _DIGEST_SIZE
    content = entry[begin:]
    whole = entry.startswith(HEADER) and entry[len(HEADER) : begin] == _digest(content, key)
    return content if whole else None


def _fallback_name() -> Path:
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return Path(tempfile.gettempdir()) / f"reversi-lab-{user}" / "kernels"


def _fallback_folder() -> Path | None:
    """The temporary cache of an earlier process, if it is ours alone: code from it will be run."""
    folder = _fallback_name()
    try:
        status = folder.parent.lstat()
    except OSError:
        return None
    ours = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
    return folder if ours and stat.S_ISDIR(status.st_mode) else None


def _new_fallback_folder() -> Path | None:
    """A temporary cache that the next process finds again; one of its own if somebody else took that name, None if none can be."""
    try:
        _fallback_name().parent.mkdir(mode=0o700, exist_ok=True)
        return _fallback_folder() or Path(tempfile.mkdtemp(prefix="reversi-lab-")) / "kernels"
    except OSError:
        return None
