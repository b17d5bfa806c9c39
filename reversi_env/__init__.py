"""Reversi (Othello) and Reversed Reversi on 4x4, 6x6 and 8x8 boards: compiled rules, positions, notation and environments.

Importing it registers ``Reversi-v0`` and ``ReversedReversi-v0`` with Gymnasium and PettingZoo.
"""

from reversi_env.envs.registration import register_all
from reversi_env.errors import IllegalMoveError, NotationError, PositionError, ReversiError, RulesError
from reversi_env.plugins import explain_failed_imports
from reversi_env.position import Move, Position
from reversi_env.rules import BLACK, WHITE, Colour, Rules, Start, Variant
from reversi_env.version import __version__

register_all()
explain_failed_imports()

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
