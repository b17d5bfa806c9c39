"""Speed of the rules core: perft, random play, and what the first and the second start cost."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from time import perf_counter

from play.bench.timing import rate
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
        environment = os.environ | {"REVERSI_CACHE_DIR": cache}
        seconds = []
        for _ in range(2):
            began = perf_counter()
            subprocess.run([sys.executable, "-P", "-c", START_UP], check=True, env=environment)
            seconds.append(perf_counter() - began)
    return seconds[0], seconds[1]
