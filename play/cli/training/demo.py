"""`reversi demo`: training from scratch on 6x6 in a few minutes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from play.cli.options import Json, integer, make_folder, number, text
from play.cli.output import RESUME, attributes, exit_on_interrupt, print_json, print_table, progress_bar

if TYPE_CHECKING:
    from train.fitting.demo import DemoResult


def demo(
    *,
    out: Annotated[Path, text("Folder for labels, weights and the plot.", "--out", metavar="DIR")] = Path("demo"),
    scale: Annotated[float, number("Factor on the number of positions.", low=0.001)] = 1.0,
    games: Annotated[int, integer("Games against each heuristic (even).", "--games", low=2, even=True)] = 40,
    as_json: Json = False,
) -> None:
    """Train a 6x6 network from scratch and compare it with the published heuristics.

    Endgames are solved exactly, and a network is fitted to their scores. Searches
    with this network then score earlier positions, and the network is fitted to
    these scores, too. Then alpha-beta with the network plays alpha-beta with each
    published heuristic, to the same depth. About two minutes on two cores. An
    interrupted run resumes where it stopped.
    """
    from reversi_env.errors import require

    require("torch", "pyarrow", "matplotlib")
    make_folder("--out", out)
    with exit_on_interrupt(f"reversi: interrupted; {RESUME}"), progress_bar(lines=True) as show:
        from train.fitting.demo import chart, run

        result = run(out, scale=scale, games=games, progress=show)
    plot = out / "errors.svg"
    chart(result).save(plot)
    if as_json:
        print_json(as_dict(result, plot))
    else:
        _print_tables(result, plot)


def as_dict(result: DemoResult, plot: Path) -> dict[str, Any]:
    """Return the result under the stable keys of the JSON."""
    return {
        "weights": str(result.weights),
        "plot": str(plot),
        "errors": result.errors,
        "matches": [
            {
                "opponent": opponent,
                **attributes(played, "games", "wins", "draws", "losses", "score"),
                "interval": played.interval(),
                "discs_per_game": played.discs_per_game,
            }
            for opponent, played in result.matches.items()
        ],
    }


def _print_tables(result: DemoResult, plot: Path) -> None:
    empties = sorted(next(iter(result.errors.values())))
    errors = ((name, *(f"{by_empties[e]:.1f}" for e in empties)) for name, by_empties in result.errors.items())
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
    print(f"next: reversi match {agent} six-factor:depth=6 --size 6")
