"""The learning curve of a training: points against each rung of the ladder, and Elo."""

from __future__ import annotations

from typing import Any

from reversi_env import Rules
from train.charts import COLOURS
from train.style import drawn, labels, panels


def curve_svg(evaluations: list[dict[str, Any]], rules: Rules, algorithm: str) -> bytes:
    """The chart of `Training.evaluations`, as SVG."""
    steps = [row["steps"] / 1e6 for row in evaluations]

    def draw(figure: Any) -> None:
        game = f"{rules.size}×{rules.size} {rules.variant}, {algorithm.upper()}"
        scores, elo = panels(figure, 2, (f"{game}: points a game", "Elo above random, 95 % interval"))
        for axis in (scores, elo):
            axis.set_xlabel("steps, millions")
        scores.set_ylim(0, 1.02)
        ends = []
        for colour, name in zip(COLOURS, evaluations[-1]["rungs"], strict=False):
            points = [row["rungs"][name]["points"] for row in evaluations]
            scores.plot(steps, points, color=colour)
            ends.append((steps[-1], points[-1], name, colour))
        labels(scores, ends)
        elo.plot(steps, [row["elo"] for row in evaluations], color=COLOURS[1])
        low, high = ([row[key] for row in evaluations] for key in ("elo_low", "elo_high"))
        elo.fill_between(steps, low, high, color=COLOURS[1], alpha=0.2, linewidth=0)

    return drawn(draw)
