"""Compilation of a command's kernels before the command begins, at the first start, on all cores, with a message.

Numba compiles one function at a time in a process. Other processes therefore compile one part each into the shared cache.
If everything is cached, the kernels are only loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import play.cli  # noqa: F401 - not in a thread: two that import a package at once may deadlock
from reversi_env.compiler.kernel import NotCompiled, cached_kernels_only

if TYPE_CHECKING:
    from search.agents.base import Agent

#: The text of the progress bar, or of the line without a terminal.
MESSAGE = "reversi: compiling for this CPU, at the first start only …"
_ROOT = Path(__file__).resolve().parents[1]


def _search(evaluator: str) -> None:
    from search.engine.engine import Engine

    Engine(evaluator, megabytes=0.001, preload=False).load_search_kernels()


def _solver(evaluator: str) -> None:
    from search.engine.solver import Solver
    from search.engine.table import TranspositionTable

    # Selective solving uses the midgame search, which is another part.
    Solver(table=TranspositionTable(0.001), evaluator=evaluator or None, selective=False).load_kernels()


def _environment(_: str) -> None:
    from reversi_env.envs.vector import ReversiVectorEnv

    envs = ReversiVectorEnv(2)
    envs.reset(seed=1)
    envs.step(envs.sample_legal())


def _endgames(_: str) -> None:
    import tempfile

    from train.evaluation.endgames import noisy_endgames
    from train.evaluation.options import EndgameOptions

    with tempfile.TemporaryDirectory() as folder:
        noisy_endgames(EndgameOptions(size=4, empties=(2, 3), positions=1), Path(folder), threads=1)


PARTS: dict[str, Callable[[str], None]] = {
    "search": _search,
    "solver": _solver,
    "environment": _environment,
    "endgames": _endgames,
}


def parts_of(agents: Iterable[Agent]) -> list[str]:
    """Return the parts that these agents need, as texts ``PART:EVALUATOR``."""
    from search.agents.searching import SearchAgent
    from search.agents.simple import ExactAgent

    parts: list[str] = []
    for agent in agents:
        if isinstance(agent, SearchAgent):
            name, orders = agent.evaluator.name, agent.evaluator.orders_endgames
            parts += [f"search:{name}", f"solver:{name if orders else ''}"]
        elif isinstance(agent, ExactAgent):
            parts.append("solver:")
    return list(dict.fromkeys(parts))


def compile_ahead(parts: Iterable[str], load: Callable[[], object], show: Callable[..., None] | None = None) -> None:
    """Call *load*, which needs the kernels of these *parts*; if they are not cached, compile them in processes first.

    *show* receives the progress in place of a bar on standard error. Failures of these processes are ignored: kernels that are
    still missing are compiled when they are used.
    """
    with suppress(NotCompiled), cached_kernels_only():
        load()
        return
    from play.cli.output import progress_bar

    todo = list(parts)
    with progress_bar(lines=True) if show is None else nullcontext(show) as show:
        show(MESSAGE, 0, len(todo))
        for done, _ in enumerate(_compile_apart(todo) if len(todo) > 1 else (), 1):
            show(MESSAGE, done, len(todo))
    load()


def prepare_parts(names: Sequence[str]) -> None:
    """Compile and load these parts, which take no evaluator."""
    compile_ahead(names, lambda: [PARTS[name]("") for name in names])


def _compile_apart(parts: Iterable[str]) -> Iterator[str]:
    """Compile each of the *parts* in a separate process; yield each when it is done."""
    none = subprocess.DEVNULL
    running = {part: start_python("play.first_start", part, stdin=none, stderr=none) for part in parts}
    try:
        for part, process in running.items():
            process.wait()
            yield part
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def start_python(module: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a process that runs a module of the project, whatever is in the working folder. Its output is discarded by default."""
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-P", "-m", module, *arguments]
    return subprocess.Popen(command, env=environment, **{"stdout": subprocess.DEVNULL, **options})


def main() -> None:
    """Compile the part that the command line names."""
    name, _, evaluator = sys.argv[1].partition(":")
    PARTS[name](evaluator)


if __name__ == "__main__":
    main()
