"""`reversi measure`: how good evaluators are, by two of report 002's performance models, and players in solved endgames."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from play.commands.job_options import given, options_from
from play.commands.options import Json, complete_spec
from play.commands.studies import Plot, add_study, show
from play.commands.usage import Application

app = Application(no_args_is_help=True)


@app.callback()
def measure() -> None:
    """Measure evaluators and players: errors over whole trees, depth of search, regret."""


add_study(
    app,
    "structural",
    "structural:StructuralOptions",
    """Performance model 3: errors against exact scores, summed over the tree below a position.

    Example: reversi measure structural network six-factor
    """,
    takes_evaluators=True,
)
add_study(
    app,
    "depth",
    "search_depth:DepthOptions",
    """Performance model 4: depth and nodes at equal time, and plies of search gained over a baseline.

    Example: reversi measure depth network --baseline six-factor
    """,
    takes_evaluators=True,
)


@app.command("regret")
@options_from("train.judging.endgames:EndgameOptions")
def regret(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="AGENT", help="Players by spec; default: a ladder of them.", autocompletion=complete_spec
        ),
    ] = None,
    curve: Annotated[bool, typer.Option("--curve", help="The players are checkpoints of one training.")] = False,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write all figures to FILE.csv.")] = None,
    cache: Annotated[Path | None, typer.Option("--cache", help="Folder where solved positions are kept.")] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", "-t", help="For solving; default: all.", min=1, max=1024)
    ] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Discs that players give away in solved endgames, and how often they find a best move.

    Example: reversi measure regret greedy six-factor:depth=1 network:depth=1 -n 6

    All players are shown the same positions, those of noisy games; the solver
    knows what every move is worth. No opponent and no luck is in the result.
    Players that solve endgames themselves give nothing away from there on.

    With --curve the players are points of one training, and the plot is drawn
    over the last number of their names: rl:run/step-100000.zip and so on.
    """
    from play.commands.options import checked_parent, made_folder
    from train.judging import regret_curves as module
    from train.judging.endgames import EndgameOptions

    checked_parent("--csv", csv)
    if cache is not None:
        made_folder("--cache", cache)
    options = module.RegretMeasure(tuple(names or ()), EndgameOptions(**given(context)), curve)

    def measured(options: Any, progress: Any) -> dict[str, Any]:
        found = module.measure(options, progress, cache=cache, threads=threads)
        if csv is not None:
            csv.write_text(module.to_csv(found), "utf-8")
        return found

    show(measured, module.section, options, as_json, plot)
