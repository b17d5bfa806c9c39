"""What the first and the second start cost, beside what the libraries alone cost, in turn in one run."""

from __future__ import annotations

import tempfile
from statistics import median

from benchmarks.timing import seconds_of

#: What people wait for: an analysis, and the first move of an engine for other programs; and what every program over the same
#: libraries pays. By name: Python's arguments, and the input.
STARTS = {
    "libraries": (["-c", "import numba, gymnasium"], ""),
    "analyse": (["-m", "play", "analyse", "start", "--depth", "6"], ""),
    "gtp": (["-m", "play", "gtp", "network:depth=6"], "genmove black\nquit\n"),
}


def second_starts(repeats: int = 7) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of each start with compiled kernels, medians of runs in turn; and how many times those of the libraries that is."""
    for start in STARTS.values():
        seconds_of(*start)  # whatever is not compiled is compiled now
    runs = [{name: seconds_of(*start) for name, start in STARTS.items()} for _ in range(repeats)]
    seconds = {name: median(run[name] for run in runs) for name in STARTS}
    return seconds, {name: seconds[name] / seconds["libraries"] for name in ("analyse", "gtp")}


def first_start() -> float:
    """Seconds of an analysis with an empty kernel cache: the network's engine is compiled, on all cores."""
    with tempfile.TemporaryDirectory() as cache:
        return seconds_of(*STARTS["analyse"], REVERSI_CACHE_DIR=cache)
