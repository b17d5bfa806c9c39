"""How kernels are compiled, cached on disk and announced.

Every compiled function of this project is made by `kernel`. It is numba's ``njit`` with four differences:

* **No stale code.** Numba's own cache looks at one file only: edit ``bitboard.py`` and a cached ``perft`` in another
  file would go on running the old rules. Here the cache is stamped with a fingerprint of *every* file of the kernel
  folders that the function may depend on (`KERNEL_FOLDERS`), so that any edit recompiles and nothing else does.
* **No mixed-up code.** Processes that compile at the same time do not get in each other's way.
* **No silent wait.** The first compilation in a process is announced on standard error, if that is a terminal.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

#: Folders that hold kernels, leftmost layer first. A kernel may use its own layer and the layers to its left.
KERNEL_FOLDERS = ("reversi_env/core", "search/core", "models/core", "train/core")
_PROJECT_ROOT = Path(__file__).resolve().parents[2]

#: Source fingerprints of numba types whose meaning was registered from outside (an evaluator's record type): a kernel compiled
#: for such a type depends on that source too.
TYPE_FINGERPRINTS: dict[Any, str] = {}

_announced = False


def announce_compilation() -> None:
    """Say once per process, and only to a person at a terminal, why nothing seems to happen."""
    global _announced
    if not _announced and sys.stderr.isatty():
        print("reversi: compiling kernels for this CPU (first use only, kept for the next start) …", file=sys.stderr)
    _announced = True


@cache
def source_fingerprint(source_file: str) -> str:
    """Hash of all kernel sources and tables that a kernel in *source_file* may have been compiled from."""
    source = Path(source_file).resolve()
    layers = [_PROJECT_ROOT / folder for folder in KERNEL_FOLDERS]
    own_layer = next((i for i, folder in enumerate(layers) if source.is_relative_to(folder)), len(layers))
    digest = hashlib.sha256(source.read_bytes())
    for folder in layers[: own_layer + 1]:
        for path in sorted(folder.glob("*")):
            if path.suffix in {".py", ".npy"}:
                digest.update(path.name.encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


class EntryFiles(IndexDataCacheFile):
    """The compiled code of one function, every entry in files of its own.

    Numba keeps all entries of a function in numbered files with one index, which it reads and writes without a lock: of two
    processes that save at the same time one entry may be lost, or both be given the same number, and then one's code is run for
    the arguments of the other.
    """

    def save(self, key: tuple, data: Any) -> None:
        """Save an entry; what another process saves under that key at the same time is the same code."""
        self._files_of(key).save(key, (self._source_stamp, data))

    def load(self, key: tuple) -> Any:
        """The entry, or None if there is none that was compiled from the present sources."""
        stamp, data = self._files_of(key).load(key) or (None, None)
        return data if stamp == self._source_stamp else None

    def _files_of(self, key: tuple) -> IndexDataCacheFile:
        name = f"{Path(self._index_name).stem}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"
        return IndexDataCacheFile(self._cache_path, name, self._source_stamp)


class FingerprintedCache(FunctionCache):
    """Numba's on-disk cache of one function, valid only for the exact kernel sources it was compiled from."""

    def __init__(self, py_func: Callable, options: dict[str, Any]) -> None:
        super().__init__(py_func)
        self._options = tuple(sorted(options.items()))
        self._cache_file = EntryFiles(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=source_fingerprint(py_func.__code__.co_filename),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for *sig*, or None (after saying so) if it has to be compiled."""
        compiled = super().load_overload(sig, target_context)
        if compiled is None:
            announce_compilation()
        return compiled

    def _index_key(self, sig: Any, codegen: Any) -> tuple:
        arguments = (getattr(argument, "dtype", argument) for argument in sig)
        registered = tuple(TYPE_FINGERPRINTS.get(argument, "") for argument in arguments)
        return (*super()._index_key(sig, codegen), self._options, registered)


def kernel(function: Callable) -> Any:
    """Compile *function* with numba: GIL released, C-like arithmetic, cached on disk until any kernel source changes."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    dispatcher = njit(**options)(function)
    dispatcher._cache = FingerprintedCache(function, options)
    return dispatcher
