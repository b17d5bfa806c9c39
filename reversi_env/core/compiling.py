"""How kernels are compiled, cached on disk and announced.

Every compiled function of this project is made by `kernel`. It is numba's ``njit`` with these differences:

* **No stale code.** Numba's own cache looks at one file only: edit ``bitboard.py`` and a cached ``perft`` in another
  file would go on running the old rules. Here the cache is stamped with a fingerprint of *every* file of the kernel
  folders that the function may depend on (`KERNEL_FOLDERS`), so that any edit recompiles and nothing else does.
* **No mixed-up and no damaged code.** Entries lie in the user's cache folder, apart by version, Python, numba and CPU; each is a
  file of its own with a checksum (`reversi_env.kernel_files`).
* **No code twice.** Kernels that only other kernels call are not built for Python as well (`reversi_env.core.building`).
* **No slow start.** Numba's machinery for compiling is not loaded where everything comes from the cache.
* **No silent wait.** The first compilation in a process is announced on standard error, if that is a terminal.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba
from llvmlite.binding import add_symbol, address_of_symbol, parse_assembly, parse_bitcode
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.errors import NumbaWarning
from numba.core.runtime import _nrt_python as _nrt  # type: ignore[attr-defined]
from numba.core.serialize import dumps

from reversi_env.caches import cache_folder
from reversi_env.core.building import KernelCompiler, KernelDispatcher, is_inner
from reversi_env.kernel_files import KernelFiles
from reversi_env.version import __version__

#: Folders that hold kernels, leftmost layer first. A kernel may use its own layer and the layers to its left.
KERNEL_FOLDERS = ("reversi_env/core", "search/core", "models/core", "train/core")
_PROJECT_ROOT = Path(__file__).resolve().parents[2]

#: Source fingerprints of numba types whose meaning was registered from outside (an evaluator's record type): a kernel compiled
#: for such a type depends on that source too.
TYPE_FINGERPRINTS: dict[Any, str] = {}

_announced = False


def announce_compilation() -> None:
    """Say once per process, and only to a person at a terminal, why nothing happens: a log would have it of every worker."""
    global _announced
    if not _announced and sys.stderr and sys.stderr.isatty():  # None where it is closed
        print("reversi: compiling kernels for this CPU (first use only, kept for the next start) …", file=sys.stderr)
    _announced = True


class NotCompiled(Exception):  # noqa: N818 - it says what is the case
    """A kernel is not in the cache, where nothing is to be compiled."""


_strict = threading.local()


@contextmanager
def only_from_cache() -> Iterator[None]:
    """Within it this thread compiles nothing: a kernel that is not in the cache raises `NotCompiled`."""
    _strict.is_on = True
    try:
        yield
    finally:
        _strict.is_on = False


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


class KernelCache(_Cache):
    """The compiled versions of one function on disk, valid only for the sources, CPU and libraries that they were compiled with."""

    def __init__(self, function: Callable, options: dict[str, Any]) -> None:
        self._function = function
        self._options = tuple(sorted(options.items()))

    @property
    def cache_path(self) -> str:
        """The folder that all kernels share."""
        return str(cache_folder("kernels"))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for *sig*, or None (after saying so) if it has to be compiled."""
        if is_inner():
            return None
        saved = _files(target_context.codegen().magic_tuple()).read(*self._place(sig, target_context.codegen()))
        if saved is None:
            if getattr(_strict, "is_on", False):
                raise NotCompiled(self._function.__qualname__)
            announce_compilation()
            return None
        return _Entry(*pickle.loads(saved)).result(target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for *sig*, if it can be kept: not if it holds addresses of this process."""
        if is_inner():
            return
        if data.library.has_dynamic_globals or data.lifted:
            warnings.warn(
                f"kernel {self._function.__qualname__!r} refers to an address of this process: it is compiled at every start",
                NumbaWarning,
                stacklevel=2,
            )
            return
        codegen = data.codegen
        _files(codegen.magic_tuple()).write(*self._place(sig, codegen), dumps(tuple(_Entry.of(data))))

    def enable(self) -> None:
        """Numba's face of a cache; this one is always in use."""

    def disable(self) -> None:
        """Numba's face of a cache; this one is always in use."""

    def flush(self) -> None:
        """Numba's face of a cache; entries of other sources are never found, and removed after a while."""

    def _place(self, sig: Any, codegen: Any) -> tuple[str, str, str]:
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
    tag = sys.implementation.cache_tag + getattr(sys, "abiflags", "")
    _, name, features = cpu
    rest = hashlib.sha256(f"{cpu} {llvmlite.__version__} {features}".encode()).hexdigest()[:8]
    return KernelFiles(f"{__version__}-{tag}-numba{numba.__version__}-{name}-{rest}")


class _Entry(NamedTuple):
    """A compiled function as it is saved, in the order of numba's own, with what makes loading it quick."""

    #: The functions outside of it that the code calls, but for those of LLVM and Python, which are always there.
    called: frozenset[str]
    #: The functions and variables that it defines.
    defined: frozenset[str]
    #: Its code in LLVM's language, for kernels that take it in.
    bitcode: bytes
    #: What numba saves, without that code.
    reduced: tuple[Any, ...]

    @classmethod
    def of(cls, result: Any) -> _Entry:
        """The entry for a result of numba's compiler."""
        module = result.library._final_module
        declared = (function.name for function in module.functions if function.is_declaration)
        called = frozenset(name for name in declared if not name.startswith(("llvm.", "Py", "_Py")))
        named = (
            thing.name
            for things in (module.functions, module.global_variables)
            for thing in things
            if not thing.is_declaration
        )
        (name, kind, (machine_code, bitcode)), *rest = result._reduce()
        empty = parse_assembly(str(result.codegen._create_empty_module(name))).as_bitcode()
        return cls(called, frozenset(named), bitcode, ((name, kind, (machine_code, empty)), *rest))

    def result(self, context: Any) -> Any:
        """The result again. LLVM's code is only read if another kernel is compiled that takes it in."""
        _provide_runtime()
        if not all(map(address_of_symbol, self.called)):
            context.refresh()  # loads all that numba can compile, which takes half a second
        context.codegen()._engine._defined_symbols.update(self.defined)
        result = CompileResult._rebuild(context, *self.reduced)
        library = result.library
        library._get_module_for_linking = cache(lambda: parse_bitcode(self.bitcode))
        return result


@cache
def _provide_runtime() -> None:
    """Let compiled code find numba's runtime; what compiling needs of it besides takes longer, and is left to numba."""
    for name, address in _nrt.c_helpers.items():
        add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def kernel(function: Callable) -> Any:
    """Compile *function* with numba: GIL released, C-like arithmetic, cached on disk until any kernel source changes."""
    return _kernel(function, {})


def inlined_kernel(function: Callable) -> Any:
    """A `kernel` that becomes a part of every kernel that calls it, long as it is: where a call would cost too much."""
    return _kernel(function, {"forceinline": True})


def _kernel(function: Callable, more: dict[str, Any]) -> Any:
    options = {"nopython": True, "nogil": True, "error_model": "numpy", **more}
    dispatcher: Any = KernelDispatcher(function, targetoptions=options, pipeline_class=KernelCompiler)
    dispatcher._cache = KernelCache(function, options)
    return dispatcher
