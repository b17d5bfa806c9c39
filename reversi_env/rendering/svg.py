"""The board as one self-contained SVG, for notebooks, documentation and web pages."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2s
from typing import TYPE_CHECKING

from reversi_env.errors import ReversiError, check_integer
from reversi_env.rendering import scene as theme
from reversi_env.rendering.scene import Cell, cells, status
from reversi_env.rules import BLACK, COLUMN_NAMES, WHITE

if TYPE_CHECKING:  # `Position` imports this module for notebooks
    from reversi_env.position import Position

_UNIT = 100  # drawing units per square, so that nearly all coordinates are short integers


def render_svg(
    position: Position,
    last_move: int | None = None,
    *,
    size_px: int = 400,
    show_legal: bool = True,
    coordinates: bool = True,
) -> str:
    """The picture of *position*, *size_px* wide and high, as the text of an ``<svg>`` element.

    *last_move* is an action of `Rules`; a pass is only in the title. The same arguments give the same text.
    """
    check_integer("size_px", size_px, 1, error=ReversiError)
    squares = cells(position, last_move)
    size, rim = position.rules.size, theme.RIM if coordinates else theme.THIN_RIM
    # A prefix of ids that differs between different pictures, so that one page can have several.
    arguments = repr((position, last_move, size_px, show_legal, coordinates))
    key = f"reversi-{blake2s(arguments.encode(), digest_size=6).hexdigest()}"
    extent = _number(size + 2 * rim)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="{key}-title" '
        f'width="{size_px}" height="{size_px}" viewBox="0 0 {extent} {extent}">',
        f'<title id="{key}-title">Reversi {size}x{size}: {status(position, last_move)}</title>',
        *_definitions(key),
        f'<rect width="{extent}" height="{extent}" rx="{_number(theme.CORNER_RADIUS)}" fill="{theme.RIM_COLOUR}"/>',
        f'<g transform="translate({_number(rim)} {_number(rim)})">',
        *_board(size, key),
        *(_labels(size) if coordinates else []),
        *_discs(squares, key),
        *(_legal_marks(squares, position) if show_legal else []),
        *_last_mark(squares),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines)


def _number(squares: float) -> str:
    return f"{round(_UNIT * squares, 2):g}"


def _definitions(key: str) -> list[str]:
    fade = f'<stop offset="{theme.SHADOW_FADES_FROM}" stop-opacity="{theme.SHADOW_OPACITY}"/>'
    return [
        "<defs>",
        _gradient(f"{key}-felt", theme.FELT),
        _gradient(f"{key}-black", theme.DISCS[BLACK]),
        _gradient(f"{key}-white", theme.DISCS[WHITE]),
        f'<radialGradient id="{key}-shadow">{fade}<stop offset="1" stop-opacity="0"/></radialGradient>',
        "</defs>",
    ]


def _gradient(name: str, radial: theme.Radial) -> str:
    x, y = radial.centre
    return (
        f'<radialGradient id="{name}" cx="{x}" cy="{y}" r="{radial.radius}"><stop stop-color="{radial.inner}"/>'
        f'<stop offset="1" stop-color="{radial.outer}"/></radialGradient>'
    )


def _board(size: int, key: str) -> list[str]:
    side = _number(size)
    lines = "".join(f"M{_number(i)} 0V{side}M0 {_number(i)}H{side}" for i in range(1, size))
    dots = "".join(_circle(x, y, theme.STAR_RADIUS) for x, y in theme.stars(size))
    return [
        f'<rect width="{side}" height="{side}" fill="url(#{key}-felt)"/>',
        f'<path d="{lines}" stroke="{theme.GRID_COLOUR}" stroke-width="{_number(theme.GRID_WIDTH)}"/>',
        f'<g fill="{theme.GRID_COLOUR}">{dots}</g>',
    ]


def _labels(size: int) -> list[str]:
    beside = -theme.RIM / 2
    columns = [_text(i + 0.5, beside, COLUMN_NAMES[i]) for i in range(size)]
    rows = [_text(beside, i + 0.5, str(i + 1)) for i in range(size)]
    style = f'font-family="Helvetica, Arial, sans-serif" font-size="{_number(theme.LABEL_SIZE)}" text-anchor="middle"'
    return [f'<g {style} fill="{theme.LABEL_COLOUR}">', *columns, *rows, "</g>"]


def _text(x: float, y: float, text: str) -> str:
    middle = y + 0.35 * theme.LABEL_SIZE  # not every viewer knows dominant-baseline
    return f'<text x="{_number(x)}" y="{_number(middle)}">{text}</text>'


def _discs(squares: Iterable[Cell], key: str) -> list[str]:
    occupied = [cell for cell in squares if cell.disc is not None]
    right, down = theme.SHADOW_OFFSET
    shadows = [_centred(cell, theme.SHADOW_RADIUS, right=right, down=down) for cell in occupied]
    lines = [f'<g fill="url(#{key}-shadow)">', *shadows, "</g>"]
    for colour in (BLACK, WHITE):
        edge = f'stroke="{theme.EDGES[colour]}" stroke-width="{_number(theme.EDGE_WIDTH)}"'
        radius = theme.DISC_RADIUS - theme.EDGE_WIDTH / 2
        discs = [_centred(cell, radius, f' class="reversi-{colour}"') for cell in occupied if cell.disc == colour]
        lines += [f'<g fill="url(#{key}-{colour})" {edge}>', *discs, "</g>"]
    return lines


def _legal_marks(squares: Iterable[Cell], position: Position) -> list[str]:
    colour, opacity = theme.LEGAL_COLOURS[position.turn], theme.LEGAL_OPACITY[position.turn]
    marks = [_centred(cell, theme.LEGAL_RADIUS, ' class="reversi-legal"') for cell in squares if cell.legal]
    return [f'<g fill="{colour}" fill-opacity="{opacity}">', *marks, "</g>"]


def _last_mark(squares: Iterable[Cell]) -> list[str]:
    style = f' class="reversi-last" fill="none" stroke="{theme.LAST_COLOUR}" stroke-width="{_number(theme.LAST_WIDTH)}"'
    return [_centred(cell, theme.LAST_RADIUS, style) for cell in squares if cell.last]


def _centred(cell: Cell, radius: float, attributes: str = "", *, right: float = 0, down: float = 0) -> str:
    return _circle(cell.column + 0.5 + right, cell.row + 0.5 + down, radius, attributes)


def _circle(x: float, y: float, radius: float, attributes: str = "") -> str:
    return f'<circle{attributes} cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}"/>'
