"""The ratings as a picture: a dot for each player with its 95 % interval, best at the top."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from xml.sax.saxutils import escape

from train.charts import BLACK, COLOURS, GREY
from train.games.standings import Standing, Standings

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 760, 220, 76, 48, 44
ROW = 26
LONGEST_NAME = 32


def ratings_svg(table: Standings, title: str) -> bytes:
    """The drawing as an SVG file."""
    height = TOP + ROW * len(table.players) + BOTTOM
    ratings = [player.rating for player in table.players]
    step = _step(max(r.high for r in ratings) - min(r.low for r in ratings))
    low = step * (min(r.low for r in ratings) // step)
    high = step * (-(-max(r.high for r in ratings) // step))

    def across(elo: float) -> float:
        return LEFT + (elo - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    elements = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(LEFT, 20, title, "start"),
    ]
    for k in range(round((high - low) / step) + 1):
        elo = low + k * step
        bottom = height - BOTTOM
        elements.append(_line(across(elo), TOP - 8, across(elo), bottom, GREY, 1.2 if elo == 0 else 0.5))
        elements.append(_text(across(elo), bottom + 16, f"{elo:+.0f}" if elo else "0", "middle"))
    elements.append(
        _text((LEFT + WIDTH - RIGHT) / 2, height - 10, "Elo, mean of all players 0; bars: 95 % intervals", "middle")
    )
    for place, player in enumerate(table.players):
        elements.extend(_row(player, across, TOP + ROW * (place + 0.5)))
    return "\n".join([*elements, "</svg>", ""]).encode()


def _row(player: Standing, across: Callable[[float], float], y: float) -> Iterator[str]:
    low, middle, high = (across(elo) for elo in (player.rating.low, player.rating.elo, player.rating.high))
    name = player.name if len(player.name) <= LONGEST_NAME else f"{player.name[: LONGEST_NAME - 1]}…"
    yield _text(LEFT - 12, y, name, "end")
    yield _line(low, y, high, y, COLOURS[1], 1.5)
    for end in (low, high):
        yield _line(end, y - 4, end, y + 4, COLOURS[1], 1.5)
    yield f'<circle cx="{middle:.1f}" cy="{y:.1f}" r="4" fill="{COLOURS[0]}"/>'
    yield _text(WIDTH - 12, y, f"{player.rating.elo:+.0f}", "end")


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    place = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {place} stroke="{colour}" stroke-width="{width:g}"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}" fill="{BLACK}">{escape(words)}</text>'


def _step(span: float) -> float:
    """Distance of the grid lines in Elo: at most eight of them."""
    return next((step for step in (10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0) if span <= 8 * step), 5000.0)
