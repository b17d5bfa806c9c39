"""`reversi tune`: better weights for a heuristic, by a genetic algorithm and by CMA-ES."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.commands.clusters import RayAddress, Workers, chosen_executor
from play.commands.options import Json, Seed, Size, VariantName, VariantOption, print_json
from play.commands.options import number_range as _range

if TYPE_CHECKING:
    from train.tuning import Generation, Objective, Tuned


class Aim(StrEnum):
    """What weights are judged by."""

    wins = "wins"
    error = "error"


class Method(StrEnum):
    """Who looks for them."""

    genetic = "genetic"
    cma = "cma"
    both = "both"


def tune(
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help="Evaluator, for example [b]ten-weight[/b].")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the log and the weights.")] = Path("tuned"),
    aim: Annotated[Aim, typer.Option("--aim", help="Win games, or come near exact scores.")] = Aim.wins,
    optimiser: Annotated[
        Method, typer.Option("--optimiser", help="Genetic algorithm, CMA-ES, or one after the other.")
    ] = Method.both,
    generations: Annotated[int, typer.Option("--generations", help="Rounds.", min=1)] = 60,
    population: Annotated[int, typer.Option("--population", help="Candidates a round.", min=4)] = 24,
    vary: Annotated[
        list[str] | None, typer.Option("--vary", help="A weight that varies; may be repeated. Default: the report's.")
    ] = None,
    from_published: Annotated[
        bool, typer.Option("--from-published", help="Begin at the weights there are, not at random ones.")
    ] = False,
    size: Size = 8,
    variant: VariantName = VariantOption.reversed,
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
    threads: Annotated[
        int | None, typer.Option("--threads", "-t", help="Default: one a core.", min=1, max=1024)
    ] = None,
    workers: Workers = None,
    ray: RayAddress = None,
    seed: Seed = 0,
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
    from play.commands.interruptible import INTERRUPTED
    from reversi_env.extras import require
    from train.tuning import LabelError, TuneOptions, WinRate
    from train.tuning import tune as run
    from train.tuning.spreading import spread

    objective: WinRate | LabelError
    if aim is Aim.wins:
        opponents = tuple(panel or ("random",))
        objective = WinRate(size, variant.value, opponents, games, depth, exact, seed=seed, threads=threads)
    else:
        objective = LabelError(size, variant.value, positions, _range(empties), seed, threads=threads)
    methods = [Method.genetic, Method.cma] if optimiser is Method.both else [optimiser]
    require(*("pymoo" if method is Method.genetic else "cma" for method in methods))
    command = " ".join(["reversi", *sys.argv[1:]])
    found: list[tuple[str, Tuned]] = []
    try:
        with chosen_executor(ray, workers) as executor, spread(objective, executor, threads) as judged:
            for method in methods:
                varied = tuple(vary) if vary else None
                options = TuneOptions(formula, varied, method.value, generations, population, seed, from_published)
                with _progress(f"{formula}, {method.value}", generations, aim) as progress:
                    found.append((method.value, run(options, judged, out, command=command, progress=progress)))
    except KeyboardInterrupt:
        print("reversi: interrupted; the same command goes on", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    results = [as_dict(method, tuned, aim) for method, tuned in found]
    if as_json:
        print_json({"formula": formula, "objective": objective.described(), "results": results})
    else:
        _print_table(formula, objective, results, aim)


@contextmanager
def _progress(title: str, generations: int, aim: Aim) -> Iterator[Callable[[Generation], None]]:
    """A bar on standard error with the best figure so far; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(file=sys.stderr)
    shown: dict[str, Any] = {"transient": True, "disable": not console.is_terminal, "redirect_stdout": False}
    with Progress(*columns, console=console, **shown) as progress:
        task = progress.add_task(title, total=generations)

        def show(generation: Generation) -> None:
            best = f"{1 - generation.best:.1%} won" if aim is Aim.wins else f"error {generation.best:.3f}"
            rate = f"{generation.losses.size / max(generation.seconds, 1e-9):.1f} candidates/s"
            progress.update(task, completed=generation.number, description=f"{title}: {best}, {rate}")

        yield show


def as_dict(method: str, tuned: Tuned, aim: Aim) -> dict[str, Any]:
    """One optimiser's result: win rates, or errors in discs, in the last round and on others."""
    figure: Callable[[float], float] = (lambda loss: 1 - loss) if aim is Aim.wins else (lambda loss: loss)
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


def _print_table(formula: str, objective: Objective, results: list[dict[str, Any]], aim: Aim) -> None:
    from rich.console import Console
    from rich.table import Table

    from search import evaluators
    from search.evaluation import file_name

    what = "points a game" if aim is Aim.wins else "mean absolute error, discs"
    rules = objective.rules
    table = Table(title=f"{formula}, {rules.size}x{rules.size} {rules.variant}: {what}", title_justify="left")
    table.add_column("optimiser", no_wrap=True)
    for heading in ("last round", "on others", "published", "candidates", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        figures = [f"{result[key]:.4f}" for key in ("figure", "figure_on_others", "published_on_others")]
        table.add_row(result["optimiser"], *figures, str(result["evaluations"]), f"{result['seconds']:.1f}")
    Console().print(table)
    family = evaluators.get(formula).family
    for result in results:
        Console().print(file_name(family, result["file"]), soft_wrap=True, highlight=False)
