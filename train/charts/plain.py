"""Charts as SVG or PNG, drawn by hand: a plot is no reason to depend on a plotting library."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from reversi_env import ReversiError
from reversi_env.writing import write_atomically

#: Okabe and Ito's colours, which colour-blind readers can tell apart, in the order in which they are used.
BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, GREY = (
    *("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#7F7F7F"),
)
COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)
BLACK, GRID = "#222222", "#bbbbbb"
#: Of all charts, in pixels; and the room around the lines of a line chart and around the rows of an interval chart.
WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 200, 40, 52
ROW, NAMES, VALUES = 26, 220, 76
LONGEST_NAME = 32

Point = tuple[float, float]


class _Svg:
    """Collects elements; places are in pixels from the top left, and words are at the height of their point."""

    def __init__(self, height: int) -> None:
        self.height = height
        self.elements = [f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>']

    def line(self, points: Sequence[Point], colour: str, width: float) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.elements.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>')

    def dot(self, at: Point, radius: float, colour: str) -> None:
        self.elements.append(f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{radius:g}" fill="{colour}"/>')

    def text(self, at: Point, words: str, anchor: str) -> None:
        place = f'x="{at[0]:.1f}" y="{at[1] + 4:.1f}" text-anchor="{anchor}" fill="{BLACK}"'
        self.elements.append(f"<text {place}>{escape(words)}</text>")

    def content(self) -> bytes:
        size = f'width="{WIDTH}" height="{self.height}" viewBox="0 0 {WIDTH} {self.height}"'
        style = 'font-family="sans-serif" font-size="12"'
        lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', *self.elements, "</svg>", ""]
        return "\n".join(lines).encode()


class _Png:
    """Draws with Pillow, twice as large as the SVG."""

    ZOOM = 2
    ANCHORS = {"start": "lm", "middle": "mm", "end": "rm"}  # noqa: RUF012

    def __init__(self, height: int) -> None:
        from PIL import Image, ImageDraw, ImageFont

        self.image = Image.new("RGB", (self.ZOOM * WIDTH, self.ZOOM * height), "#ffffff")
        self.draw = ImageDraw.Draw(self.image)
        self.font = ImageFont.load_default(12 * self.ZOOM)

    def line(self, points: Sequence[Point], colour: str, width: float) -> None:
        zoomed = [(self.ZOOM * x, self.ZOOM * y) for x, y in points]
        self.draw.line(zoomed, fill=colour, width=round(self.ZOOM * width), joint="curve")

    def dot(self, at: Point, radius: float, colour: str) -> None:
        self.draw.circle((self.ZOOM * at[0], self.ZOOM * at[1]), self.ZOOM * radius, fill=colour)

    def text(self, at: Point, words: str, anchor: str) -> None:
        place = (self.ZOOM * at[0], self.ZOOM * at[1])
        self.draw.text(place, words, fill=BLACK, font=self.font, anchor=self.ANCHORS[anchor])

    def content(self) -> bytes:
        stream = io.BytesIO()
        self.image.save(stream, "PNG")
        return stream.getvalue()


Canvas = _Svg | _Png


class _Chart:
    """A chart that can be written."""

    @property
    def height(self) -> int:
        """In pixels."""
        return HEIGHT

    def draw(self, canvas: Canvas) -> None:
        """Draw it."""
        raise NotImplementedError

    def save(self, path: Path) -> None:
        """Write the chart; the suffix, ``.svg`` or ``.png``, says how."""
        kinds: dict[str, type[Canvas]] = {".svg": _Svg, ".png": _Png}
        if path.suffix.lower() not in kinds:
            raise ReversiError(f"plot {str(path)!r}: expected a name that ends in .svg or .png")
        canvas = kinds[path.suffix.lower()](self.height)
        self.draw(canvas)
        write_atomically(path, canvas.content())


@dataclass(frozen=True)
class LineChart(_Chart):
    """Named series over common abscissas, from 0 upwards; the first is drawn thicker."""

    title: str
    x_label: str
    y_label: str
    xs: Sequence[float]
    series: Mapping[str, Sequence[float]]

    def draw(self, canvas: Canvas) -> None:
        """Grid, axes, a line for each series, and a legend."""
        top = max(max(values) for values in self.series.values())
        step = grid_step(top)
        ceiling = step * (int(top / step) + 1)
        low, high = min(self.xs), max(self.xs)

        def place(x: float, y: float) -> Point:
            across = (x - low) / max(high - low, 1e-9)
            return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y / ceiling * (HEIGHT - TOP - BOTTOM)

        canvas.text((LEFT, TOP / 2), self.title, "start")
        for k in range(int(ceiling / step) + 1):
            canvas.line([place(low, k * step), place(high, k * step)], GRID, 0.5)
            canvas.text((LEFT - 8, place(low, k * step)[1]), f"{k * step:g}", "end")
        for x in self.xs:
            canvas.text((place(x, 0)[0], HEIGHT - BOTTOM + 16), f"{x:g}", "middle")
        canvas.text((place((low + high) / 2, 0)[0], HEIGHT - 14), self.x_label, "middle")
        canvas.text((8, TOP / 2 + 16), self.y_label, "start")
        for number, (name, values) in enumerate(self.series.items()):
            colours = (*COLOURS, GREY, BLACK)
            colour, width, beside = colours[number % len(colours)], 3 if number == 0 else 1.5, WIDTH - RIGHT + 24
            canvas.line([place(x, y) for x, y in zip(self.xs, values, strict=True)], colour, width)
            y = TOP + 8 + 20 * number
            canvas.line([(beside, y), (beside + 20, y)], colour, width)
            canvas.text((beside + 28, y), name, "start")


@dataclass(frozen=True)
class IntervalChart(_Chart):
    """A row for each (name, lower end, value, upper end): a dot within its interval."""

    title: str
    x_label: str
    rows: Sequence[tuple[str, float, float, float]]

    @property
    def height(self) -> int:
        """In pixels."""
        return TOP + ROW * len(self.rows) + BOTTOM

    def draw(self, canvas: Canvas) -> None:
        """Grid, axis and rows."""
        lowest, highest = min(low for _, low, _, _ in self.rows), max(high for *_, high in self.rows)
        step = grid_step(highest - lowest)
        first, last = lowest // step, max(-(-highest // step), lowest // step + 1)

        def across(value: float) -> float:
            return NAMES + (value / step - first) / (last - first) * (WIDTH - NAMES - VALUES)

        canvas.text((NAMES, TOP / 2), self.title, "start")
        bottom = self.height - BOTTOM
        for value in (k * step for k in range(int(first), int(last) + 1)):
            canvas.line([(across(value), TOP - 8), (across(value), bottom)], GRID, 0.5 if value else 1.2)
            canvas.text((across(value), bottom + 16), f"{value:+g}" if value else "0", "middle")
        canvas.text(((NAMES + WIDTH - VALUES) / 2, self.height - 10), self.x_label, "middle")
        for number, (name, low, value, high) in enumerate(self.rows):
            y = TOP + ROW * (number + 0.5)
            canvas.text((NAMES - 12, y), name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…", "end")
            canvas.line([(across(low), y), (across(high), y)], BLUE, 1.5)
            for end in (low, high):
                canvas.line([(across(end), y - 4), (across(end), y + 4)], BLUE, 1.5)
            canvas.dot((across(value), y), 4, VERMILION)
            canvas.text((WIDTH - 12, y), f"{value:+.0f}", "end")


def grid_step(span: float) -> float:
    """Distance of the grid lines: 1, 2 or 5 times a power of ten, at most eight of them in *span*.

    >>> grid_step(390.0), grid_step(0.3)
    (50.0, 0.05)
    """
    unit = 1e-6
    while True:
        for factor in (1, 2, 5):
            if span / (factor * unit) <= 8:
                return round(factor * unit, 6)
        unit *= 10
