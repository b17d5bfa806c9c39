"""`reversi bench`: how fast the parts are on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import typer

from play.commands.options import Json, print_json

app = typer.Typer(help="Measure the speed of the parts on this machine.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure the speed of the parts on this machine."""


def report(title: str, result: dict[str, Any], rows: list[tuple[str, str]], as_json: bool) -> None:
    """Print a benchmark's result: JSON, or a table for people with the machine below it."""
    if as_json:
        print_json(result)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    known = ", ".join(f"{name} {version}" for name, version in result["versions"].items() if version)
    Console().print(f"{result['cpu']}; {known}", highlight=False, soft_wrap=True)


def measure(label: str, work: Callable[[], Any]) -> Any:
    """Run one measurement, saying on standard error what is under way."""
    from rich.console import Console

    with Console(file=sys.stderr).status(label):
        return work()


@app.command("rules")
def rules(as_json: Json = False) -> None:
    """Perft leaves, random plies (one thread and all), and the cost of the first and the second start."""
    from play.bench import machine
    from play.bench import rules as speed

    perft = measure("perft 8x8 to depth 10", speed.perft_leaves_per_second)
    plies = measure("random games, one thread", speed.random_plies_per_second)
    plies_all = measure("random games, all threads", lambda: speed.random_plies_per_second(parallel=True))
    cold, warm = measure("starting with an empty and a full kernel cache", speed.start_up_seconds)
    result = {
        "cpu": machine.cpu_name(),
        "versions": machine.versions("numpy", "numba", "llvmlite"),
        "perft_leaves_per_second": perft,
        "random_plies_per_second": plies,
        "random_plies_per_second_all_cores": plies_all,
        "compile_seconds_cold": cold,
        "compile_seconds_warm": warm,
    }
    rows = [
        ("perft 8x8 depth 10, one thread", f"{perft / 1e6:.0f} million leaves/s"),
        ("random play, one thread", f"{plies / 1e6:.1f} million plies/s"),
        ("random play, all threads", f"{plies_all / 1e6:.1f} million plies/s"),
        ("start to first result, cold kernel cache", f"{cold:.2f} s"),
        ("start to first result, warm kernel cache", f"{warm:.2f} s"),
    ]
    report("Rules core", result, rows, as_json)
