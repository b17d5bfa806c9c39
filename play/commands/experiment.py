"""`reversi experiment`: statistics of the game, and what five reports measured, measured again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.commands.options import Json, Seed, Size, VariantName, VariantOption, checked_plot, made_folder, print_json
from play.commands.options import number_range as _range
from play.commands.studies_folder import find_studies
from play.commands.usage import Application

if TYPE_CHECKING:
    from train.charts import Section
    from train.progress import Progress

app = Application(help="Repeat the experiments of docs/experiments.md.", no_args_is_help=True)

#: Cells of at most so many characters are figures, and stay on one line.
LONGEST_FIGURE = 20

Plot = Annotated[Path | None, typer.Option("--plot", help="Write the figure: FILE.svg, .png or .pdf.")]
Evaluator = Annotated[str, typer.Option("--evaluator", help="Evaluator at the leaves.")]


@app.callback()
def experiment() -> None:
    """Repeat the experiments of docs/experiments.md, in a clone of the project."""
    find_studies()


# --- statistics of the game -----------------------------------------------------------------------


@app.command("breadth")
def breadth(
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    games: Annotated[int, typer.Option("--games", "-g", help="Random games, a multiple of 100.")] = 20_000,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Legal moves by round in random play, and the report's figure."""
    from studies import breadth as module

    options = module.BreadthOptions(size, variant.value, games, seed)
    show(module.measure, module.section, options, as_json, plot)


