"""How far from the truth a teacher is, by empty squares, while it learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from train.charts import COLOURS, GREY, Figure, labels, panels


def errors_figure(rows: Sequence[Mapping[str, Any]], game: str) -> Figure:
    """Mean absolute error and bias in discs on solved positions, a line for each number of empty squares."""
    kinds = {"error": f"{game}: mean error, discs", "bias": "bias for the side to move, discs"}

    def draw(figure: Any) -> None:
        for axis, kind in zip(panels(figure, 2, tuple(kinds.values())), kinds, strict=True):
            names = [name for name in rows[0] if name.startswith(f"{kind}_")]
            numbers, ends = range(1, len(rows) + 1), []
            for name, colour in zip(names, COLOURS, strict=False):
                values = [row[name] for row in rows]
                axis.plot(numbers, values, color=colour)
                ends.append((numbers[-1], values[-1], name.removeprefix(f"{kind}_"), colour))
            axis.axhline(0, color=GREY, linewidth=0.6, linestyle=":")
            axis.set_xlabel("generations, then pieces of the last steps")
            labels(axis, ends)

    return Figure("errors", f"{game}: error and bias by empty squares.", draw)
