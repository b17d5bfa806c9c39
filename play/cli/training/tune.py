"""`reversi tune`: better weights for a heuristic, by a genetic algorithm and by CMA-ES."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from play.cli.job_options import given, options_from
from play.cli.options import Json, Size, Threads, VariantName, number_range
from play.cli.output import ends_at_ctrl_c, print_json, print_table, progress_bar

if TYPE_CHECKING:
    from train.tuning.objectives import Objective
    from train.tuning.runs import Generation, Tuned


Aim = Literal["wins", "error"]


@options_from("train.tuning.runs:TuneOptions", without=("formula", "optimiser"), named={"varied": "vary"})
def tune(
    context: typer.Context,
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help="Evaluator, for example [b]ten-weight[/b].")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the log and the weights.")] = Path("tuned"),
    aim: Annotated[Aim, typer.Option("--aim", help="Win games, or come near exact scores.")] = "wins",
    optimiser: Annotated[
        Literal["genetic", "cma", "both"],
        typer.Option("--optimiser", help="Genetic algorithm, CMA-ES, or one after the other."),
    ] = "both",
    size: Size = 8,
    variant: VariantName = "reversed",
    panel: Annotated[
        list[str] | None, typer.Option("--panel", help="An opponent: random or an evaluator; may be repeated.")
    ] = None,
    games: Annotated[
        int, typer.Option("--games", "-g", help="Games of a candidate against each opponent.", min=2)
    ] = 1000,
    depth: Annotated[int, typer.Option("--depth", "-d", help="Plies searched for a move.", min=1, max=6)] = 1,
    exact: Annotated[
        int, typer.Option("--exact", help="Last squares that a candidate plays perfectly.", min=0, max=14)
    ] = 0,
    positions: Annotated[int, typer.Option("--positions", "-p", help="Exact scores, for --aim error.", min=10)] = 4000,
    empties: Annotated[str, typer.Option("--empties", "-e", help="Their empty squares, as in 8-12.")] = "8-12",
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Tune the weights of a heuristic and save them for every command.

    Example: reversi tune ten-weight --variant reversed --out tuned

    A candidate is judged by its points against every opponent of the panel,
    each opening from both sides (--aim wins), or by its mean error against
    exact scores (--aim error). The result is measured again on games or
    positions that nothing was chosen by.

    Run the same command again to go on after Ctrl-C, or after a crash. Use the
    weights anywhere: [b]ten-weight:weights=tuned/ten-weight-cma.json[/b].
    """
    from reversi_env.extras import require
    from train.tuning.objectives import LabelError, WinRate
    from train.tuning.runs import TuneOptions
    from train.tuning.runs import tune as run

    chosen = given(context)
    seed = chosen["seed"]
    objective: Objective
    if aim == "wins":
        opponents = tuple(panel or ("random",))
        objective = WinRate(size, variant, opponents, games, depth, exact, seed=seed, threads=threads)
    else:
        objective = LabelError(size, variant, positions, number_range(empties), seed, threads=threads)
    methods = ("genetic", "cma") if optimiser == "both" else (optimiser,)
    require(*("pymoo" if method == "genetic" else "cma" for method in methods))
    command = " ".join(["reversi", *sys.argv[1:]])
    found: list[tuple[str, Tuned]] = []
    going_on = "reversi: interrupted; the same command goes on"
    with ends_at_ctrl_c(going_on), progress_bar() as show:

        def tell(generation: Generation) -> None:
            best = f"{1 - generation.best:.1%} won" if aim == "wins" else f"error {generation.best:.3f}"
            rate = f"{generation.losses.size / max(generation.seconds, 1e-9):.1f} candidates/s"
            show(f"{formula}, {options.optimiser}", generation.number, options.generations, f"{best}, {rate}")

        for method in methods:
            options = TuneOptions(formula, optimiser=method, **chosen)
            found.append((method, run(options, objective, out, command=command, progress=tell)))
    results = [as_dict(method, tuned, aim) for method, tuned in found]
    if as_json:
        print_json({"formula": formula, "objective": objective.described(), "results": results})
    else:
        _print_result(formula, objective, results, aim)


def as_dict(method: str, tuned: Tuned, aim: Aim) -> dict[str, Any]:
    """One optimiser's result: win rates, or errors in discs, in the last round and on others."""
    figure: Callable[[float], float] = (lambda loss: 1 - loss) if aim == "wins" else (lambda loss: loss)
    return {
        "optimiser": method,
        "figure": figure(tuned.loss),
        "figure_on_others": figure(tuned.check),
        "published_on_others": figure(tuned.published_check),
        "evaluations": tuned.evaluations,
        "seconds": tuned.seconds,
        "weights": {name: tuned.evaluator.weights[name] for name in tuned.evaluator.weights},
        "file": str(tuned.file),
    }


def _print_result(formula: str, objective: Objective, results: list[dict[str, Any]], aim: Aim) -> None:
    from search import evaluators
    from search.evaluation import file_name

    what = "points a game" if aim == "wins" else "mean absolute error, discs"
    rules = objective.rules
    rows = []
    for result in results:
        figures = (f"{result[key]:.4f}" for key in ("figure", "figure_on_others", "published_on_others"))
        rows.append((result["optimiser"], *figures, result["evaluations"], f"{result['seconds']:.1f}"))
    headings = ("optimiser", "last round", "on others", "published", "candidates", "seconds")
    print_table(headings, rows, title=f"{formula}, {rules.size}x{rules.size} {rules.variant}: {what}")
    family = evaluators.get_evaluator(formula).family
    for result in results:
        print(file_name(family, result["file"]))
