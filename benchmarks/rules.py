"""Speed of the rules core: perft, random play, and what the first and the second start cost."""

from __future__ import annotations

import tempfile
from statistics import median

from benchmarks.timing import rate, seconds_of
from reversi_env import Position, batch

START_UP = "from reversi_env import Position, batch; Position.initial().perft(2); batch.random_plies(1)"


def perft_leaves_per_second(depth: int = 10, repeats: int = 5) -> float:
    """Perft leaves a second on the 8x8 board, one thread."""
    start = Position.initial()
    return rate(lambda: start.perft(depth), repeats)


def random_plies_per_second(games: int = 100_000, repeats: int = 5, *, parallel: bool = False) -> float:
    """Plies a second of whole random 8x8 games, on one thread or on all."""
    return rate(lambda: batch.random_plies(games, parallel=parallel), repeats)


def start_up_seconds() -> tuple[float, float]:
    """Seconds from launching Python to the end of the first perft and playout: with an empty kernel cache, and with a full one."""
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = (seconds_of(["-c", START_UP], REVERSI_CACHE_DIR=cache) for _ in range(2))
    return cold, warm


# --- start-up --------------------------------------------------------------------------------------


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
