"""Reversi (Othello) and Reversed Reversi on 4x4, 6x6 and 8x8 boards: compiled rules, positions, notation and environments.

Importing it registers ``Reversi-v0`` and ``ReversedReversi-v0`` with Gymnasium and PettingZoo.

* The game: `Rules`, `Position`, `Colour`; arrays of positions, the module `reversi_env.batch`; boards in compiled code,
  `reversi_env.bits`.
* Environments: `ReversiEnv`, `ReversiVectorEnv`, `TorchVectorEnv`, `OpponentPool`; games as values, to branch and to search,
  `reversi_env.functional`.
* Records of games: `Game`, `read_transcript`, `read_ggf`, `read_obf`, `read_wthor`; more in `reversi_env.notation`; names of
  openings, `reversi_env.openings`.
* Errors: all of them are `ReversiError`; its kinds are in `reversi_env.errors`.
"""

from typing import TYPE_CHECKING

from reversi_env.envs.registration import register_all
from reversi_env.errors import ReversiError
from reversi_env.lazy import lazy_names
from reversi_env.rules import BLACK, WHITE, Colour, Rules
from reversi_env.version import __version__

if TYPE_CHECKING:
    from reversi_env.envs import OpponentPool, ReversiEnv, ReversiVectorEnv, TorchVectorEnv
    from reversi_env.notation import Game, read_ggf, read_obf, read_transcript, read_wthor
    from reversi_env.position import Position

register_all()

# Imported when they are first used.
__getattr__, __dir__ = lazy_names(
    __name__,
    dict.fromkeys(("OpponentPool", "ReversiEnv", "ReversiVectorEnv", "TorchVectorEnv"), "reversi_env.envs")
    | dict.fromkeys(("Game", "read_ggf", "read_obf", "read_transcript", "read_wthor"), "reversi_env.notation")
    | {"Position": "reversi_env.position"},
)

__all__ = [
    "BLACK",
    "WHITE",
    "Colour",
    "Game",
    "OpponentPool",
    "Position",
    "ReversiEnv",
    "ReversiError",
    "ReversiVectorEnv",
    "Rules",
    "TorchVectorEnv",
    "__version__",
    "read_ggf",
    "read_obf",
    "read_transcript",
    "read_wthor",
]
