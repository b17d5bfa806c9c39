"""How a rate is measured here: warm up once, run several times, keep the best."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter


def rate(work: Callable[[], int], repeats: int) -> float:
    """Best of *repeats* runs in units a second: on a shared machine the fastest run is the least disturbed."""
    return best_rates({"": work}, repeats)[""]


def best_rates(works: Mapping[str, Callable[[], int]], repeats: int) -> dict[str, float]:
    """Best rate of each work, run in turns, so that a change in the machine's speed meets all of them alike."""
    for work in works.values():
        work()
    best = dict.fromkeys(works, 0.0)
    for _ in range(repeats):
        for name, work in works.items():
            began = perf_counter()
            units = work()
            best[name] = max(best[name], units / (perf_counter() - began))
    return best
