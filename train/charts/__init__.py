"""Everything that draws, in one look.

plain       line charts and intervals as SVG or PNG, drawn by hand: what `reversi exam`, `train` and `tournament` write needs no
plotting library
figures     panels, lines and labels of matplotlib (extra ``plots``): studies, regret, learning curves
sections    words, tables and figures, for the terminal and for a Markdown document
"""

from train.charts.figures import Figure, can_draw, label, labels, panels, points
from train.charts.plain import BLUE, COLOURS, GREY, ORANGE, SKY, VERMILION, IntervalChart, LineChart
from train.charts.sections import Section, Table, count, game_name, with_error

__all__ = [
    "BLUE",
    "COLOURS",
    "GREY",
    "ORANGE",
    "SKY",
    "VERMILION",
    "Figure",
    "IntervalChart",
    "LineChart",
    "Section",
    "Table",
    "can_draw",
    "count",
    "game_name",
    "label",
    "labels",
    "panels",
    "points",
    "with_error",
]
