"""Compilation of all agents on offer by a process at the lowest priority, which ends with the server.

`reversi serve` prints its address when the page's first opponent is compiled; the others may take some minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import product

from play.first_start import start_python
from play.server import catalogue
from reversi_env import Rules
from reversi_env.compiler.kernel import NotCompiled, cached_kernels_only
from search.agents.simple import REPORT_002_EVALUATOR
from search.agents.spec import make_agent

BEGUN = "compiling the remaining opponents in the background; until then their first move may take a minute"
DONE = "all opponents are compiled"
#: Table of an engine that searches nothing, in MiB.
NO_TABLE = 0.001


def offered() -> Iterator[tuple[str, Rules]]:
    """Yield the agents and games on offer, and Double-Alpha's evaluator, which analyses; policies compile nothing."""
    for entry in catalogue.entries():
        if entry.name != "rl":
            names = {"double-alpha": (entry.name, REPORT_002_EVALUATOR), "zero": ("zero:time=1",)}
            agents = names.get(entry.name, (entry.name,))
            yield from ((agent, Rules(*game)) for agent in agents for game in product(entry.sizes, catalogue.VARIANTS))


def compile_all(games: Iterable[tuple[str, Rules]]) -> None:
    """Compile what these agents need for their games and is not in the cache; report it on standard error."""
    has_begun = False
    for agent, rules in games:
        try:
            with cached_kernels_only():
                make_agent(agent, table=NO_TABLE).prepare(rules)
        except NotCompiled:
            if not has_begun:
                print(BEGUN, file=sys.stderr, flush=True)
            has_begun = True
            make_agent(agent, table=NO_TABLE).prepare(rules)
    if has_begun:
        print(DONE, file=sys.stderr, flush=True)


@contextmanager
def compiling() -> Iterator[None]:
    """Compile in another process while this context is open."""
    process = start_python(__name__, stdin=subprocess.PIPE, start_new_session=True)  # Ctrl-C is for the server
    threading.Thread(target=process.wait, daemon=True).start()  # or it would stay as a zombie
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    def end_with_the_server() -> None:
        sys.stdin.read()
        os._exit(0)

    if hasattr(os, "nice"):
        os.nice(19)
    threading.Thread(target=end_with_the_server, daemon=True).start()
    compile_all(offered())


if __name__ == "__main__":
    main()
