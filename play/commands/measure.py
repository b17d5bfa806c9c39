"""`reversi measure`: how good evaluators are, by two of report 002's performance models, and players in solved endgames."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from play.commands.experiment import Plot, show
from play.commands.options import Json, Seed, Size, VariantName, VariantOption
from play.commands.options import number_range as _range
from play.commands.specs import complete_spec
from play.commands.studies_folder import find_studies
from play.commands.usage import Application

app = Application(
    help="Measure evaluators and players: errors over whole trees, depth of search, regret.", no_args_is_help=True
)

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="EVALUATOR", help="For example [b]network six-factor[/b]; default: the reports'."),
]


@app.callback()
def measure() -> None:
    """Measure evaluators and players: errors over whole trees, depth of search, regret."""


@app.command("structural")
def structural(
    names: Names = None,
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    positions: Annotated[int, typer.Option("--positions", "-p", help="Trees.", min=2)] = 300,
    empties: Annotated[str, typer.Option("--empties", "-e", help="Empty squares at the roots, as in 8-10.")] = "8-10",
    plies: Annotated[int, typer.Option("--plies", help="Plies below a root.", min=1, max=3)] = 2,
    as_is: Annotated[bool, typer.Option("--as-is", help="Do not scale formulas to fit best.")] = False,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Performance model 3: errors against exact scores, summed over the tree below a position.

    Example: reversi measure structural network six-factor
    """
    find_studies()
    from studies import structural as module

    chosen = tuple(names or ())
    options = module.StructuralOptions(
        chosen, size, variant.value, positions, _range(empties), plies, scaled=not as_is, seed=seed
    )
    show(module.measure, module.section, options, as_json, plot)


@app.command("depth")
def depth(
    names: Names = None,
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    positions: Annotated[int, typer.Option("--positions", "-p", help="Positions searched.", min=2)] = 12,
    seconds: Annotated[float, typer.Option("--seconds", help="For each of them.", min=0.01)] = 0.1,
    to_depth: Annotated[int, typer.Option("--depth", "-d", help="Plies that nodes are counted to.", min=1)] = 8,
    baseline: Annotated[str, typer.Option("--baseline", "-b", help="Evaluator played against.")] = "cell-utility",
    play_depth: Annotated[int, typer.Option("--play-depth", help="Plies searched in games.")] = 2,
    games: Annotated[int, typer.Option("--games", "-g", help="Games for each handicap.")] = 80,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Performance model 4: depth and nodes at equal time, and plies of search gained over a baseline.

    Example: reversi measure depth network --baseline six-factor
    """
    find_studies()
    from studies import search_depth as module

    options = module.DepthOptions(
        *(tuple(names or ()), size, variant.value, positions, seconds, to_depth, baseline, play_depth, games, seed)
    )
    show(module.measure, module.section, options, as_json, plot)


@app.command("regret")
def regret(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="AGENT", help="Players by spec; default: a ladder of them.", autocompletion=complete_spec
        ),
    ] = None,
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    positions: Annotated[int, typer.Option("--positions", "-p", help="For each number of empties.", min=1)] = 200,
    empties: Annotated[
        str | None, typer.Option("--empties", "-e", help="Empty squares, as in 2-14, which is the default.")
    ] = None,
    curve: Annotated[bool, typer.Option("--curve", help="The players are checkpoints of one training.")] = False,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write all figures to FILE.csv.")] = None,
    cache: Annotated[Path | None, typer.Option("--cache", help="Folder where solved positions are kept.")] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", "-t", help="For solving; default: all.", min=1, max=1024)
    ] = None,
    seed: Seed = 0,
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
    chosen = EndgameOptions(size, variant.value, positions, _range(empties) if empties else None, seed)
    options = module.RegretMeasure(tuple(names or ()), chosen, curve)

    def measured(options: Any, progress: Any) -> dict[str, Any]:
        found = module.measure(options, progress, cache=cache, threads=threads)
        if csv is not None:
            csv.write_text(module.to_csv(found), "utf-8")
        return found

    show(measured, module.section, options, as_json, plot)
