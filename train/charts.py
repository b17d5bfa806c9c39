"""Line charts as SVG or PNG, drawn by hand: a plot is no reason to depend on a plotting library."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from xml.sax.saxutils import escape

from reversi_env import ReversiError
from reversi_env.writing import write_atomically

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 200, 40, 52
GREY, BLACK = "#bbbbbb", "#222222"
#: Colours that can be told apart, also by those who see fewer of them (Okabe and Ito).
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000", "#b8860b")

Point = tuple[float, float]


class _Canvas(Protocol):
    def line(self, points: Sequence[Point], colour: str, width: float) -> None: ...

    def text(self, at: Point, words: str, colour: str, anchor: str) -> None: ...

    def content(self) -> bytes: ...


class _Svg:
    """Collects elements."""

    def __init__(self) -> None:
        self.elements = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']

    def line(self, points: Sequence[Point], colour: str, width: float) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.elements.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>')

    def text(self, at: Point, words: str, colour: str, anchor: str) -> None:
        place = f'x="{at[0]:.1f}" y="{at[1] + 4:.1f}" text-anchor="{anchor}" fill="{colour}"'
        self.elements.append(f"<text {place}>{escape(words)}</text>")

    def content(self) -> bytes:
        size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
        style = 'font-family="sans-serif" font-size="12"'
        lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', *self.elements, "</svg>", ""]
        return "\n".join(lines).encode()


class _Png:
    """Draws with Pillow, twice as large as the SVG."""

    ZOOM = 2
    ANCHORS = {"start": "lm", "middle": "mm", "end": "rm"}  # noqa: RUF012

    def __init__(self) -> None:
        from PIL import Image, ImageDraw, ImageFont

        self.image = Image.new("RGB", (self.ZOOM * WIDTH, self.ZOOM * HEIGHT), "#ffffff")
        self.draw = ImageDraw.Draw(self.image)
        self.font = ImageFont.load_default(12 * self.ZOOM)

    def line(self, points: Sequence[Point], colour: str, width: float) -> None:
        zoomed = [(self.ZOOM * x, self.ZOOM * y) for x, y in points]
        self.draw.line(zoomed, fill=colour, width=round(self.ZOOM * width), joint="curve")

    def text(self, at: Point, words: str, colour: str, anchor: str) -> None:
        place = (self.ZOOM * at[0], self.ZOOM * at[1])
        self.draw.text(place, words, fill=colour, font=self.font, anchor=self.ANCHORS[anchor])

    def content(self) -> bytes:
        stream = io.BytesIO()
        self.image.save(stream, "PNG")
        return stream.getvalue()


@dataclass(frozen=True)
class LineChart:
    """Named series over common abscissas, from 0 upwards."""

    title: str
    x_label: str
    y_label: str
    xs: Sequence[float]
    series: Mapping[str, Sequence[float]]

    def save(self, path: Path) -> None:
        """Write the chart; the suffix, ``.svg`` or ``.png``, says how."""
        kinds: dict[str, Callable[[], _Canvas]] = {".svg": _Svg, ".png": _Png}
        if path.suffix.lower() not in kinds:
            raise ReversiError(f"plot {str(path)!r}: expected a name that ends in .svg or .png")
        canvas = kinds[path.suffix.lower()]()
        self._draw(canvas)
        write_atomically(path, canvas.content())

    def _draw(self, canvas: _Canvas) -> None:
        top = max(max(values) for values in self.series.values())
        step = _step(top)
        ceiling = step * (int(top / step) + 1)
        low, high = min(self.xs), max(self.xs)

        def place(x: float, y: float) -> Point:
            across = (x - low) / max(high - low, 1e-9)
            return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y / ceiling * (HEIGHT - TOP - BOTTOM)

        canvas.text((LEFT, TOP / 2), self.title, BLACK, "start")
        for k in range(int(ceiling / step) + 1):
            canvas.line([place(low, k * step), place(high, k * step)], GREY, 0.5)
            canvas.text((LEFT - 8, place(low, k * step)[1]), f"{k * step:g}", BLACK, "end")
        for x in self.xs:
            canvas.text((place(x, 0)[0], HEIGHT - BOTTOM + 16), f"{x:g}", BLACK, "middle")
        canvas.text((place((low + high) / 2, 0)[0], HEIGHT - 14), self.x_label, BLACK, "middle")
        canvas.text((8, TOP / 2 + 16), self.y_label, BLACK, "start")
        for number, (name, values) in enumerate(self.series.items()):
            colour, beside = COLOURS[number % len(COLOURS)], WIDTH - RIGHT + 24
            canvas.line([place(x, y) for x, y in zip(self.xs, values, strict=True)], colour, 3 if number == 0 else 1.5)
            height = TOP + 8 + 20 * number
            canvas.line([(beside, height), (beside + 20, height)], colour, 3 if number == 0 else 1.5)
            canvas.text((beside + 28, height), name, BLACK, "start")


def _step(top: float) -> float:
    """Distance of the grid lines: 1, 2 or 5 times a power of ten, five to ten lines."""
    unit = 1e-6
    while True:
        for factor in (1, 2, 5):
            if top / (factor * unit) <= 8:
                return factor * unit
        unit *= 10
