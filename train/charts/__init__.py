"""Everything that draws, in one look.

figures     charts, and the panels, lines and labels of others, by matplotlib (extra ``plots``)
learning    curves of `reversi rl` and of expert iteration
"""

from train.charts.figures import (
    BLUE,
    COLOURS,
    GREY,
    ORANGE,
    SKY,
    VERMILION,
    Figure,
    interval_chart,
    label,
    labels,
    line_chart,
    panels,
    points,
)

__all__ = [
    "BLUE",
    "COLOURS",
    "GREY",
    "ORANGE",
    "SKY",
    "VERMILION",
    "Figure",
    "interval_chart",
    "label",
    "labels",
    "line_chart",
    "panels",
    "points",
]
