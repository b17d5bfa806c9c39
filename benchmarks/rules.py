"""Speed of the rules core (perft, random play), and seconds of the first and of later starts."""

import tempfile
from statistics import median

from benchmarks.timing import rate, seconds_of
from reversi_env import Position, batch


def perft_leaves_per_second(depth: int = 10, repeats: int = 5) -> float:
    """Return perft leaves per second on the 8x8 board, one thread."""
    start = Position.initial()
    return rate(lambda: start.perft(depth), repeats)


def random_plies_per_second(games: int = 100_000, repeats: int = 5, *, parallel: bool = False) -> float:
    """Return plies per second of random 8x8 games, on one thread or on all."""
    return rate(lambda: batch.random_plies(games, parallel=parallel), repeats)


#: Python's arguments and the input of each start: an analysis, an engine's first move, and the imports of both.
STARTS = {
    "libraries": (["-c", "import numba, gymnasium"], ""),
    "analyse": (["-m", "play", "analyse", "start", "--depth", "6"], ""),
    "gtp": (["-m", "play", "gtp", "network:depth=6"], "genmove black\nquit\n"),
}


def second_starts(repeats: int = 7) -> tuple[dict[str, float], dict[str, float]]:
    """Return seconds of each start with compiled kernels, medians of runs in turn, and their ratios to the libraries alone."""
    for start in STARTS.values():
        seconds_of(*start)  # compiles
    runs = [{name: seconds_of(*start) for name, start in STARTS.items()} for _ in range(repeats)]
    seconds = {name: median(run[name] for run in runs) for name in STARTS}
    return seconds, {name: seconds[name] / seconds["libraries"] for name in ("analyse", "gtp")}


def first_start() -> float:
    """Return seconds of an analysis with an empty kernel cache; the engine is compiled on all cores."""
    with tempfile.TemporaryDirectory() as cache:
        return seconds_of(*STARTS["analyse"], REVERSI_CACHE_DIR=cache)
