"""Figures by matplotlib: small, plain, in colours that everybody can tell apart, and the same bytes every time.

matplotlib is imported only when something is drawn.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reversi_env.extras import extra_libraries
from reversi_env.writing import write_atomically

#: Width of a figure on the page, in inches, and the height of one row of panels.
WIDTH, HEIGHT = 6.8, 2.7
#: Least distance of two labels beside each other, as a share of the axis.
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
    """A drawing with a name that is a file's, and a caption."""

    name: str
    caption: str
    draw: Callable[[Any], None]
    height: float = HEIGHT

    def save(self, path: Path) -> None:
        """Write it as SVG, PNG or PDF, by the name's ending."""
        write_atomically(path, drawn(self.draw, self.height, path.suffix.lower().removeprefix(".")))

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return drawn(self.draw, self.height).decode()

    def markdown(self, folder: str) -> str:
        """The figure as a document in the folder above *folder* shows it."""
        return f"![{self.caption}]({folder}/{self.name}.svg)\n\n*{self.caption}*"


def can_draw() -> bool:
    """Whether there is a library to draw with: a training goes on without, and leaves its numbers in files."""
    return importlib.util.find_spec("matplotlib") is not None


def drawn(draw: Callable[[Any], None], height: float = HEIGHT, kind: str = "svg") -> bytes:
    """What *draw* draws on a new figure, as SVG, PNG or PDF; the same bytes for the same drawing."""
    with extra_libraries():
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(WIDTH, height))
        FigureCanvasAgg(figure)
        draw(figure)
        stream = io.BytesIO()
        undated: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        figure.savefig(stream, format=kind, dpi=150, metadata=undated.get(kind, {}))
    return stream.getvalue()


def panels(figure: Any, count: int, titles: tuple[str, ...] = (), *, share_y: bool = False) -> list[Any]:
    """*count* panels in a row, with their titles."""
    axes = figure.subplots(1, count, sharey=share_y, squeeze=False)[0]
    for axis, title in zip(axes, titles, strict=False):
        axis.set_title(title, loc="left")
    return list(axes)


def label(
    axis: Any, x: float, y: float, text: str, colour: str, *, at: str = "left", shift: tuple[float, float] = (4, 0)
) -> None:
    """Words beside a line, in its colour, instead of a legend; *shift* in points."""
    axis.annotate(
        text, (x, y), xytext=shift, textcoords="offset points", color=colour, ha=at, va="center", fontsize=8.5
    )


def labels(axis: Any, entries: Iterable[tuple[float, float, str, str]], shift: float = 5) -> None:
    """Words beside the ends of several lines, (x, y, text, colour) each, moved apart where they would overlap."""
    low, high = axis.get_ylim()
    gap, last = LABEL_GAP * (high - low), low - (high - low)
    for x, y, text, colour in sorted(entries, key=lambda entry: entry[1]):
        last = max(y, last + gap)
        label(axis, x, last, text, colour, shift=(shift, 0))


def points(axis: Any, xs: Any, ys: Any, errors: Any, colour: str, *, marker: str = "o", line: str = "-") -> None:
    """A line through points with their errors."""
    axis.errorbar(xs, ys, yerr=errors, color=colour, marker=marker, linestyle=line, elinewidth=0.8, markeredgewidth=0)
