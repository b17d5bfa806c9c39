"""Every kernel of a module must run from the on-disk cache in the next process: the part that all such tests share.

A child process plays a program that ends in `report`; `second_process_agrees` runs it twice and compares.
"""

import importlib
import pkgutil

from numba.core.dispatcher import Dispatcher

from reversi_env.kernels.parallel import Loop
from tests.oracles.processes import output_of

# --- in the child process -------------------------------------------------------------------------


def kernels_of(module):
    """The module's own kernels by name, a serial and a parallel build apart."""
    return {
        f"{module.__name__}.{name} {kernel.targetoptions.get('parallel')}": kernel
        for name, value in vars(module).items()
        for kernel in (value if isinstance(value, Loop) else [value])
        if isinstance(kernel, Dispatcher) and kernel.py_func.__module__ == module.__name__
    }


def reached(kernels):
    """Those that were run: a kernel from the cache holds those that it calls, which are not loaded themselves."""
    found = {kernel for kernel in kernels if kernel.overloads}
    called = list(found)
    while called:
        function = called.pop().py_func
        more = {function.__globals__.get(name) for name in function.__code__.co_names} & set(kernels) - found
        found |= more
        called += more
    return found


def modules_of(package):
    """All modules of a package of kernels."""
    return [
        importlib.import_module(found.name) for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    ]


def report(*modules, whole=True):
    """Print four lines: how many kernels there are, which were not reached, which were compiled, how many came from the cache.

    Of a part of a layer (not *whole*), a program need not reach them all.
    """
    kernels = {name: kernel for module in modules for name, kernel in kernels_of(module).items()}
    run = reached(kernels.values()) if whole else set(kernels.values())
    print(len(kernels))
    print(sorted(name for name, kernel in kernels.items() if kernel not in run))
    print(sorted(name for name, kernel in kernels.items() if kernel.stats.cache_misses))
    print(len([kernel for kernel in kernels.values() if kernel.stats.cache_hits]))


# --- in the test ----------------------------------------------------------------------------------


def second_process_agrees(program, folder, *, cache, kernels):
    """Run a program, which prints what it has seen and then a `report`, twice: from the tests' own cache, or from an empty one."""
    environment = {"REVERSI_CACHE_DIR": folder} if cache == "empty" else {}
    first, second = (output_of(program, **environment) for _ in range(2))
    assert int(first[1]) > kernels
    assert first[2] == "[]", "kernels that this test does not reach"
    if cache == "empty":
        assert first[3] != "[]"
    assert second[0] == first[0]
    assert second[3] == "[]", "kernels that were compiled again"
    assert int(second[4]) > 5  # those that Python calls
