"""Speed of the rules core: perft, random play, and what the first and the second start cost."""

from __future__ import annotations

import tempfile

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
