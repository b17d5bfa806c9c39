"""The result of a study as tables and figures, for the terminal and for a Markdown page."""

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import Any

from play.cli.output import print_table
from train.arena.results import Z_95
from train.charts import Figure
from train.jobs.provenance import commit

Row = Mapping[str, Any]
#: Results of `measure`, one per game (board size and variant).
Results = Sequence[Row]
#: What a column shows of a row: a format string with the row's keys, or a function.
Cell = str | Callable[[Row], str]
#: The page that defines the columns.
PAGE = "docs/lab/experiments.md"
#: A hyphen that is a minus sign.
_MINUS = re.compile(r"(?<![\w–-])-(?=\d)")
#: Maximum width of the first column, and of a line of the other headings, in characters.
NAME_WIDTH, HEADING_WIDTH = 26, 8


@dataclass(frozen=True)
class Table:
    """Cells as text; the first column has names, the others numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        rule = ["---", *(["---:"] * (len(self.columns) - 1))]
        lines = [_row(self.columns), f"|{'|'.join(rule)}|", *map(_row, self.rows)]
        return "\n".join([f"*{self.title}*", "", *lines])

    def show(self) -> None:
        """Print the table; numbers are never wrapped, so a line may be longer than the terminal is wide."""
        widths = [max(map(len, cells), default=0) for cells in zip(*self.rows, strict=True)]
        headings = [
            textwrap.fill(name, max(width, HEADING_WIDTH), break_long_words=False)
            for name, width in zip(self.columns, widths, strict=True)
        ]
        widths[0] = min(widths[0], NAME_WIDTH)
        lines = [max(map(len, heading.split("\n"))) for heading in headings]
        needed = sum(map(max, widths, lines)) + 2 * len(widths) + 2
        print(self.title)
        print_table(headings, self.rows, width=needed, gap=1)


Block = Table | Figure


@dataclass(frozen=True)
class Section:
    """The tables and figures of one study, the commands that repeat them, and where and when they were measured."""

    name: str
    title: str
    commands: Sequence[str]
    setting: str
    blocks: Sequence[Block]

    @property
    def figures(self) -> list[Figure]:
        return [block for block in self.blocks if isinstance(block, Figure)]

    def markdown(self, folder: str) -> str:
        """Return the results as Markdown; the figures are in *folder*."""
        parts = ["\n".join(["```bash", *self.commands, "```"]), self.setting]
        parts += [
            block.markdown() if isinstance(block, Table) else f"![{block.caption}]({folder}/{block.name}.svg)"
            for block in self.blocks
        ]
        return "\n\n".join(parts)

    def show(self) -> None:
        print(f"{self.title}\n{self.setting}")
        for block in self.blocks:
            if isinstance(block, Table):
                block.show()
        print(f"±: half the width of a 95 % interval. Columns and conclusions: {PAGE}")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_MINUS.sub('−', cell).replace('|', chr(92) + '|') for cell in cells)} |"


def report(name: str) -> Callable[[Callable[[Results], Iterator[Block]]], Callable[[Results], Section]]:
    """Return a decorator that makes the section of a study from a generator of its blocks, whose docstring is the title."""

    def decorator(blocks_of: Callable[[Results], Iterator[Block]]) -> Callable[[Results], Section]:
        title = (blocks_of.__doc__ or "").rstrip(".")

        @wraps(blocks_of)
        def section(results: Results) -> Section:
            return Section(name, title, [one["command"] for one in results], _setting(results), [*blocks_of(results)])

        return section

    return decorator


def provenance(machine: str) -> dict[str, str | None]:
    """Return the current commit, *machine* and date."""
    return {"commit": commit("studies"), "machine": machine, "date": f"{datetime.now(UTC):%Y-%m-%d}"}


def _setting(results: Results) -> str:
    """Return the machine, date and commit of the runs; if they differ, all of them."""
    runs = dict.fromkeys(
        f"{one['machine']}, {one['date']}, commit {(one['commit'] or 'unknown')[:7]}"
        + " with changes" * str(one["commit"]).endswith("-dirty")
        for one in results
    )
    return f"Measured on {'; and on '.join(runs)}."


def table(title: str, entries: Results, columns: Mapping[str, Cell], first: Sequence[str] = ()) -> Table:
    """Return a table with a row per entry, below the cells of a *first* row if there is one."""
    rows = [
        [cell.format_map(entry) if isinstance(cell, str) else cell(entry) for cell in columns.values()]
        for entry in entries
    ]
    if first:
        rows.insert(0, [*first, *[""] * (len(columns) - len(first))])
    return Table(title, list(columns), rows)


def game_name(result: Row) -> str:
    return f"{result['size']}×{result['size']} {result['variant']}"


def with_error(value: float, standard_error: float | None, digits: int = 3) -> str:
    """Return a value with half the width of its 95 % interval (1.96 standard errors), if there is a standard error.

    A width of 0, from observations that are all equal, says nothing about the error and is not printed.

    >>> with_error(0.5, 0.01, 2), with_error(0.5, 0.001, 2), with_error(0.5, 0.0, 2)
    ('0.50 ± 0.02', '0.50 ± <0.01', '0.50')
    """
    if standard_error is None or not standard_error > 0:
        return f"{value:.{digits}f}"
    width = f"{Z_95 * standard_error:.{digits}f}"
    return f"{value:.{digits}f} ± {width if float(width) else f'<{10**-digits:.{digits}f}'}"


def with_interval(value: float, interval: Sequence[float] | None, digits: int = 3, factor: float = 1) -> str:
    """Return a value and, in brackets, its 95 % interval, if there is one; all are multiplied by *factor*."""
    ends = "" if interval is None else f" ({'–'.join(f'{factor * end:.{digits}f}' for end in interval)})"
    return f"{factor * value:.{digits}f}{ends}"


def error_cell(key: str, digits: int = 3) -> Cell:
    """Return the cell of a value whose standard error has the same key with ``_standard_error``."""
    return lambda row: with_error(row[key], row[f"{key}_standard_error"], digits)


def interval_cell(key: str, digits: int, factor: float = 1) -> Cell:
    """Return the cell of a value whose interval has the same key with ``_interval``."""
    return lambda row: with_interval(row[key], row[f"{key}_interval"], digits, factor)


def count_cell(key: str) -> Cell:
    return lambda row: count(row[key])


def count(value: float) -> str:
    """Return a number as text, with one decimal below 100 and with separated thousands."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
