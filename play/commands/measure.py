"""`reversi measure`: how good evaluators are, by two of report 002's performance models."""

from __future__ import annotations

from typing import Annotated

import typer

from play.commands.experiment import Plot, show
from play.commands.label import _range
from play.commands.options import Json, Seed, Size, VariantName, VariantOption

app = typer.Typer(help="Measure evaluators: errors over whole trees, and depth of search.", no_args_is_help=True)

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[EVALUATOR]...", help="For example [b]network six-factor[/b]; default: the reports'."),
]


@app.callback()
def measure() -> None:
    """Measure evaluators: errors over whole trees, and depth of search."""


@app.command("structural")
def structural(
    names: Names = None,
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    positions: Annotated[int, typer.Option("--positions", help="Trees.", min=2)] = 300,
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
    from train.measures import structural as module

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
    positions: Annotated[int, typer.Option("--positions", help="Positions searched.", min=2)] = 12,
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
    from train.measures import search_depth as module

    options = module.DepthOptions(
        *(tuple(names or ()), size, variant.value, positions, seconds, to_depth, baseline, play_depth, games, seed)
    )
    show(module.measure, module.section, options, as_json, plot)
