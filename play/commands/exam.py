"""`reversi exam`: static values and one-ply moves of the network and the heuristics against exact scores."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from play.commands.frame import print_json
from play.commands.options import Json, Seed, VariantName, VariantOption, checked_plot, made_folder

if TYPE_CHECKING:
    from train.judging.exam import Exam, Mark


def exam(
    weights: Annotated[str | None, typer.Option("--weights", help="Weight file instead of the package's.")] = None,
    wthor: Annotated[
        str | None, typer.Option("--wthor", help="Folder with WTHOR files; default: $REVERSI_DATA.")
    ] = None,
    positions: Annotated[int, typer.Option("--positions", "-p", help="Up to 14 empties; fewer above.", min=2)] = 1000,
    empties: Annotated[list[int] | None, typer.Option("--empties", "-e", help="Only these; may be repeated.")] = None,
    variant: VariantName = VariantOption.normal,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write the errors as a chart: FILE.svg or .png.")] = None,
    cache: Annotated[Path | None, typer.Option("--cache", help="Folder where exact scores are kept.")] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", "-t", help="For solving; default: all cores.", min=1, max=1024)
    ] = None,
    annotate: Annotated[
        Path | None, typer.Option("--annotate", help="Folder for a copy of the weights with the results in its record.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Examine the network and the published heuristics on positions of real games.

    Example: reversi exam --wthor data/wthor --plot errors.svg

    For 10 to 20 empty squares: the mean absolute error of the static value
    against exact scores, and the discs that the best move one ply ahead gives
    away. Heuristics are first scaled to fit best. Exact scores are kept, so
    that only the first exam takes minutes; Ctrl-C loses nothing solved.
    """
    from models.network import NetworkEvaluator
    from play.commands.interruptible import INTERRUPTED
    from reversi_env import Rules
    from search import evaluators
    from train.judging.endgames import wthor_files
    from train.judging.exam import EMPTIES, examine, recorded_papers

    checked_plot(plot, ".svg", ".png")
    if cache is not None:
        made_folder("--cache", cache)
    if annotate is not None:
        made_folder("--annotate", annotate)
    rules, network = Rules(8, variant.value), NetworkEvaluator(None if weights is None else str(weights))
    try:
        with _progress() as progress:
            papers = recorded_papers(
                wthor_files(wthor),
                rules,
                positions=positions,
                empties=empties or EMPTIES,
                seed=seed,
                folder=cache,
                threads=threads,
                progress=progress,
            )
            result = examine((network.name, *evaluators.published()), rules, papers)
    except KeyboardInterrupt:
        print("reversi: interrupted; what was solved is kept for the next time", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    if plot is not None:
        _save_plot(result, plot)
    if annotate is not None:
        _annotate(result, network.file(rules), annotate)
    if as_json:
        print_json(result.as_dict())
    else:
        _print_tables(result)


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on standard error for what is being solved; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("solving, {task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task("", total=None)
        yield lambda doing, done, total: bars.update(task, description=doing, completed=done, total=total)


def _print_tables(result: Exam) -> None:
    """One table of errors and one of regrets for people."""
    titles: list[tuple[str, Callable[[Mark], str]]] = [
        ("mean absolute error of the static value, in discs", lambda mark: f"{mark.error:.2f}"),
        ("discs that the best move one ply ahead gives away", lambda mark: f"{mark.regret:.2f}"),
    ]
    for number, (title, cell) in enumerate(titles):
        _print_table(result, f"{result.size}x{result.size} {result.variant}: {title}", cell, zero=number == 0)


def _print_table(result: Exam, title: str, cell: Callable[[Mark], str], *, zero: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("empties", overflow="fold")
    for paper in result.papers:
        table.add_column(str(paper.empties), justify="right", no_wrap=True)
    for name in result.names():
        table.add_row(name, *(cell(result.mark(name, paper.empties)) for paper in result.papers))
    if zero:
        table.add_row("always 0", *(f"{paper.mean_score:.2f}" for paper in result.papers), end_section=True)
    table.add_row("positions", *(str(paper.positions) for paper in result.papers))
    Console().print(table)


def _annotate(result: Exam, weights: Path, folder: Path) -> None:
    """Write the weights again into *folder*, with the whole exam in their record, and say where."""
    from models import cards

    facts = result.as_dict()
    for mark in facts["marks"]:
        if mark["evaluator"] == result.names()[0]:
            mark["evaluator"] = "network"  # and not the place where the file happened to lie
    print(f"reversi: {cards.annotate(weights, folder, exam=facts)}", file=sys.stderr)


def _save_plot(result: Exam, path: Path) -> None:
    from train.charts import LineChart

    xs = [paper.empties for paper in result.papers]
    series = {name: [result.mark(name, x).error for x in xs] for name in result.names()}
    title = "Mean absolute error of the static value on positions of tournament games"
    LineChart(title, "empty squares", "discs", xs, series).save(path)
