"""The `kernel` decorator, which compiles all kernels of this project: numba's ``njit`` with these differences.

* Numba's own cache checks one file only: after an edit of ``bitboard.py`` a cached ``perft`` of another file would run the old
  rules. Here the key has a fingerprint of all kernel folders that the function may depend on (`KERNEL_FOLDERS`).
* Entries are files with a checksum in the user's cache folder (`reversi_env.compiler.disk_cache`).
* Kernels that only kernels call are not built for Python (`reversi_env.compiler.inner`), and a start from the cache does not load
  numba's compiler. Both need internals of numba; if a version lacks them, kernels are ``njit`` functions without a disk cache.
* The first compilation in a process is announced on standard error, if that is a terminal.
"""

import hashlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core.errors import NumbaError, NumbaWarning, UnsupportedBytecodeError
from numba.core.serialize import dumps

from reversi_env.compiler.disk_cache import KernelFiles

try:
    from reversi_env.compiler import inner as building
except (ImportError, AttributeError) as error:  # another version of numba
    building, _import_error = None, str(error)  # type: ignore[assignment]

#: Folders that hold kernels, leftmost layer first. A kernel may use its own layer and the layers to its left.
KERNEL_FOLDERS = ("reversi_env/compiler", "reversi_env/kernels", "search/kernels", "models/kernels", "train/kernels")
_PROJECT_ROOT = Path(__file__).resolve().parents[2]

#: Source fingerprints of numba types whose meaning was registered from outside (an evaluator's record type): a kernel compiled
#: for such a type depends on that source too.
TYPE_FINGERPRINTS: dict[Any, str] = {}

#: Numba's errors for a function that it cannot compile; `KeyError` for a missing field of a record.
FAILURES = (NumbaError, UnsupportedBytecodeError, KeyError)
#: By a word in the types of a kernel's arguments: a function that raises a clearer error when the kernel cannot be compiled.
explanations: dict[str, Callable[[], None]] = {}

_announced = False


def announce_compilation() -> None:
    """Print one line, once per process and only to a terminal, that kernels are being compiled."""
    global _announced
    if not _announced and sys.stderr and sys.stderr.isatty():  # stderr is None if it is closed
        print("reversi: compiling kernels for this CPU (first use only, kept for the next start) …", file=sys.stderr)
    _announced = True


class NotCompiled(Exception):  # noqa: N818 - a state rather than an error
    """A kernel is not in the cache within `cached_kernels_only`."""


_cached_only = threading.local()


@contextmanager
def cached_kernels_only() -> Iterator[None]:
    """Within this context the thread compiles nothing: a kernel that is not in the cache raises `NotCompiled`."""
    _cached_only.is_on = True
    try:
        yield
    finally:
        _cached_only.is_on = False


@cache
def source_fingerprint(source_file: str) -> str:
    """Hash of all kernel sources and tables that a kernel in *source_file* may have been compiled from."""
    source = Path(source_file).resolve()
    layers = [_PROJECT_ROOT / folder for folder in KERNEL_FOLDERS]
    own_layer = next((i for i, folder in enumerate(layers) if source.is_relative_to(folder)), len(layers))
    digest = hashlib.sha256(b"" if own_layer < len(layers) else source.read_bytes())
    for folder in layers[: own_layer + 1]:
        for path in sorted(folder.glob("*")):
            if path.suffix in {".py", ".npy"}:
                digest.update(path.name.encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


class KernelStore:
    """The compiled versions of one function on disk, valid only for the sources, CPU and libraries that they were compiled with."""

    def __init__(self, function: Callable, options: dict[str, Any]) -> None:
        self._function = function
        self._options = tuple(sorted(options.items()))

    def read(self, signature: Any, codegen: Any) -> bytes | None:
        """Return the entry for *signature*. If there is none, announce the compilation and return None."""
        entry = _files(codegen.magic_tuple()).read(*self._cache_key(signature, codegen))
        if entry is None:
            if getattr(_cached_only, "is_on", False):
                raise NotCompiled(self._function.__qualname__)
            announce_compilation()
        return entry

    def write(self, signature: Any, codegen: Any, entry: bytes) -> None:
        _files(codegen.magic_tuple()).write(*self._cache_key(signature, codegen), entry)

    def explain_failure(self, error: Exception, argument_types: str) -> None:
        """Call the registered explanations whose word occurs in the types of the arguments, if numba cannot compile the kernel."""
        for word, explain in list(explanations.items()):
            if word in argument_types and isinstance(error, FAILURES):
                explain()

    def _cache_key(self, sig: Any, codegen: Any) -> tuple[str, str, str]:
        """Group, name and key of the entry for *sig*."""
        code = self._function.__code__
        cells = tuple(cell.cell_contents for cell in self._function.__closure__ or ())
        arguments = (getattr(argument, "dtype", argument) for argument in sig)
        registered = tuple(TYPE_FINGERPRINTS.get(argument, "") for argument in arguments)
        sources = source_fingerprint(code.co_filename)
        fingerprints = (sources, hashlib.sha256(code.co_code + (dumps(cells) if cells else b"")).hexdigest())
        key = repr((sig, codegen.magic_tuple(), fingerprints, self._options, registered))
        layer, _, module = self._function.__module__.partition(".")
        name = f"{module.rpartition('.')[2] or layer}.{self._function.__qualname__}".replace("<locals>", "-")
        return f"{layer}-{sources[:16]}", name, key


@cache
def _files(cpu: tuple[Any, ...]) -> KernelFiles:
    """The kernel files for this package, Python, numba and CPU (numba's description of it: triple, name and features)."""
    from reversi_env import __version__  # not at the top: kernels are defined while the package is imported

    tag = sys.implementation.cache_tag + getattr(sys, "abiflags", "")
    _, name, features = cpu
    rest = hashlib.sha256(f"{cpu} {llvmlite.__version__} {features}".encode()).hexdigest()[:8]
    return KernelFiles(f"{__version__}-{tag}-numba{numba.__version__}-{name}-{rest}")


def kernel(function: Callable) -> Any:
    """Compile *function* with numba: GIL released, C-like arithmetic, cached on disk until any kernel source changes."""
    return _kernel(function, {})


def inlined_kernel(function: Callable) -> Any:
    """Compile a `kernel` that is inlined into every kernel that calls it, however long it is."""
    return _kernel(function, {"forceinline": True})


def _kernel(function: Callable, more: dict[str, Any]) -> Any:
    options = {"nogil": True, "error_model": "numpy", **more}
    if building is None:
        _report_fallback()
        return numba.njit(**options)(function)
    options["nopython"] = True
    return building.build(function, options, KernelStore(function, options))


@cache
def _report_fallback() -> None:
    warnings.warn(
        f"numba {numba.__version__} lacks internals that fast compilation needs ({_import_error}): "
        "kernels are compiled at every start; install a version of numba that this package supports",
        NumbaWarning,
        stacklevel=2,
    )
