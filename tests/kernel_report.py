"""What a process that has run a module's kernels tells of them; printed by the tests' child processes."""

from numba.core.dispatcher import Dispatcher

from reversi_env.core.compiling import Builds


def kernels_of(module):
    """The module's own kernels by name, a serial and a parallel build apart."""
    return {
        f"{name} {kernel.targetoptions.get('parallel')}": kernel
        for name, value in vars(module).items()
        for kernel in (value if isinstance(value, Builds) else [value])
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


def report(module):
    """Print four lines: how many kernels there are, which were not reached, which were compiled, how many came from the cache."""
    kernels = kernels_of(module)
    run = reached(kernels.values())
    print(len(kernels))
    print(sorted(name for name, kernel in kernels.items() if kernel not in run))
    print(sorted(name for name, kernel in kernels.items() if kernel.stats.cache_misses))
    print(len([kernel for kernel in kernels.values() if kernel.stats.cache_hits]))
