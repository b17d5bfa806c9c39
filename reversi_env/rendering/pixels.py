"""The board as pixels: the ``rgb_array`` of environments and the picture in the window."""

from importlib import import_module
from typing import Any

import numpy as np

from reversi_env.errors import ReversiError, check_integer
from reversi_env.position import Position
from reversi_env.rendering.scene import cells

MIN_SQUARE_PX = 8  # smaller marks cannot be distinguished


def render_rgb(position: Position, last_move: int | None = None, *, square_px: int = 64) -> np.ndarray:
    """The picture of *position* as a uint8 array (height, width, 3).

    Squares are *square_px* wide, and the rim around the board is half as wide. *last_move* is an action of `Rules`; a
    pass leaves no mark. Needs Pillow.
    """
    check_integer("square_px", square_px, MIN_SQUARE_PX, error=ReversiError)
    require("PIL", "pillow")
    from reversi_env.rendering import sprites

    picture = sprites.empty_board(position.rules.size, square_px).copy()
    rim = sprites.rim_px(square_px)
    for cell in cells(position, last_move):
        corner = (rim + cell.column * square_px, rim + cell.row * square_px)
        for sprite in sprites.layers(cell, position.turn, square_px):
            picture.paste(sprite, corner, sprite)
    return np.array(picture)


def require(module: str, package: str) -> Any:
    """Return the imported *module*, or raise Gymnasium's error with the *package* to install."""
    try:
        return import_module(module)
    except ImportError as error:
        from gymnasium.error import DependencyNotInstalled

        raise DependencyNotInstalled(f"{package} is not installed: run `pip install {package}`") from error
