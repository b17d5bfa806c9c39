"""What the first and the second start cost, beside what the libraries alone cost, in turn in one run."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from time import perf_counter

#: What every program over these libraries pays.
LIBRARIES = [sys.executable, "-P", "-c", "import numba, gymnasium"]
#: What people wait for: an analysis, and the first move of an engine for other programs. By name: command line and input.
STARTS = {
    "analyse": (["analyse", "start", "--depth", "6"], ""),
    "gtp": (["gtp", "network:depth=6"], "genmove black\nquit\n"),
}


def second_starts(repeats: int = 7) -> dict[str, list[float]]:
    """Seconds of each start with compiled kernels, and of the libraries, in turn."""
    for name in STARTS:
        _seconds(name, {})  # whatever is not compiled is compiled now
    taken: dict[str, list[float]] = {"libraries": [], **{name: [] for name in STARTS}}
    for _ in range(repeats):
        for name, seconds in taken.items():
            seconds.append(_seconds(name, {}))
    return taken


def first_start() -> float:
    """Seconds of an analysis with an empty kernel cache: the network's engine is compiled, on all cores."""
    with tempfile.TemporaryDirectory() as cache:
        return _seconds("analyse", {"REVERSI_CACHE_DIR": cache})


def ratios(taken: Mapping[str, list[float]]) -> dict[str, float]:
    """Each start's time over that of the libraries, both the medians."""
    libraries = statistics.median(taken["libraries"])
    return {name: statistics.median(taken[name]) / libraries for name in STARTS}


def _seconds(name: str, changes: dict[str, str]) -> float:
    """Seconds from the launch of a start to its end. Python may keep its own compiled files, as it does by default."""
    arguments, given = STARTS.get(name, ([], ""))
    command = [sys.executable, "-P", "-m", "play", *arguments] if arguments else LIBRARIES
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | changes
    began = perf_counter()
    subprocess.run(command, input=given, text=True, env=environment, check=True, capture_output=True)
    return perf_counter() - began
