"""Python processes and threads of tests, and reports of compiled and cached kernels."""

import importlib
import os
import pkgutil
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path

from numba.core.dispatcher import Dispatcher

from reversi_env.kernels.parallel import Loop
from tests.oracles.jobs import PATIENCE, wait_until

REPOSITORY = Path(__file__).parents[2]


def finished(program, *arguments, folder=REPOSITORY, **environment):
    """Run the code *program*, or a module after ``-m``, with the packages of *folder*; fail if it has an error."""
    code = [] if program == "-m" else ["-c"]
    command = [sys.executable, *code, program, *map(str, arguments)]
    env = os.environ | {"PYTHONPATH": str(folder)} | {name: str(value) for name, value in environment.items()}
    # compilation with an empty cache takes minutes
    process = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=4 * PATIENCE)
    assert process.returncode == 0, process.stderr[-2000:]
    return process


def output_of(program, *arguments, folder=REPOSITORY, **environment):
    return finished(program, *arguments, folder=folder, **environment).stdout.splitlines()


def kernels_of(module):
    """Return the module's own kernels by name; serial and parallel builds are separate."""
    return {
        f"{module.__name__}.{name} {kernel.targetoptions.get('parallel')}": kernel
        for name, value in vars(module).items()
        for kernel in (value if isinstance(value, Loop) else [value])
        if isinstance(kernel, Dispatcher) and kernel.py_func.__module__ == module.__name__
    }


def reached(kernels):
    """Return the kernels that were run. A cached kernel contains those it calls, which are not loaded."""
    run = {kernel for kernel in kernels if kernel.overloads}
    called = list(run)
    while called:
        function = called.pop().py_func
        more = {function.__globals__.get(name) for name in function.__code__.co_names} & set(kernels) - run
        run |= more
        called += more
    return run


def modules_of(package):
    return [
        importlib.import_module(found.name) for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    ]


def report(*modules, whole=True):
    """Print four lines: number of kernels, kernels not reached, kernels compiled, number of cached kernels.

    If the modules are only a part of a layer (not *whole*), the program need not reach all kernels.
    """
    kernels = {name: kernel for module in modules for name, kernel in kernels_of(module).items()}
    run = reached(kernels.values()) if whole else set(kernels.values())
    print(len(kernels))
    print(sorted(name for name, kernel in kernels.items() if kernel not in run))
    print(sorted(name for name, kernel in kernels.items() if kernel.stats.cache_misses))
    print(len([kernel for kernel in kernels.values() if kernel.stats.cache_hits]))


def second_process_agrees(program, folder, *, cache, kernels):
    """Run a program that prints results and a `report` twice, with the tests' cache or with an empty one; compare."""
    environment = {"REVERSI_CACHE_DIR": folder} if cache == "empty" else {}
    first, second = (output_of(program, **environment) for _ in range(2))
    assert int(first[1]) > kernels
    assert first[2] == "[]", "kernels that this test does not reach"
    if cache == "empty":
        assert first[3] != "[]"
    assert second[0] == first[0]
    assert second[3] == "[]", "kernels that were compiled again"
    assert int(second[4]) > 5  # kernels that Python calls


#: Nodes that threads may visit after a stop: they check for it at every node except in the last plies.
AT_ONCE = 20_000


def in_background(ask):
    """Run *ask* in a daemon thread and return the future of its result."""
    future = Future()

    def run():
        try:
            future.set_result(ask())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def stopped_after(nodes, records, stop, ask):
    """Run *ask* and call *stop* after *nodes* nodes of *records*; return the result and the nodes visited after the stop.

    The call waits for nodes, because a stop before the search begins has no effect.
    """
    for thread_states in records:
        thread_states["nodes"] = 0  # nodes of an earlier search
    result_future = in_background(ask)
    wait_until(lambda: visited(records) >= nodes or result_future.done(), pause=0.001)
    stop()
    then = visited(records)
    return result_future.result(PATIENCE), visited(records) - then


def visited(records):
    return sum(int(thread_states["nodes"].sum()) for thread_states in records)
