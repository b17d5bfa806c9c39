"""`reversi rl exam`: a trained policy alone, by its value and by a search over it, beside the evaluator `network`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from play.commands.options import Json, Seed, print_json

#: Columns that the table needs.
WIDTH = 96


def exam(
    policy: Annotated[
        str, typer.Argument(metavar="FILE", help="A policy: policy.zip of a training, or a safetensors file.")
    ],
    games: Annotated[int, typer.Option("--games", "-g", help="Against each rung; even.", min=2)] = 400,
    depth: Annotated[int, typer.Option("--depth", "-d", help="Plies of the search.", min=1, max=4)] = 2,
    cache: Annotated[Path | None, typer.Option("--cache", help="Folder where solved positions are kept.")] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", "-t", help="Default: one a core.", min=1, max=1024)
    ] = None,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """A policy with and without search, beside the network evaluator.

    Example: reversi rl exam runs/first/policy.zip

    Points against every rung of the ladder, Elo above random, and what is
    given away in solved endgames: the policy's best moves, the moves after
    which its value is best, alpha-beta over that value, and the same searches
    with the evaluator [b]network[/b].
    """
    import torch

    from play.commands.train import _meters
    from reversi_env.errors import ReversiError
    from train.rl.expert import examine

    if games % 2:
        raise ReversiError(f"--games {games}: expected an even number, since every opening is played from both sides")
    count = threads or os.cpu_count() or 1
    torch.set_num_threads(count)
    with _meters() as meter:
        table = examine(
            *(Path(policy),),
            games=games,
            depth=depth,
            seed=seed,
            threads=count,
            cache=cache,
            progress=lambda player, done, total: meter("examining", done, total, player),
        )
    if as_json:
        print_json(table)
    else:
        show_exam(table)


def show_exam(table: dict[str, Any]) -> None:
    """The table for people; where it is wider than the terminal, that may break lines, but nothing is cut off."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    shown = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("points, %", no_wrap=True)
    names = list(next(iter(table["players"].values()))["rungs"])
    headings = [name.replace("-", "-\n").replace(":", ":\n") for name in names]
    for heading in (*headings, "Elo", "discs\ngiven\naway", "best\nmoves,\n%"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for player, entry in table["players"].items():
        points = (f"{100 * entry['rungs'][name]['points']:.1f}" for name in names)
        rest = (f"{entry['elo']:.0f}", f"{entry['regret']:.2f}", f"{100 * entry['optimal']:.1f}")
        shown.add_row(player, *points, *rest)
    Console(width=max(Console().width, WIDTH)).print(shown)
    where = f"{table['size']}x{table['size']} {table['variant']}, {table['policy']}"
    print(f"{where}: {table['games']} games against each, {table['positions']} solved endgames")
