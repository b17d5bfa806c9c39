"""A plot of errors by number of empties as one small SVG, in the colours of the board: no plotting library is needed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from xml.sax.saxutils import escape

from reversi_env.rendering import theme

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 44, 48
LINES = (theme.LAST_COLOUR, "#ffffff", "#f2c14e", "#7fc8f8")


def error_plot(title: str, series: Mapping[str, Mapping[int, float]]) -> str:
    """The text of an ``<svg>``: one line for each of *series*, mean absolute errors in discs by number of empties."""
    empties = sorted({e for errors in series.values() for e in errors})
    largest = max((error for errors in series.values() for error in errors.values()), default=1.0)
    step = _step(largest)
    top = step * max(1, math.ceil(largest / step))
    low, high = (empties[0], empties[-1]) if empties else (0, 1)

    def x(number: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (number - low) / max(1, high - low), 1)

    def y(error: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * error / top, 1)

    every = max(1, -(-len(empties) // 16))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="{theme.RIM_COLOUR}"/>',
        _text(WIDTH / 2, 26, title, "middle", "#ffffff"),
        *_levels(top, step, y),
        *(_text(x(e), HEIGHT - BOTTOM + 18, str(e), "middle") for e in empties[::every]),
        _text(WIDTH / 2, HEIGHT - 10, "empty squares", "middle"),
        _text(LEFT - 44, TOP - 12, "discs", "start"),
    ]
    for number, (name, errors) in enumerate(series.items()):
        colour = LINES[number % len(LINES)]
        points = [(x(e), y(errors[e])) for e in sorted(errors)]
        path = " ".join(f"{a:g},{b:g}" for a, b in points)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        lines += [f'<circle cx="{a:g}" cy="{b:g}" r="3.5" fill="{colour}"/>' for a, b in points]
        lines.append(_text(LEFT + 14, TOP + 16 + 18 * number, name, "start", colour))
    return "\n".join([*lines, "</svg>", ""])


def _levels(top: float, step: float, y: object) -> list[str]:
    """Horizontal lines with their numbers."""
    assert callable(y)
    found = []
    for number in range(round(top / step) + 1):
        level = number * step
        at = y(level)
        found.append(f'<path d="M{LEFT} {at:g}H{WIDTH - RIGHT}" stroke="{theme.GRID_COLOUR}"/>')
        found.append(_text(LEFT - 8, at + 4, f"{level:g}", "end"))
    return found


def _step(largest: float) -> float:
    """A round distance of the levels, so that there are about five."""
    power = 10.0 ** math.floor(math.log10(max(largest, 1e-6) / 5))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor * 6 >= largest)


def _text(x: float, y: float, text: str, anchor: str, colour: str = theme.LABEL_COLOUR) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
