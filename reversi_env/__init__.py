"""Reversi (Othello) and Reversed Reversi on 4x4, 6x6 and 8x8 boards: compiled rules, positions and notation."""

from reversi_env.errors import IllegalMoveError, NotationError, PositionError, ReversiError, RulesError
from reversi_env.position import Move, Position
from reversi_env.rules import BLACK, WHITE, Colour, Rules, Start, Variant

__version__ = "0.1.0"

__all__ = [
    "BLACK",
    "WHITE",
    "Colour",
    "IllegalMoveError",
    "Move",
    "NotationError",
    "Position",
    "PositionError",
    "ReversiError",
    "Rules",
    "RulesError",
    "Start",
    "Variant",
    "__version__",
]
