"""Kernels built on numba's internals. This is the only module that uses private names of a library.

Numba compiles every function as if Python called it: with wrappers, optimised, to machine code. Most kernels are only called by
other kernels, which inline and optimise their code again. Here such an inner kernel is only typed and lowered to LLVM IR; a kernel
that Python calls is compiled once, with all inner kernels linked in. A first start takes little more than half the time, and the
code is as fast.

For every recursive call numba infers the return type again, by typing the whole function: 20 times in the fixed-depth search,
nearly half of its compilation. Here the first result is reused.

Entries of the disk cache keep their LLVM IR apart, because only another compilation reads it.

If a name is missing in some version of numba, the import fails, and `reversi_env.compiler.kernel` falls back to plain ``njit``.
"""

from __future__ import annotations

import pickle
import threading
import warnings
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from llvmlite.binding import add_symbol, address_of_symbol, parse_assembly, parse_bitcode
from numba.core import sigutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.errors import NumbaWarning
from numba.core.registry import CPUDispatcher
from numba.core.runtime import _nrt_python as _nrt  # type: ignore[attr-defined]
from numba.core.serialize import dumps
from numba.core.typed_passes import NativeLowering
from numba.core.typeinfer import TypeInferer

if TYPE_CHECKING:
    from reversi_env.compiler.kernel import KernelStore


class _Building(threading.local):
    """The number of nested compilations in this thread: a kernel is compiled when another one calls it."""

    depth = 0


_building = _Building()


def is_inner() -> bool:
    """Return whether a kernel that is requested now is part of another one."""
    return _building.depth > 0


def _once(return_type: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return *return_type* with its result cached for every kernel of this project."""

    def cached_return_type(inferer: Any) -> Any:
        if not is_inner():  # a function of another package
            return return_type(inferer)
        if getattr(inferer, "cached_type", None) is None:
            inferer.cached_type = return_type(inferer)
        return inferer.cached_type

    return cached_return_type


TypeInferer.return_types_from_partial = _once(TypeInferer.return_types_from_partial)  # type: ignore[method-assign]


class InnerEntry:
    """Placeholder for the entry point that an inner kernel does not have."""


class InnerLibrary(JITCodeLibrary):
    """The LLVM IR of an inner kernel and of all that it calls, not yet optimised."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._final_module.verify()
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class InnerLowering(NativeLowering):
    """Lowers an inner kernel to LLVM IR, without wrappers and machine code, and registers it for its callers."""

    _name = "inner_lowering"

    def run_pass(self, state: Any) -> bool:
        context = state.targetctx
        state.library = InnerLibrary(context.codegen(), state.func_id.func_qualname)
        state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = state.flags.no_compile = True
        super().run_pass(state)
        lowered, entry = state["cr"], InnerEntry()
        context.insert_user_function(entry, lowered.fndesc, [state.library])
        state.reload_init.extend(state.library._reload_init)
        state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=entry, env=lowered.env)
        return True


class KernelCompiler(CompilerBase):
    """Numba's compiler, with another last step for inner kernels."""

    def compile_extra(self, func: Any) -> Any:
        _building.depth += 1
        try:
            return super().compile_extra(func)
        finally:
            _building.depth -= 1

    def define_pipelines(self) -> list[PassManager]:
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state)
        if _building.depth == 1:
            return [steps]
        inner = PassManager("inner kernel")
        for step, why in steps.passes:
            inner.add_pass(InnerLowering if step is NativeLowering else step, why)
        inner.finalize()
        return [inner]


class KernelDispatcher(CPUDispatcher):
    """Numba's dispatcher, which compiles an inner kernel again, in full, when Python first calls it."""

    _cache: KernelCache

    def compile(self, sig: Any) -> Any:
        arguments = tuple(sigutils.normalize_signature(sig)[0])
        overload: Any = self.overloads.get(arguments)
        if overload is not None and isinstance(overload.entry_point, InnerEntry) and not is_inner():
            self.overloads.pop(arguments, None)  # another thread may have removed it
        try:
            return super().compile(sig)
        except Exception as error:
            if not is_inner():
                self._cache.store.explain_failure(error, str(arguments))
            raise

    def add_overload(self, cres: Any) -> None:
        """Register a result, for calls from Python too unless it is an inner kernel."""
        if isinstance(cres.entry_point, InnerEntry):
            self.overloads[tuple(cres.signature.args)] = cres
            return
        for environment in cres._find_referenced_environments():  # not yet set for the inner kernels
            cres.codegen.set_env(environment.env_name, environment)
        super().add_overload(cres)  # last: from here on another thread may call it


class KernelCache:
    """The `KernelStore` of one kernel, with the methods of numba's cache that its dispatcher calls."""

    cache_path = ""  # shown in numba's statistics

    def __init__(self, function: Callable, store: KernelStore) -> None:
        self._function, self.store = function, store

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function for *sig*, or None if it has to be compiled."""
        if is_inner():
            return None
        entry = self.store.read(sig, target_context.codegen())
        return entry and _Entry(*pickle.loads(entry)).result(target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the compiled function for *sig*, unless it contains addresses of this process."""
        if is_inner():
            return
        if data.library.has_dynamic_globals or data.lifted:
            warnings.warn(
                f"kernel {self._function.__qualname__!r} refers to an address of this process: it is compiled at every start",
                NumbaWarning,
                stacklevel=2,
            )
            return
        self.store.write(sig, data.codegen, dumps(tuple(_Entry.of(data))))


class _Entry(NamedTuple):
    """A compiled function as it is saved. The first three fields make it quick to load."""

    #: External functions that the code calls, except those of LLVM and Python, which are always present.
    called: frozenset[str]
    #: Functions and variables that the code defines.
    defined: frozenset[str]
    #: LLVM IR, for kernels that inline it.
    bitcode: bytes
    #: Numba's own content, without the IR.
    reduced: tuple[Any, ...]

    @classmethod
    def of(cls, result: Any) -> _Entry:
        module = result.library._final_module
        values = [*module.functions, *module.global_variables]
        declared = (function.name for function in module.functions if function.is_declaration)
        called = frozenset(name for name in declared if not name.startswith(("llvm.", "Py", "_Py")))
        defined = frozenset(value.name for value in values if not value.is_declaration)
        (name, kind, (machine_code, bitcode)), *rest = result._reduce()
        empty = parse_assembly(str(result.codegen._create_empty_module(name))).as_bitcode()
        return cls(called, defined, bitcode, ((name, kind, (machine_code, empty)), *rest))

    def result(self, context: Any) -> Any:
        """Return the compiled function. The IR is read only when another kernel that inlines it is compiled."""
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
    """Make numba's runtime visible to compiled code, without the slower parts that only a compilation needs."""
    for name, address in _nrt.c_helpers.items():
        add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def build(function: Callable, options: dict[str, Any], store: KernelStore) -> Any:
    """Return numba's dispatcher of *function*, which compiles it at the first call."""
    dispatcher: Any = KernelDispatcher(function, targetoptions=options, pipeline_class=KernelCompiler)
    dispatcher._cache = KernelCache(function, store)
    return dispatcher
