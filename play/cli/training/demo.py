"""`reversi demo`: solve, learn, search and play on 6x6, in a few minutes from nothing."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.cli.options import Json, checked_even, made_folder
from play.cli.output import ends_at_ctrl_c, picked, print_json, print_table, progress_bar

if TYPE_CHECKING:
    from train.fitting.demo import DemoResult


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for labels, weights and the plot.")] = Path("demo"),
    scale: Annotated[float, typer.Option("--scale", help="Multiplies the numbers of positions.", min=0.001)] = 1.0,
    games: Annotated[int, typer.Option("--games", "-g", help="Games against each heuristic; even.", min=2)] = 40,
    as_json: Json = False,
) -> None:
    """Learn to play 6x6 Reversi from nothing, and beat the published heuristics.

    Endgames are solved exactly, a network learns them, a search carries them
    back to earlier positions, the network learns those; then alpha-beta with
    the network plays alpha-beta with each published heuristic, equally deep.
    About two minutes on two cores. Interrupted, it goes on where it was.
    """
    from reversi_env.extras import require

    require("torch", "pyarrow", "matplotlib")
    checked_even("--games", games)
    made_folder("--out", out)
    with ends_at_ctrl_c("reversi: interrupted; the same command goes on"), progress_bar(lines=True) as show:
        from train.fitting.demo import chart, run

        result = run(out, scale=scale, games=games, progress=show)
    plot = out / "errors.svg"
    chart(result).save(plot)
    if as_json:
        print_json(as_dict(result, plot))
    else:
        _print_tables(result, plot)


def as_dict(result: DemoResult, plot: Path) -> dict[str, Any]:
    """The result under the command line's stable keys."""
    return {
        "weights": str(result.weights),
        "plot": str(plot),
        "errors": result.errors,
        "matches": [
            {
                "opponent": opponent,
                **picked(played, "games", "wins", "draws", "losses", "score"),
                "interval": played.interval(),
                "discs_per_game": played.discs_per_game,
            }
            for opponent, played in result.matches.items()
        ],
    }


def _print_tables(result: DemoResult, plot: Path) -> None:
    empties = sorted(next(iter(result.errors.values())))
    errors = ((name, *(f"{found[e]:.1f}" for e in empties)) for name, found in result.errors.items())
    title = "Mean error of the static value, discs, by empty squares"
    print_table(("evaluator", *map(str, empties)), errors, title=title, gap=1)
    rows = []
    for opponent, played in sorted(result.matches.items(), key=lambda match: -match[1].score):
        low, high = played.interval()
        figures = (f"{played.score:.1%}", f"{low:.0%} and {high:.0%}", f"{played.discs_per_game:+.1f}")
        rows.append((opponent, played.wins, played.draws, played.losses, *figures))
    headings = ("opponent", "won", "drawn", "lost", "score", "95 % between", "discs")
    print_table(headings, rows, title="The network against each heuristic, both four plies deep", gap=1)
    print(f"weights: {result.weights}   plot: {plot}")
    agent = shlex.quote(f"network:depth=6,weights={result.weights}")
    print(f"play on: reversi match {agent} six-factor:depth=6 --size 6")
