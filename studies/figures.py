"""Figures as data: panels with series of values, drawn in one style."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from train import charts
from train.charts import HEIGHT, Figure

DOTS: dict[str, Any] = {"linestyle": "none"}


@dataclass(frozen=True)
class Series:
    """Values over *xs*, with half the widths of their 95 % intervals, or a list of lower and one of upper widths.

    *style* has options of matplotlib's ``errorbar``.
    """

    label: str
    xs: Sequence[float]
    ys: Sequence[float]
    errors: Any = None
    style: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Panel:
    """Series with the options of matplotlib's ``Axes.set``; *guides* are dashed lines at a value, by their label.

    With *rows*, names from the bottom up, the ``xs`` of the series are values, and their ``ys`` numbers of rows.
    """

    title: str
    series: Sequence[Series]
    axis: Mapping[str, Any]
    guides: Mapping[str, float] = field(default_factory=dict)
    rows: Sequence[str] = ()

    def draw(self, axis: Any) -> None:
        for one, colour in zip(self.series, (*charts.COLOURS, charts.GREY, charts.BLACK) * 2, strict=False):
            look = {"color": colour, "marker": "o", "elinewidth": 0.8, "markeredgewidth": 0, **one.style}
            axis.errorbar(one.xs, one.ys, one.errors, label=one.label, **look)
        for label, value in self.guides.items():
            axis.axhline(value, color=charts.GREY, linewidth=0.8, linestyle="--", label=label)
        if self.rows:
            axis.set_yticks(range(len(self.rows)), self.rows)
            axis.tick_params(axis="y", length=0)
        axis.set(**self.axis)


def figure(
    name: str, caption: str, panels: Sequence[Panel], height: float = HEIGHT, *, share_y: bool = False
) -> Figure:
    """Return a figure of panels side by side; if their legends are equal, one is drawn below them."""

    def draw(canvas: Any) -> None:
        axes = charts.panels(canvas, len(panels), tuple(panel.title for panel in panels), share_y=share_y)
        for axis, panel in zip(axes, panels, strict=True):
            panel.draw(axis)
        legends = [axis.get_legend_handles_labels() for axis in axes]
        if len(axes) > 1 and all(labels == legends[0][1] for _, labels in legends):
            canvas.legend(*legends[0], loc="outside lower center", ncols=4)
        else:
            for axis, (_, labels) in zip(axes, legends, strict=True):
                if labels:
                    axis.legend(loc="best", handlelength=1.2, labelspacing=0.25)

    return Figure(name, caption, draw, height)
