"""Python processes and threads of tests, and what the kernels of a process took from the cache."""

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
    """Run the text *program*, or a module after ``-m``, with the packages of *folder*; it must end by itself, without an error."""
    code = [] if program == "-m" else ["-c"]
    command = [sys.executable, *code, program, *map(str, arguments)]
    env = os.environ | {"PYTHONPATH": str(folder)} | {name: str(value) for name, value in environment.items()}
    # an empty cache takes minutes to fill
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=4 * PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def output_of(program, *arguments, folder=REPOSITORY, **environment):
    return finished(program, *arguments, folder=folder, **environment).stdout.splitlines()


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


#: Nodes that threads may still visit when they are told to stop at once: they look at every node but the last plies'.
AT_ONCE = 20_000


def in_background(ask):
    """The future of what *ask* returns, in a thread that does not keep the interpreter from ending."""
    future = Future()

    def run():
        try:
            future.set_result(ask())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def stopped_after(nodes, records, stop, ask):
    """What *ask* returns when *stop* is called as soon as the threads of *records* have visited so many *nodes*.

    Also how many nodes they visited after that. A search has begun when it visits nodes: one that is stopped before it begins
    knows nothing of it.
    """
    for thread_states in records:
        thread_states["nodes"] = 0  # of the search before
    asked = in_background(ask)
    wait_until(lambda: visited(records) >= nodes or asked.done(), pause=0.001)
    stop()
    then = visited(records)
    return asked.result(PATIENCE), visited(records) - then


def visited(records):
    return sum(int(thread_states["nodes"].sum()) for thread_states in records)
