"""Options of commands whose work can be spread over processes or machines: ``--ray [ADDRESS]`` and ``--workers``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.cli.usage import Command

if TYPE_CHECKING:
    from train.cluster.executor import Executor

RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Spread over a Ray cluster: HOST:PORT of its head; without it, one that runs here or is started here.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", "-w", help="Processes to spread over, instead of threads of one.", min=1, max=1024),
]
#: What follows --ray and is meant for it; anything else is the next argument.
_ADDRESS = re.compile(r"auto|local|\S*://\S*|\S+:\d+")


class ClusterCommand(Command):
    """A command with an option ``--ray`` whose value may be left out, which typer does not know."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        return super().parse_args(ctx, with_address(args))


def with_address(arguments: list[str]) -> list[str]:
    """The arguments with ``auto`` after a ``--ray`` that no address follows.

    >>> with_address(["out", "--ray", "--count", "5"])
    ['out', '--ray', 'auto', '--count', '5']
    """
    told: list[str] = []
    for place, argument in enumerate(arguments):
        if argument == "--":
            return told + arguments[place:]
        told.append(argument)
        if argument == "--ray" and not _ADDRESS.fullmatch("".join(arguments[place + 1 : place + 2])):
            told.append("auto")
    return told


@contextmanager
def chosen_executor(ray: str | None, workers: int | None) -> Iterator[Executor | None]:
    """Who does the work by these options; None: this process, in the command's own way. Nothing is printed meanwhile."""
    from reversi_env import ReversiError
    from train.cluster.pool import Processes

    if ray is None:
        yield None if workers is None else Processes(workers)
        return
    if workers is not None:
        raise ReversiError(
            f"--workers {workers} with --ray: expected one of them; a cluster's size says how many there are"
        )
    from train.cluster.on_ray import RayCluster

    def tell(words: str) -> None:
        print(f"reversi: {words}", file=sys.stderr)

    # Ray prints pages on standard output when a machine is lost; we say it in a line
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        RayCluster(ray, tell) as cluster,
    ):
        yield cluster
