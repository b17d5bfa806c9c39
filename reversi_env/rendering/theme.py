"""The look of the board: colours and proportions, so that the SVG and the pixels show the same picture.

Lengths are in squares: 1 is the side of a square.
"""

from __future__ import annotations

from typing import NamedTuple

from reversi_env.rules import BLACK, WHITE


class Radial(NamedTuple):
    """A radial gradient in the box that it fills, whose side counts as 1."""

    inner: str
    outer: str
    centre: tuple[float, float]
    radius: float


RIM = 0.5
THIN_RIM = 0.14
RIM_COLOUR = "#20312a"
CORNER_RADIUS = 0.16

FELT = Radial("#3d9a6d", "#2b7653", (0.5, 0.42), 0.8)
GRID_COLOUR = "#1d5a3e"
GRID_WIDTH = 0.03
STAR_RADIUS = 0.06

LABEL_COLOUR = "#b4cabd"
LABEL_SIZE = 0.26

DISC_RADIUS = 0.41
DISCS = {
    BLACK: Radial("#565c63", "#14171a", (0.36, 0.3), 0.68),
    WHITE: Radial("#ffffff", "#d8d5ca", (0.4, 0.34), 0.72),
}
EDGES = {BLACK: "#0c0e10", WHITE: "#b3afa2"}
EDGE_WIDTH = 0.02

SHADOW_OFFSET = (0.015, 0.035)
SHADOW_RADIUS = 0.46
SHADOW_OPACITY = 0.5
SHADOW_FADES_FROM = 0.78

LEGAL_RADIUS = 0.1
LEGAL_COLOURS = {BLACK: "#0c0e10", WHITE: "#ffffff"}
LEGAL_OPACITY = {BLACK: 0.42, WHITE: 0.6}

LAST_COLOUR = "#e8604c"
LAST_RADIUS = 0.15
LAST_WIDTH = 0.06


def stars(size: int) -> list[tuple[int, int]]:
    """The grid points with a dot, two squares from the edges; none on the 4x4 board, where they would meet."""
    return [(x, y) for x in (2, size - 2) for y in (2, size - 2)] if size > 4 else []
