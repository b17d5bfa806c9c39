"""Compilation of all agents on offer by a process at the lowest priority, which ends with the server.

`reversi serve` answers at once: the page shows the progress and offers the agents that are compiled. Every line of the process
reports the share that is done and what is missing: the rules, which everything needs, and agents by size, as ``human:8``.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import product
from math import exp
from time import perf_counter
from typing import IO

from play.cli.output import progress_bar
from play.first_start import MESSAGE, compile_ahead, parts_of, start_python
from play.server import catalogue
from play.server.workers.worker import load_rules
from reversi_env import Rules
from reversi_env.compiler.kernel import NotCompiled, cached_kernels_only
from search.agents.spec import make_agent

DONE = "all opponents are compiled"
#: Name of the rules' kernels in reports.
RULES = "rules"
#: Agents that are compiled first: those that need the rules alone, then the page's first one, which has the network's kernels.
FIRST = ("random", "greedy", "network", "human")
#: Table size of an engine that does not search, in MiB.
NO_TABLE = 0.001
#: Usual time to compile an agent, by which the share is estimated, and the time between two reports.
USUAL_SECONDS, REPORT_SECONDS = 40.0, 0.5

#: Called with the share that is done and the names that are missing.
Report = Callable[[float, list[str]], None]


def offered() -> Iterator[tuple[str, Rules]]:
    """Yield the agents and games on offer; policies compile nothing."""
    for entry in sorted(catalogue.entries(), key=lambda entry: (*FIRST, entry.name).index(entry.name)):
        if entry.name != "rl":
            agent = "zero:time=1" if entry.name == "zero" else entry.name
            games = product(sorted(entry.sizes, reverse=True), catalogue.VARIANTS)
            yield from ((agent, Rules(*game)) for game in games)


def is_cached(load: Callable[[], object]) -> bool:
    """Return whether *load* compiles nothing; if so, it has been called."""
    with suppress(NotCompiled), cached_kernels_only():
        load()
        return True
    return False


def compile_all(games: Iterable[tuple[str, Rules]], report: Report) -> None:
    """Compile the missing kernels of these agents for their games, with a progress bar on standard error."""
    units: dict[str, list[tuple[str, Rules]]] = {RULES: []}
    for agent, rules in games:
        units.setdefault(f"{agent.partition(':')[0]}:{rules.size}", []).append((agent, rules))
    missing = [name for name, unit in units.items() if not is_cached(partial(_load, unit))]
    with _reporting(missing, report):
        for name in [*missing]:
            load_rules()
            for agent, rules in units[name]:
                parts = parts_of([make_agent(agent, table=NO_TABLE)])
                compile_ahead(parts, partial(_load, [(agent, rules)]), show=lambda *_: None)
            missing.remove(name)


def _load(unit: Iterable[tuple[str, Rules]]) -> None:
    load_rules()
    for agent, rules in unit:
        make_agent(agent, table=NO_TABLE).prepare(rules)


@contextmanager
def _reporting(missing: list[str], report: Report) -> Iterator[None]:
    """Report the progress in this context, within which *missing* becomes empty."""
    total, is_over = len(missing), threading.Event()

    def follow() -> None:
        left, began = total, perf_counter()
        with progress_bar(lines=True) as show:
            show(MESSAGE, 0, 100)
            while not is_over.wait(REPORT_SECONDS):
                if len(missing) < left:
                    left, began = len(missing), perf_counter()
                share = (total - left + 1 - exp((began - perf_counter()) / USUAL_SECONDS)) / total
                show(MESSAGE, int(100 * share), 100)
                report(share, missing)
        print(DONE, file=sys.stderr, flush=True)

    if missing:
        report(0.0, missing)
        follower = threading.Thread(target=follow)
        follower.start()
        try:
            yield
        finally:
            is_over.set()
            follower.join()
    else:
        yield
    report(1.0, missing)


@contextmanager
def compiling() -> Iterator[IO[bytes]]:
    """Compile in another process while this context is open; yield the lines that it reports."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = start_python(__name__, **pipes, start_new_session=True)  # Ctrl-C is for the server
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.kill()
        process.wait()


def main() -> None:
    def end_with_the_server() -> None:
        sys.stdin.read()
        os._exit(0)

    def report(share: float, missing: list[str]) -> None:
        print(f"{share:.3f}", *missing, flush=True)

    if hasattr(os, "nice"):
        os.nice(19)
    threading.Thread(target=end_with_the_server, daemon=True).start()
    compile_all(offered(), report)


if __name__ == "__main__":
    main()
