"""What an experiment has to say: words, tables and figures, for the terminal and for a Markdown document."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from train.charts.figures import Figure


@dataclass(frozen=True)
class Table:
    """Cells as text; the first column is on the left, the others, if they are numbers, on the right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """The table with its title above it."""
        rule = ["---", *(["---:"] * (len(self.columns) - 1))]
        lines = [_row(self.columns), f"|{'|'.join(rule)}|", *(_row(row) for row in self.rows)]
        return "\n".join([f"*{self.title}*", "", *lines])


Block = str | Table | Figure
#: Characters of a line of text.
LINE = 150
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
    def tables(self) -> list[Table]:
        """Its tables."""
        return [block for block in self.blocks if isinstance(block, Table)]

    @property
    def figures(self) -> list[Figure]:
        """Its figures."""
        return [block for block in self.blocks if isinstance(block, Figure)]

    def markdown(self, folder: str = "images/experiments") -> str:
        """The section of a document whose figures are in *folder*."""
        parts = [f"## {self.title}", "\n".join(["```bash", *self.commands, "```"])]
        for block in self.blocks:
            if isinstance(block, Figure):
                parts.append(block.markdown(folder))
            else:
                parts.append(block.markdown() if isinstance(block, Table) else _wrapped(block))
        return "\n\n".join(parts)


def _wrapped(words: str) -> str:
    """Paragraphs and list items in lines of a length to read."""
    lines = words.split("\n")
    return "\n".join(
        textwrap.fill(
            line, LINE, subsequent_indent="  " * line.startswith("- "), break_long_words=False, break_on_hyphens=False
        )
        for line in lines
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_MINUS.sub('−', cell).replace('|', chr(92) + '|') for cell in cells)} |"


def game_name(found: Mapping[str, Any]) -> str:
    """The game that something was measured in."""
    return f"{found['size']}×{found['size']} {found['variant']}"


def with_error(value: float, error: float | None, digits: int = 3) -> str:
    """A figure with its standard error."""
    if error is None or error != error:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def count(value: float) -> str:
    """A large number with thousands apart."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
