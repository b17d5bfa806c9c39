"""Rates (the best of several runs after a warm-up run), and measurements in other processes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from time import perf_counter
from types import MappingProxyType
from typing import Any


def rate(work: Callable[[], int], repeats: int) -> float:
    """Return the best of *repeats* runs in units per second: on a shared machine the fastest run is the least disturbed."""
    return best_rates({"": work}, repeats)[""]


def best_rates(works: Mapping[str, Callable[[], int]], repeats: int) -> dict[str, float]:
    """Return the best rate of each work after a warm-up run. The works run in turn, under the same load."""
    for work in works.values():
        work()
    rates = dict.fromkeys(works, 0.0)
    for _ in range(repeats):
        for name, work in works.items():
            began = perf_counter()
            units = work()
            rates[name] = max(rates[name], units / (perf_counter() - began))
    return rates


def median_seconds(work: Callable[[], object], rounds: int, clock: Callable[[], float] = perf_counter) -> float:
    """Return the median seconds of *rounds* runs after one that compiles."""
    times = []
    for _ in range(rounds + 1):
        began = clock()
        work()
        times.append(clock() - began)
    return median(times[1:])


def seconds_of(command: list[str], stdin: str = "", **changes: str) -> float:
    """Return the seconds from the start of Python with *command* to its end; *changes* are made to its environment.

    Python may write its compiled files, as it does by default.
    """
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | changes
    began = perf_counter()
    subprocess.run(
        [sys.executable, "-P", *command], input=stdin, text=True, env=environment, check=True, capture_output=True
    )
    return perf_counter() - began


def module_process(
    module: str, *arguments: str, stdin: int | None = None, changes: Mapping[str, str] = MappingProxyType({})
) -> subprocess.Popen[str]:
    """Start *module* of this project in another process, with *changes* to the environment; its output is a pipe."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, **changes}
    command, pipe = [sys.executable, "-P", "-m", module, *arguments], subprocess.PIPE
    return subprocess.Popen(
        command, env=environment, stdin=stdin, stdout=pipe, stderr=None if stdin else pipe, text=True
    )


def measured_apart(module: str, *arguments: str, **changes: str) -> Any:
    """Return the JSON that *module* prints last in another process; a RuntimeError if it fails."""
    process = module_process(module, *arguments, changes=changes)
    out, err = process.communicate()
    if process.returncode:
        raise RuntimeError((err.strip().splitlines() or [f"{module}: status {process.returncode}"])[-1])
    return json.loads(out.splitlines()[-1])
