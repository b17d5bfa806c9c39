"""All charts, by matplotlib (extra ``plots``), which is imported when a chart is drawn; equal charts give equal bytes."""

import io
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from reversi_env.errors import extra_libraries, is_installed
from reversi_env.storage.atomic import write_atomically

#: The colours of Okabe and Ito, which colour-blind readers can distinguish, in the order of use.
BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, GREY = (
    *("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#7F7F7F"),
)
COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)
BLACK, GRID = "#222222", "#bbbbbb"
#: Maximum characters of a name in an interval chart, and the height of a row in inches.
MAX_NAME, ROW = 32, 0.24
#: Width of a figure on the page, in inches, and the height of one row of panels.
WIDTH, HEIGHT = 6.8, 2.7
#: Minimum distance of two labels, as a share of the axis.
LABEL_GAP = 0.07

_STYLE: dict[Any, Any] = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 9.5,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "errorbar.capsize": 0,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "reversi-lab",
    "svg.fonttype": "path",
}


@dataclass(frozen=True)
class Figure:
    """A chart with the name of its file and a caption."""

    name: str
    caption: str
    draw: Callable[[Any], None]
    height: float = HEIGHT

    def save(self, path: Path, *, optional: bool = False) -> None:
        """Write the chart as SVG, PNG or PDF, by the suffix; if *optional*, only where matplotlib is installed."""
        if not optional or is_installed("matplotlib"):
            write_atomically(path, rendered(self.draw, self.height, path.suffix.lower().removeprefix(".")))

    def _repr_svg_(self) -> str:
        return rendered(self.draw, self.height).decode()


def rendered(draw: Callable[[Any], None], height: float = HEIGHT, kind: str = "svg") -> bytes:
    """Return the chart that *draw* draws on a figure as SVG, PNG or PDF; equal charts give equal bytes."""
    with extra_libraries():
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name may be in any script
        figure = Figure(figsize=(WIDTH, height))
        FigureCanvasAgg(figure)
        draw(figure)
        stream = io.BytesIO()
        metadata: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        figure.savefig(stream, format=kind, dpi=150, metadata=metadata.get(kind, {}))  # no date
    return stream.getvalue()


def panels(figure: Any, count: int, titles: tuple[str, ...] = (), *, share_y: bool = False) -> list[Any]:
    axes = figure.subplots(1, count, sharey=share_y, squeeze=False)[0]
    for axis, title in zip(axes, titles, strict=False):
        axis.set_title(title, loc="left")
    return list(axes)


def labels(axis: Any, entries: Iterable[tuple[float, float, str, str]]) -> None:
    """Write texts beside the ends of lines, (x, y, text, colour) each, and move them apart where they would overlap."""
    low, high = axis.get_ylim()
    gap, last = LABEL_GAP * (high - low), low - (high - low)
    for x, y, text, colour in sorted(entries, key=lambda entry: entry[1]):
        last = max(y, last + gap)
        axis.annotate(
            text, (x, last), xytext=(5, 0), textcoords="offset points", color=colour, va="center", fontsize=8.5
        )


def points(axis: Any, xs: Any, ys: Any, errors: Any, colour: str) -> None:
    """Draw a line through points with error bars."""
    axis.errorbar(xs, ys, yerr=errors, color=colour, marker="o", elinewidth=0.8, markeredgewidth=0)


def line_chart(
    title: str, x_label: str, y_label: str, xs: Sequence[float], series: Mapping[str, Sequence[float]]
) -> Figure:
    """Return a chart of named series over common integers, from 0 upwards; the first is thicker."""

    def draw(figure: Any) -> None:
        (axis,) = panels(figure, 1, (title,))
        colours = (*COLOURS, GREY, BLACK)
        for number, (name, ys) in enumerate(series.items()):
            style: dict[str, Any] = {"color": colours[number % len(colours)], "linewidth": 1.2 if number else 2.4}
            axis.plot(xs, ys, label=_escaped(name), **style)
        axis.set(xlabel=x_label, ylabel=y_label, ylim=(0, None))
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(axis="y", color=GRID, linewidth=0.4)
        figure.legend(loc="outside right upper")

    return Figure("lines", title, draw, height=3.4)


def interval_chart(title: str, x_label: str, rows: Sequence[tuple[str, float, float, float]]) -> Figure:
    """Return a chart with a row per (name, lower end, value, upper end): a dot in its interval, and its value.

    An interval with an infinite end has an arrow there, at the value, and neither dot nor text.
    """

    def draw(figure: Any) -> None:
        (axis,) = panels(figure, 1, (title,))
        names = [name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…" for name, *_ in rows]
        axis.set_yticks(range(len(rows)), labels=[_escaped(name) for name in names])
        for place, (_, low, value, high) in enumerate(rows):
            is_open = not (isfinite(low) and isfinite(high))
            for end, arrow in ((low, "<"), (high, ">")):
                marker = "|" if isfinite(end) else arrow
                axis.plot(
                    [value, end if isfinite(end) else value], [place, place], color=BLUE, marker=marker, markevery=[1]
                )
            axis.plot(value, place, color=VERMILION, marker="" if is_open else "o")
            text = "" if is_open else f"{value:+.0f}"
            axis.text(1.02, place, text, transform=axis.get_yaxis_transform(), va="center")
        axis.axvline(0, color=GRID, linewidth=0.8)
        axis.grid(axis="x", color=GRID, linewidth=0.4)
        axis.set(xlabel=x_label, ylim=(len(rows) - 0.5, -0.5))

    return Figure("intervals", title, draw, height=1 + ROW * len(rows))


def _escaped(name: str) -> str:
    """Escape the dollar signs of a name, with which matplotlib would begin a formula."""
    return name.replace("$", r"\$")
