"""How a rate is measured here: warm up once, run several times, keep the best; in turns, apart, and on a machine that is shared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from types import MappingProxyType
from typing import Any

#: Wants a whole core for as long as its parent lives.
_BUSY = """
import os
parent = os.getppid()
print(flush=True)
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


def rate(work: Callable[[], int], repeats: int) -> float:
    """Best of *repeats* runs in units a second: on a shared machine the fastest run is the least disturbed."""
    return best_rates({"": work}, repeats)[""]


def best_rates(works: Mapping[str, Callable[[], int]], repeats: int) -> dict[str, float]:
    """Best rate of each work, run in turns, so that a change in the machine's speed meets all of them alike."""
    return {name: max(rates) for name, rates in rates_in_turns(works, repeats).items()}


def median_rates(works: Mapping[str, Callable[[], int]], repeats: int) -> dict[str, float]:
    """Median rate of each work, run in turns: where others want the cores too, the fastest run is a lucky one."""
    return {name: median(rates) for name, rates in rates_in_turns(works, repeats).items()}


def rates_in_turns(works: Mapping[str, Callable[[], int]], repeats: int) -> dict[str, list[float]]:
    """All rates of each work after a run to warm up."""
    for work in works.values():
        work()
    rates: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            began = perf_counter()
            units = work()
            rates[name].append(units / (perf_counter() - began))
    return rates


@contextmanager
def busy_process() -> Iterator[subprocess.Popen[bytes]]:
    """Another process that wants a core, in a session of its own as somebody else's job would be."""
    with subprocess.Popen([sys.executable, "-c", _BUSY], stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdout
            process.stdout.readline()  # it has begun
            yield process
        finally:
            process.kill()


def seconds_of(command: list[str], stdin: str = "", **changes: str) -> float:
    """Seconds from the launch of *command* to its end; *stdin* is its input, *changes* are made to its environment.

    Python may keep its own compiled files, as it does by default.
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
    """Start *module* of this project in a process of its own, with *changes* to the environment; its output is a pipe."""
    path = os.pathsep.join(
        [str(Path(__file__).parents[1]), *filter(None, sys.path)]
    )  # what is found here is found there
    environment = {**os.environ, "PYTHONPATH": path, **changes}
    command, pipe = [sys.executable, "-P", "-m", module, *arguments], subprocess.PIPE
    return subprocess.Popen(
        command, env=environment, stdin=stdin, stdout=pipe, stderr=None if stdin else pipe, text=True
    )


def measured_apart(module: str, *arguments: str, **changes: str) -> Any:
    """The JSON that *module* prints last in a process of its own, with *changes* to the environment; a RuntimeError if it fails."""
    process = module_process(module, *arguments, changes=changes)
    out, err = process.communicate()
    if process.returncode:
        raise RuntimeError((err.strip().splitlines() or [f"{module}: status {process.returncode}"])[-1])
    return json.loads(out.splitlines()[-1])
