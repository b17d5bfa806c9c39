"""The board as pixels: the ``rgb_array`` of environments and the picture in the window."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from reversi_env.errors import ReversiError, quoted
from reversi_env.position import Position
from reversi_env.rendering.scene import cells

_SMALLEST_SQUARE = 8  # below it the marks are no longer to be told apart


def render_rgb(position: Position, last_move: int | None = None, *, square_px: int = 64) -> np.ndarray:
    """The picture of *position* as a uint8 array (height, width, 3).

    Squares are *square_px* wide, and the rim around the board is half as wide. *last_move* is an action of `Rules`; a
    pass leaves no mark. Needs Pillow.
    """
    if not isinstance(square_px, int) or isinstance(square_px, bool) or square_px < _SMALLEST_SQUARE:
        raise ReversiError(f"square_px {quoted(square_px)}: expected an integer of at least {_SMALLEST_SQUARE}")
    require("PIL", "pillow")
    from reversi_env.rendering import sprites

    picture = sprites.empty_board(position.rules.size, square_px).copy()
    rim = sprites.rim_px(square_px)
    for cell in cells(position, last_move):
        corner = (rim + cell.column * square_px, rim + cell.row * square_px)
        for sprite in sprites.layers(cell, position.turn, square_px):
            picture.paste(sprite, corner, sprite)
    return np.array(picture)


# --- optional libraries ----------------------------------------------------------------------------


def require(module: str, package: str) -> Any:
    """The imported *module*, or the error that Gymnasium's users expect, naming the *package* to install."""
    try:
        return import_module(module)
    except ImportError as error:
        from gymnasium.error import DependencyNotInstalled

        raise DependencyNotInstalled(f"{package} is not installed: run `pip install {package}`") from error
