"""`reversi review`: every move of a game judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from play.cli.options import (
    GameNumber,
    Json,
    SearchThreads,
    StartSize,
    VariantName,
    checked_plot,
    checked_seconds,
)
from play.cli.output import ends_at_ctrl_c, print_json, progress_bar


def review(
    game: Annotated[str, typer.Argument(help="A file with a game, GGF or moves; or moves such as [b]f5d6c3[/b].")],
    evaluator: Annotated[
        str | None, typer.Option("--evaluator", help="Who judges; default: the strongest for the game.")
    ] = None,
    depth: Annotated[
        int | None, typer.Option("--depth", "-d", help="Plies to search; 8 if no time is given.", min=2, max=60)
    ] = None,
    time: Annotated[float | None, typer.Option("--time", help="Seconds a move.")] = None,
    exact: Annotated[
        int | None, typer.Option("--exact", help="Solve from this many empty squares on; 18 takes seconds.", min=0)
    ] = None,
    number: GameNumber = None,
    threads: SearchThreads = 1,
    size: StartSize = None,
    variant: VariantName = "normal",
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the course of the game: FILE.svg, .png or .pdf.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge every move of a game: what it was worth, what it gave away, what was better.

    Examples: reversi review game.ggf --exact 18 --plot game.svg

              reversi review f5d6c3d3c4f4c5b4

    Values are discs for the side that moved. A move that gives away 2 discs
    is an inaccuracy, 5 a mistake, 10 a blunder (on smaller boards fewer).
    """
    from play.cli.positions import typed_game
    from reversi_env.openings import name_of_positions
    from train.judging.review import analyse

    checked_seconds(time)
    checked_plot(plot)
    played = typed_game(game, variant, size, number)
    record, opening = played.record(), name_of_positions(played.positions)
    with ends_at_ctrl_c("reversi: interrupted"), progress_bar() as show:
        found = analyse(
            record,
            evaluator,
            depth=depth,
            time=time,
            exact=exact,
            threads=threads,
            progress=lambda done, total: show("moves judged", done, total),
        )
    if plot is not None:
        found.plot(plot)
    lost = {colour: found.lost(colour) for colour in ("black", "white")}
    if as_json:
        print_json({"opening": opening, "lost": lost, "moves": found.as_dicts()})
    else:
        if opening:
            print(f"opening: {opening}")
        print(found.table())
        print(f"given away: black {lost['black']:.1f} discs, white {lost['white']:.1f}")
