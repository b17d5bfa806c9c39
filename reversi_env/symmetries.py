"""Where the eight symmetries of the board take squares and actions, as numbers; for boards see `reversi_env.core.symmetry`."""

from __future__ import annotations

from functools import cache

import numpy as np

from reversi_env.rules import Rules

SYMMETRIES = 8


def square_image(sq: int, symmetry: int) -> int:
    """Where *symmetry* takes a square of the 8x8 frame: `reversi_env.core.symmetry.transform` with nothing to compile."""
    row, column = divmod(sq, 8)
    if symmetry & 1:
        row = 7 - row
    if symmetry & 2:
        column = 7 - column
    return 8 * column + row if symmetry & 4 else 8 * row + column


@cache
def action_images(size: int) -> np.ndarray:
    """``images[k, action]``: where symmetry *k* takes each action's square; the pass stays."""
    rules = Rules(size)
    images = [
        [*(rules.action_of(square_image(sq, symmetry)) for sq in rules.squares()), rules.pass_action]
        for symmetry in range(SYMMETRIES)
    ]
    return np.array(images, np.int64)
