"""Commands over studies, which are beside the packages in a clone of the project and not installed with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.commands.clone import find_in_clone
from play.commands.frame import ends_at_ctrl_c, print_json, progress_bar
from play.commands.job_options import JobOptions, given
from play.commands.options import Json, checked_plot
from play.commands.usage import Application

if TYPE_CHECKING:
    from train.charts import Section
    from train.options import OptionField

#: Cells of at most so many characters are figures, and stay on one line.
LONGEST_FIGURE = 20

Plot = Annotated[Path | None, typer.Option("--plot", help="Write the figure: FILE.svg, .png or .pdf.")]
Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="EVALUATOR", help="For example [b]network six-factor[/b]; default: the reports'."),
]


class StudyOptions(JobOptions):
    """Options of a study, whose module is found in a clone only."""

    def fields(self) -> list[OptionField]:
        """The fields that are options of the command."""
        find_in_clone("studies")
        return super().fields()

    def run(self, context: typer.Context, plot: Path | None, as_json: bool, **more: Any) -> None:
        """Measure with the options given, and *more*, and show the result."""
        module, _, name = self.place.partition(":")
        study = import_module(module)
        options = getattr(study, name)(**given(context), **more)
        show(study.measure, study.section, options, as_json, plot)


def add_study(app: Application, name: str, place: str, words: str, *, takes_evaluators: bool = False) -> None:
    """Add the command *name* for the study with options at *place* in `studies`; *words* are its help."""
    job = StudyOptions(f"studies.{place}")

    def study(context: typer.Context, plot: Plot = None, as_json: Json = False) -> None:
        job.run(context, plot, as_json)

    def study_of(context: typer.Context, names: Names = None, plot: Plot = None, as_json: Json = False) -> None:
        job.run(context, plot, as_json, names=tuple(names or ()))

    command: Any = study_of if takes_evaluators else study
    command.job_options = job
    app.command(name, help=words)(command)


def this_machine() -> str:
    """Processor and date: no speed is worth reading without them."""
    from play.machine import cpu_name

    return f"{cpu_name()}, {datetime.now(UTC):%Y-%m-%d}"


def show(
    measure: Callable[..., dict[str, Any]],
    section: Callable[..., Section],
    options: Any,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Measure, then print the result as JSON or as tables, and write the figure if it is asked for."""
    from play.commands.interruptible import abandonable

    checked_plot(plot)
    with ends_at_ctrl_c("reversi: interrupted"), progress_bar() as progress:
        found = abandonable(lambda: measure(options, progress)) | {"machine": this_machine()}
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
