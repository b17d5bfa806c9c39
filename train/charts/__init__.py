"""Everything that draws, in one look.

figures     charts, and the panels, lines and labels of others, by matplotlib (extra ``plots``)
sections    words, tables and figures, for the terminal and for a Markdown document
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
from train.charts.sections import Section, Table, count, game_name, with_error

__all__ = [
    "BLUE",
    "COLOURS",
    "GREY",
    "ORANGE",
    "SKY",
    "VERMILION",
    "Figure",
    "Section",
    "Table",
    "count",
    "game_name",
    "interval_chart",
    "label",
    "labels",
    "line_chart",
    "panels",
    "points",
    "with_error",
]
