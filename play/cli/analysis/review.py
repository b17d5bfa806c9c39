"""`reversi review`: an analysis of every move of a game."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from play.cli.options import (
    GameNumber,
    Json,
    SearchThreads,
    StartSize,
    VariantName,
    checked_parent,
    checked_plot,
    integer,
    number,
    text,
)
from play.cli.output import exit_on_interrupt, print_json, progress_bar
from play.cli.positions import PositionOptions, read_game


def review(
    game: Annotated[
        str,
        Parameter(
            help="A file with a game (GGF, moves or WTHOR), moves such as f5d6c3, GGF text, or - for standard input."
        ),
    ],
    /,
    *,
    evaluator: Annotated[
        str | None,
        text("Network or formula that gives the values (default: the strongest for the game).", metavar="SPEC"),
    ] = None,
    depth: Annotated[
        int | None, integer("Search depth in plies (default: 8 if no time is given).", "--depth", low=2, high=60)
    ] = None,
    time: Annotated[float | None, number("Seconds per move.", low=0.001, high=1e6)] = None,
    exact: Annotated[
        int | None,
        integer(
            "Solve positions with at most this many empty squares (default: the engine decides, by --depth or --time)."
        ),
    ] = None,
    game_number: GameNumber = None,
    threads: SearchThreads = 1,
    size: StartSize = None,
    variant: VariantName = "normal",
    plot: Annotated[
        Path | None, text("Plot the value over the game to FILE.svg, .png or .pdf.", metavar="FILE")
    ] = None,
    picture: Annotated[
        Path | None, text("Write the game to FILE.gif, or its last position to FILE.png or .svg.", metavar="FILE")
    ] = None,
    as_json: Json = False,
) -> None:
    """Analyse every move of a game: its value, the discs it loses and the best move.

    Examples: reversi review game.ggf --exact 18 --plot game.svg

              reversi review f5d6c3d3c4f4c5b4 --picture game.gif

    Values in the table and the plot are in discs for black, whoever moved; in
    JSON for the side that moved. Every position is searched separately. From one
    row of the table to the next the value may therefore change by more than the
    loss that is shown. 2 lost discs are an inaccuracy, 5 a mistake, 10 a blunder
    (on smaller boards fewer). A move that provably turns a win into a draw or
    loss, or a draw into a loss, is a mistake at least.
    """
    from reversi_env.notation.openings import name_of_positions
    from reversi_env.rendering.files import check_picture, save_picture
    from train.evaluation.review import analyse

    checked_plot(plot)
    if picture is not None:
        check_picture(picture)
        checked_parent("--picture", picture)
    played = read_game(game, PositionOptions(None, game_number, None, size, variant))
    record, opening = played.record(), name_of_positions(played.positions)
    with exit_on_interrupt("reversi: interrupted"), progress_bar() as show:
        judged = analyse(
            record,
            evaluator,
            depth=depth,
            time=time,
            exact=exact,
            threads=threads,
            progress=lambda done, total: show("moves analysed", done, total),
        )
    if plot is not None:
        judged.plot(plot)
    if picture is not None:
        save_picture(picture, played.positions, [played.rules.action_from_name(move) for move in played.moves])
    lost = {colour: judged.lost(colour) for colour in ("black", "white")}
    if as_json:
        print_json({"opening": opening, "lost": lost, "moves": judged.as_dicts()})
    else:
        if opening:
            print(f"opening: {opening}")
        print(judged.table())
        print(f"discs lost: black {lost['black']:.1f}, white {lost['white']:.1f}")
