"""The report of a study: text, tables and figures, for the terminal and for a Markdown document."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import wraps
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable

from train.arena.results import Z_95
from train.charts import HEIGHT, Figure, panels
from train.jobs.provenance import commit


@dataclass(frozen=True)
class Table:
    """Cells as text; the first column is on the left, the others, if they are numbers, on the right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        rule = ["---", *(["---:"] * (len(self.columns) - 1))]
        lines = [_row(self.columns), f"|{'|'.join(rule)}|", *(_row(row) for row in self.rows)]
        return "\n".join([f"*{self.title}*", "", *lines])


Block = str | Table | Figure
#: Results of `measure`, one for each game.
Results = Sequence[Mapping[str, Any]]
#: Characters of a line of text.
LINE = 150
#: Cells of at most so many characters are figures, and stay on one line of a terminal.
LONGEST_FIGURE = 20
#: What is printed below a table with errors.
PLUS_MINUS = "±: half the width of a 95 % interval"
#: A hyphen before a number that stands for itself.
_MINUS = re.compile(r"(?<![\w–-])-(?=\d)")


@dataclass(frozen=True)
class Section:
    """One experiment: a title, the commands that repeat it, and what there is to say and to show."""

    name: str
    title: str
    commands: Sequence[str]
    blocks: Sequence[Block]

    @property
    def figures(self) -> list[Figure]:
        return [block for block in self.blocks if isinstance(block, Figure)]

    def markdown(self, folder: str = "experiments") -> str:
        """The section of a document whose figures are in *folder*."""
        parts = [f"## {self.title}", "\n".join(["```bash", *self.commands, "```"])]
        for block in self.blocks:
            if isinstance(block, Figure):
                parts.append(f"![{block.caption}]({folder}/{block.name}.svg)\n\n*{block.caption}*")
            else:
                parts.append(block.markdown() if isinstance(block, Table) else _wrapped(block))
        return "\n\n".join(parts)


def report(name: str) -> Callable[[Callable[[Results], Iterator[Block]]], Callable[[Results], Section]]:
    """Return a decorator that makes the section of a study from a generator of its blocks, whose docstring is the title."""

    def decorator(blocks_of: Callable[[Results], Iterator[Block]]) -> Callable[[Results], Section]:
        title = (blocks_of.__doc__ or "").rstrip(".")

        @wraps(blocks_of)
        def section(results: Results) -> Section:
            return Section(name, title, [one["command"] for one in results], [*blocks_of(results)])

        return section

    return decorator


def panel_by_game(
    name: str,
    caption: str,
    results: Results,
    draw_panel: Callable[[Any, Mapping[str, Any]], None],
    *,
    y_label: str = "",
    height: float = HEIGHT,
) -> Figure:
    """Return a figure with a panel for each game; panels with a *y_label* share their axis."""

    def draw(figure: Any) -> None:
        titles = tuple(game_name(one) for one in results)
        axes = panels(figure, len(results), titles, share_y=bool(y_label))
        if y_label:
            axes[0].set_ylabel(y_label)
        for axis, one in zip(axes, results, strict=True):
            draw_panel(axis, one)

    return Figure(name, caption, draw, height)


def _wrapped(words: str) -> str:
    lines = words.split("\n")
    return "\n".join(
        textwrap.fill(
            line, LINE, subsequent_indent="  " * line.startswith("- "), break_long_words=False, break_on_hyphens=False
        )
        for line in lines
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_MINUS.sub('−', cell).replace('|', chr(92) + '|') for cell in cells)} |"


def game_name(result: Mapping[str, Any]) -> str:
    return f"{result['size']}×{result['size']} {result['variant']}"


def with_error(value: float, standard_error: float | None, digits: int = 3) -> str:
    """Return a figure with its 95 % interval, 1.96 of its standard errors on either side; alone if there is none."""
    return plus_minus(value, None if standard_error is None else Z_95 * standard_error, digits)


def plus_minus(value: float, within: float | None, digits: int = 3) -> str:
    """Return a figure and half the width of its 95 % interval; the figure alone if there is none.

    A width of 0, from observations that are all equal, says nothing about the error and is not printed.

    >>> plus_minus(0.5, 0.02, 2), plus_minus(0.5, 0.002, 2), plus_minus(0.5, 0.0, 2)
    ('0.50 ± 0.02', '0.50 ± <0.01', '0.50')
    """
    figure = f"{value:.{digits}f}"
    if within is None or not within > 0:
        return figure
    width = f"{within:.{digits}f}"
    return f"{figure} ± {width if float(width) else f'<{10**-digits:.{digits}f}'}"


def with_interval(value: float, interval: Sequence[float] | None, digits: int = 3, factor: float = 1) -> str:
    """Return a figure and, in brackets, its 95 % interval, all times *factor*; alone if there is none."""
    ends = "" if interval is None else f" ({'–'.join(f'{factor * end:.{digits}f}' for end in interval)})"
    return f"{factor * value:.{digits}f}{ends}"


def count(value: float) -> str:
    """A large number with thousands apart."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def provenance(machine: str) -> dict[str, str | None]:
    """Commit, machine and date of what was measured just now."""
    return {"commit": commit("studies"), "machine": machine, "date": f"{datetime.now(UTC):%Y-%m-%d}"}


def with_provenance(section: Section, results: Sequence[Mapping[str, Any]]) -> Section:
    """The section with the commit, machine and date of the runs that it shows; those that differ are all named."""
    runs = dict.fromkeys(
        f"{one['machine']}, {one['date']}, commit {(one['commit'] or 'unknown')[:7]}"
        + " with changes" * str(one["commit"]).endswith("-dirty")
        for one in results
    )
    return replace(section, blocks=[f"Measured on {'; and on '.join(runs)}.", *section.blocks])


# --- on a terminal ------------------------------------------------------------------------------------


def print_section(section: Section) -> None:
    """The section on a terminal: its words and tables, without its figures."""
    console = Console()
    for block in section.blocks:
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
            if any("±" in cell for row in block.rows for cell in row):
                console.print(PLUS_MINUS, highlight=False)
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
