"""How a kernel is built: in full where Python calls it, and in a lighter form where only other kernels do.

Numba builds every function as if Python might call it: with wrappers, optimised, as machine code, and saved. But most kernels are
only called by others, which take in their code and optimise it again. Those are only typed and translated here; a kernel that
Python calls is built with all of them inside, once. A first start takes little more than half the time, and the code is as fast.

For every call of itself in a kernel numba finds out anew what the kernel returns, by typing all of it again: 20 times in the search
to a depth, nearly half of the time that it took to compile. Here the first answer stands.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from numba.core import sigutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.errors import NumbaError, UnsupportedBytecodeError
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering
from numba.core.typeinfer import TypeInferer

#: What numba raises for a function that it cannot compile; the last, where a record does not have a field.
FAILURES = (NumbaError, UnsupportedBytecodeError, KeyError)
#: By a word that the types of a kernel's arguments have: called when that kernel cannot be built, before numba's error goes on its
#: way, and may raise one that says more, in fewer words.
explanations: dict[str, Callable[[], None]] = {}


class _Building(threading.local):
    """How many kernels this thread is building, each for the one before."""

    depth = 0


_building = _Building()


def is_inner() -> bool:
    """Whether a kernel that is asked for now is for another one that is being built."""
    return _building.depth > 0


def _once(return_type: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """*return_type* of a function that calls itself, as far as it follows without those calls: asked once for a kernel of ours."""

    def remembered(inferer: Any) -> Any:
        if not is_inner():  # others' functions
            return return_type(inferer)
        if getattr(inferer, "found_return_type", None) is None:
            inferer.found_return_type = return_type(inferer)
        return inferer.found_return_type

    return remembered


TypeInferer.return_types_from_partial = _once(TypeInferer.return_types_from_partial)  # type: ignore[method-assign]


class InnerEntry:
    """Stands for the entry point that an inner kernel does not have; the compiler tells functions apart by it."""


class InnerLibrary(JITCodeLibrary):
    """The code of an inner kernel and of all that it calls; whoever takes it in optimises it and makes machine code of it."""

    def finalize(self) -> None:
        """Link the kernels that this one calls."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._final_module.verify()
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class InnerLowering(NativeLowering):
    """Translates an inner kernel to LLVM's language."""

    _name = "inner_lowering"

    def run_pass(self, state: Any) -> bool:
        """Do without wrappers and machine code, and let other kernels find the result."""
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
        """Compile the Python function *func*; kernels that it calls are compiled within."""
        _building.depth += 1
        try:
            return super().compile_extra(func)
        finally:
            _building.depth -= 1

    def define_pipelines(self) -> list[PassManager]:
        """The steps, in one pipeline."""
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state)
        if _building.depth == 1:
            return [steps]
        inner = PassManager("inner kernel")
        for step, why in steps.passes:
            inner.add_pass(InnerLowering if step is NativeLowering else step, why)
        inner.finalize()
        return [inner]


class KernelDispatcher(CPUDispatcher):
    """Numba's dispatcher, which builds a kernel anew and in full when Python first calls one that was built for others."""

    def compile(self, sig: Any) -> Any:
        """The entry point for *sig*, compiled or from the cache if need be."""
        arguments = tuple(sigutils.normalize_signature(sig)[0])
        known: Any = self.overloads.get(arguments)
        if known is not None and isinstance(known.entry_point, InnerEntry) and not is_inner():
            self.overloads.pop(arguments, None)  # another thread may have been here
        try:
            return super().compile(sig)
        except FAILURES:
            if not is_inner():
                told = str(arguments)
                for word, explain in list(explanations.items()):
                    if word in told:
                        explain()
            raise

    def add_overload(self, cres: Any) -> None:
        """Make a result known: to Python too, if it is a full one."""
        if isinstance(cres.entry_point, InnerEntry):
            self.overloads[tuple(cres.signature.args)] = cres
            return
        for environment in cres._find_referenced_environments():  # those of the inner kernels have not been set
            cres.codegen.set_env(environment.env_name, environment)
        super().add_overload(cres)  # last: from here on another thread may call it
