"""Learning curves of a training by `reversi train ppo`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

from train.charts import BLUE, COLOURS, Figure, labels, panels


def training_figure(evaluations: Sequence[Mapping[str, Any]], game: str, over: str = "steps, millions") -> Figure:
    """Points against each rung of the ladder, and Elo, over the steps of `Training.evaluations`, or whatever *over* says."""
    steps = [row["steps"] / (1e6 if over == "steps, millions" else 1) for row in evaluations]

    def draw(figure: Any) -> None:
        scores, elo = panels(figure, 2, (f"{game}: points a game", "Elo above random, 95 % interval"))
        for axis in (scores, elo):
            axis.set_xlabel(over)
        scores.set_ylim(0, 1.02)
        ends = []
        for colour, name in zip(COLOURS, evaluations[-1]["rungs"], strict=False):
            points = [row["rungs"][name]["points"] for row in evaluations]
            scores.plot(steps, points, color=colour)
            ends.append((steps[-1], points[-1], name, colour))
        labels(scores, ends)
        # An Elo that is not determined and an open end of its interval are None, and are not drawn.
        values, low, high = (
            [nan if row[key] is None else row[key] for row in evaluations] for key in ("elo", "elo_low", "elo_high")
        )
        elo.plot(steps, values, color=BLUE)
        elo.fill_between(steps, low, high, color=BLUE, alpha=0.2, linewidth=0)

    return Figure("curve", f"{game}: points against the ladder, and Elo.", draw)
