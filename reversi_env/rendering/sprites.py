"""The cached parts of the pixel picture: the empty board, the discs and the marks.

All are drawn larger and scaled down, which smooths the edges. Only this module imports Pillow.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from PIL import Image, ImageColor, ImageDraw, ImageFont, ImageOps

from reversi_env.rendering import scene as theme
from reversi_env.rendering.scene import Cell
from reversi_env.rules import COLUMN_NAMES, Colour

_OVERSAMPLING = 4


def rim_px(square_px: int) -> int:
    """Pixels between the picture's edge and the board."""
    return round(theme.RIM * square_px)


@lru_cache(maxsize=8)
def empty_board(size: int, square_px: int) -> Image.Image:
    """Rim, labels, felt and grid. Copy it before drawing on it."""
    square, rim = _OVERSAMPLING * square_px, _OVERSAMPLING * rim_px(square_px)
    board = _shaded(size * square, theme.FELT)
    _draw_grid(board, size, square)
    picture = Image.new("RGB", (size * square + 2 * rim,) * 2, theme.RIM_COLOUR)
    picture.paste(board, (rim, rim))
    _draw_labels(picture, size, square, rim)
    return picture.reduce(_OVERSAMPLING)


def layers(cell: Cell, turn: Colour, square_px: int) -> list[Image.Image]:
    """The sprites to lay on a square of the board, lowest first."""
    sprites = []
    if cell.disc is not None:
        sprites.append(disc(cell.disc, square_px))
    if cell.legal:
        fill = (*ImageColor.getrgb(theme.LEGAL_COLOURS[turn]), round(255 * theme.LEGAL_OPACITY[turn]))
        sprites.append(circle(square_px, theme.LEGAL_RADIUS, fill=fill))
    if cell.last:
        radius, width = theme.LAST_RADIUS + theme.LAST_WIDTH / 2, round(theme.LAST_WIDTH * _OVERSAMPLING * square_px)
        sprites.append(circle(square_px, radius, outline=theme.LAST_COLOUR, width=width))
    return sprites


@lru_cache(maxsize=16)
def disc(colour: Colour, square_px: int) -> Image.Image:
    side = _OVERSAMPLING * square_px
    sprite = _shadow(side)
    face = round(2 * theme.DISC_RADIUS * side)
    corner = (side - face) // 2
    sprite.paste(_shaded(face, theme.DISCS[colour]), (corner, corner), _round_mask(face))
    box = (corner, corner, corner + face - 1, corner + face - 1)
    ImageDraw.Draw(sprite).ellipse(box, outline=theme.EDGES[colour], width=round(theme.EDGE_WIDTH * side))
    return sprite.reduce(_OVERSAMPLING)


@lru_cache(maxsize=32)
def circle(square_px: int, radius: float, **style: Any) -> Image.Image:
    """A mark in the middle of a square: a circle in the *style* of Pillow's ``ellipse``."""
    side = _OVERSAMPLING * square_px
    sprite = Image.new("RGBA", (side, side))
    low, high = (0.5 - radius) * side, (0.5 + radius) * side - 1
    ImageDraw.Draw(sprite).ellipse((low, low, high, high), **style)
    return sprite.reduce(_OVERSAMPLING)


def _draw_grid(board: Image.Image, size: int, square: int) -> None:
    draw = ImageDraw.Draw(board)
    half = max(1, round(theme.GRID_WIDTH * square / 2))
    for middle in range(square, size * square, square):
        draw.rectangle((middle - half, 0, middle + half - 1, size * square), theme.GRID_COLOUR)
        draw.rectangle((0, middle - half, size * square, middle + half - 1), theme.GRID_COLOUR)
    for x, y in theme.stars(size):
        draw.circle((x * square, y * square), theme.STAR_RADIUS * square, theme.GRID_COLOUR)


def _draw_labels(picture: Image.Image, size: int, square: int, rim: int) -> None:
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(theme.LABEL_SIZE * square)
    for index in range(size):
        along = rim + (index + 0.5) * square
        draw.text((along, rim / 2), COLUMN_NAMES[index], theme.LABEL_COLOUR, font, anchor="mm")
        draw.text((rim / 2, along), str(index + 1), theme.LABEL_COLOUR, font, anchor="mm")


def _shaded(side: int, radial: theme.Radial) -> Image.Image:
    return ImageOps.colorize(_ramp(side, radial.centre, radial.radius), radial.inner, radial.outer)


def _shadow(side: int) -> Image.Image:
    right, down = theme.SHADOW_OFFSET
    ramp = _ramp(side, (0.5 + right, 0.5 + down), theme.SHADOW_RADIUS)
    solid = 255 * theme.SHADOW_FADES_FROM
    sprite = Image.new("RGBA", (side, side))
    alphas = 255 * theme.SHADOW_OPACITY * np.minimum(1.0, (255 - np.arange(256)) / (255 - solid))
    sprite.putalpha(ramp.point(alphas.round().astype(int).tolist()))
    return sprite


def _ramp(side: int, centre: tuple[float, float], radius: float) -> Image.Image:
    along = (np.arange(side, dtype=np.float32) + 0.5) / side
    distance = np.hypot(along[:, None] - centre[1], along - centre[0])
    return Image.fromarray(np.minimum(255 / radius * distance, 255).astype(np.uint8))


def _round_mask(side: int) -> Image.Image:
    mask = Image.new("L", (side, side))
    ImageDraw.Draw(mask).ellipse((0, 0, side - 1, side - 1), fill=255)
    return mask