@app.command("nodes")
def nodes(
    size: Size = 8,
    variant: VariantName = VariantOption.reversed,
    evaluator: Evaluator = "sixteen-weight",
    games: Annotated[int, typer.Option("--games", "-g", help="Random games that positions are taken from.")] = 16,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Nodes of alpha-beta at depth 2, 4, 6 and 8 by round, against b^d and b^(d/2)."""
    from studies import nodes as module

    options = module.NodesOptions(size, variant.value, evaluator, games, seed)
    show(module.measure, module.section, options, as_json, plot)


@app.command("winner")
def winner(
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    player: Annotated[str, typer.Option("--player", help="random, or an evaluator.")] = "random",
    depth: Annotated[int, typer.Option("--depth", "-d", help="Plies that it searches.", min=1, max=8)] = 1,
    games: Annotated[int, typer.Option("--games", "-g", help="Games.")] = 20_000,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Corners, safe discs, moves and discs of the later winner by round."""
    from studies import winner as module

    options = module.WinnerOptions(size, variant.value, player, depth, games, seed)
    show(module.measure, module.section, options, as_json, plot)


@app.command("branching")
def branching(
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    evaluator: Evaluator = "six-factor",
    games: Annotated[int, typer.Option("--games", "-g", help="Random games that positions are taken from.")] = 12,
    depth: Annotated[int, typer.Option("--depth", "-d", help="Deepest search, in plies.")] = 8,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Effective branching factor, with each refinement of the search added in turn."""
    from studies import branching as module

    options = module.BranchingOptions(size, variant.value, evaluator, games, depth, seed)
    show(module.measure, module.section, options, as_json, plot)


# --- the reports ----------------------------------------------------------------------------------


@app.command("000")
def report_000(
    size: Size = 8,
    variant: VariantName = VariantOption.reversed,
    games: Annotated[int, typer.Option("--games", "-g", help="Games against each opponent.")] = 100,
    depth: Annotated[int, typer.Option("--depth", "-d", help="Plies searched.", min=1, max=6)] = 3,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Report 000: position-stability by its weight γ, and with its two tables."""
    from studies import report_000 as module

    options = module.GammaOptions(size, variant.value, games, depth, seed)
    show(module.measure, module.section, options, as_json, plot)


@app.command("001")
def report_001(
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    games: Annotated[int, typer.Option("--games", "-g", help="Games of each pair of levels.")] = 200,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Report 001: levels 1 to 4 against each other."""
    from studies import report_001 as module

    show(module.measure, module.section, module.LevelOptions(size, variant.value, games, seed), as_json, plot)


@app.command("002")
def report_002(
    size: Size = 8,
    variant: VariantName = VariantOption.reversed,
    games: Annotated[int, typer.Option("--games", "-g", help="Games for each figure.")] = 1000,
    generations: Annotated[int, typer.Option("--generations", help="Rounds of a tuning.", min=1)] = 30,
    population: Annotated[int, typer.Option("--population", help="Candidates a round.", min=4)] = 24,
    tuning_games: Annotated[int, typer.Option("--tuning-games", help="Games of a candidate.", min=2)] = 500,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Report 002: greedy and greedy-invincible play, with published and with tuned weights."""
    from studies import report_002 as module

    options = module.GreedyOptions(size, variant.value, games, generations, population, tuning_games, seed)
    show(module.measure, module.section, options, as_json, plot)


@app.command("003")
def report_003(
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    games: Annotated[int, typer.Option("--games", "-g", help="Games for each ply and colour.")] = 100,
    deepest: Annotated[int, typer.Option("--deepest", help="Most plies searched.")] = 6,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Report 003: final score by the plies searched, in both colours."""
    from studies import report_003 as module

    show(module.measure, module.section, module.PlyOptions(size, variant.value, games, deepest, seed), as_json, plot)


@app.command("004")
def report_004(
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    games: Annotated[int, typer.Option("--games", "-g", help="Random games that positions are taken from.")] = 4,
    depth: Annotated[int, typer.Option("--depth", "-d", help="Deepest search, in plies.")] = 7,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Report 004: nodes and branching factor without and with alpha-beta."""
    from studies import report_004 as module

    show(module.measure, module.section, module.PruningOptions(size, variant.value, games, depth, seed), as_json, plot)


@app.command("tuning")
def tuning(
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    positions: Annotated[int, typer.Option("--positions", "-p", help="Exact scores.", min=10)] = 4000,
    empties: Annotated[str, typer.Option("--empties", "-e", help="Empty squares, as in 8-12.")] = "8-12",
    generations: Annotated[int, typer.Option("--generations", help="Rounds of a tuning.", min=1)] = 40,
    population: Annotated[int, typer.Option("--population", help="Candidates a round.", min=4)] = 16,
    seeds: Annotated[int, typer.Option("--seeds", help="Runs of each optimiser.", min=1)] = 2,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Every report's weights tuned against exact scores."""
    from studies import label_tuning as module

    budget = (generations, population, seeds, seed)
    options = module.LabelTuningOptions(size, variant.value, positions, _range(empties), *budget)
    show(module.measure, module.section, options, as_json, plot)


# --- all of them ----------------------------------------------------------------------------------


@app.command("all")
def everything(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for experiments.md and its figures.")] = Path("docs"),
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Only this one; may be repeated. The page then has nothing else.")
    ] = None,
) -> None:
    """Run everything and write docs/experiments.md with its figures.

    Takes about ten minutes on two cores. Run the same command again to go on
    after Ctrl-C, or after a crash: until the page is written, results are kept
    in ~/.cache/reversi-lab/experiments (or where REVERSI_CACHE_DIR says).
    """
    from play.commands.interruptible import INTERRUPTED, abandonable
    from reversi_env.errors import ReversiError
    from reversi_env.extras import require
    from studies.suite import experiments, run_all

    require("matplotlib")
    known = [one.name for one in experiments()]
    for name in only or ():
        if name not in known:
            raise ReversiError(f"experiment {name!r} is unknown: expected one of {', '.join(known)}")
    made_folder("--out", out)
    try:
        with progress_bar() as progress:
            path = abandonable(lambda: run_all(out, machine=this_machine(), only=only, progress=progress))
    except KeyboardInterrupt:
        print("reversi: interrupted; the same command goes on", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    print(path)


# --- shared with `reversi measure` ----------------------------------------------------------------


def this_machine() -> str:
    """Processor and date: no speed is worth reading without them."""
    from play.bench.machine import cpu_name

    return f"{cpu_name()}, {datetime.now(UTC):%Y-%m-%d}"


def show(
    measure: Callable[..., dict[str, Any]],
    section: Callable[..., Section],
    options: Any,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Measure, then print the result as JSON or as tables, and write the figure if it is asked for."""
    from play.commands.interruptible import INTERRUPTED, abandonable
    from reversi_env.extras import require

    checked_plot(plot, ".svg", ".png", ".pdf")
    require(*(["matplotlib"] if plot is not None else []))  # before anything is measured for it
    try:
        with progress_bar() as progress:
            found = abandonable(lambda: measure(options, progress)) | {"machine": this_machine()}
    except KeyboardInterrupt:
        print("reversi: interrupted", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    told = section([found])
    if plot is not None and told.figures:
        told.figures[0].save(plot)
    if as_json:
        print_json(found)
    else:
        print_section(told)


def print_section(told: Section) -> None:
    """The section for people: its words and tables, without its figures."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable

    from train.charts import Table

    console = Console()
    for block in told.blocks:
        if isinstance(block, str):
            console.print(block, highlight=False, markup=False)
        if isinstance(block, Table):
            console.print(block.title, style="italic", highlight=False, markup=False)
            widths, gap = _layout(block.columns, block.rows, console.width)
            table = RichTable(box=SIMPLE_HEAD, padding=(0, gap - 1, 0, 0), pad_edge=False, show_edge=False)
            for number, (column, width) in enumerate(zip(block.columns, widths, strict=True)):
                table.add_column(column, justify="left" if number == 0 else "right", overflow="fold", width=width)
            for row in block.rows:
                table.add_row(*row)
            # where even that is too wide, the terminal may break lines, but nothing is cut off
            Console(width=max(console.width, sum(widths) + gap * (len(widths) - 1))).print(table)
            console.print()


def _layout(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> tuple[list[int], int]:
    """Widths of the columns and the gap between them, the easiest to read of those that fit into *width*.

    No figure is torn from its error or its unit; pairs of figures may be, if need be, and long texts are.
    """
    for units, gap in (("", 2), ("", 1), ("±%", 2), ("±%", 1)):
        widths = _least_widths(columns, rows, units)
        spare = width - sum(widths) - gap * (len(widths) - 1)
        if spare >= 0:
            break
    for number, column in enumerate(columns):
        wanted = max(map(len, [column, *(row[number] for row in rows)])) - widths[number]
        granted = max(0, min(wanted, spare))
        widths[number] += granted
        spare -= granted
    return widths, gap


def _least_widths(columns: Sequence[str], rows: Sequence[Sequence[str]], units: str) -> list[int]:
    """Characters that the columns need if short cells stay on one line: all of them, or those with one of *units*."""

    def need(number: int, text: str) -> int:
        whole = number > 0 and len(text) <= LONGEST_FIGURE and (not units or any(unit in text for unit in units))
        return len(text) if whole else max(map(len, text.split()), default=0)

    heads = [max(map(len, column.split()), default=0) for column in columns]
    return [max([head, *(need(number, row[number]) for row in rows)]) for number, head in enumerate(heads)]


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar on standard error; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task("", total=None)
        yield lambda doing, done, total: bars.update(task, description=doing, completed=done, total=total)
