"""Curves of a training by self-play: how far from the truth its values are, and how strong its policy is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reversi_env import Rules
from train.charts import COLOURS, GREY, Figure, labels, panels
from train.rl.figures import training_figure

OVER = "generations, then pieces of the last steps"


def draw(figures: Sequence[Mapping[str, Any]], rules: Rules, folder: Path) -> None:
    """What was measured over the generations, ``errors.svg`` and ``curve.svg``, where there is matplotlib."""
    game = f"{rules.size}x{rules.size} {rules.variant}"
    rows = [{**row, "steps": number} for number, row in enumerate(figures, 1)]
    if judged := [row for row in rows if any(name.startswith("bias_") for name in row)]:
        errors_figure(judged, game).save(folder / "errors.svg", optional=True)
    if placed := [row for row in rows if "points" in row]:
        rungs = [{name: {"points": points} for name, points in row["points"].items()} for row in placed]
        curve = [{**row, "rungs": of} for row, of in zip(placed, rungs, strict=True)]
        training_figure(curve, game, OVER).save(folder / "curve.svg", optional=True)


def errors_figure(rows: Sequence[Mapping[str, Any]], game: str) -> Figure:
    """Mean absolute error and bias in discs on solved positions, a line for each number of empty squares."""
    kinds = {"error": f"{game}: mean error, discs", "bias": "bias for the side to move, discs"}

    def draw(figure: Any) -> None:
        for axis, kind in zip(panels(figure, 2, tuple(kinds.values())), kinds, strict=True):
            names = [name for name in rows[0] if name.startswith(f"{kind}_")]
            numbers, ends = [row["steps"] for row in rows], []
            for name, colour in zip(names, COLOURS, strict=False):
                values = [row[name] for row in rows]
                axis.plot(numbers, values, color=colour)
                ends.append((numbers[-1], values[-1], name.removeprefix(f"{kind}_"), colour))
            axis.axhline(0, color=GREY, linewidth=0.6, linestyle=":")
            axis.set_xlabel(OVER)
            labels(axis, ends)

    return Figure("errors", f"{game}: error and bias by empty squares.", draw)
