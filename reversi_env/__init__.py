"""Reversi (Othello) and Reversed Reversi on 4x4, 6x6 and 8x8 boards: compiled rules, positions, notation and environments.

Importing it registers ``Reversi-v0`` and ``ReversedReversi-v0`` with Gymnasium and PettingZoo.

* The game: `Rules`, `Position`, `Colour`; arrays of positions, the module `reversi_env.batch`; boards in compiled code,
  `reversi_env.kernels`.
* Environments: `ReversiEnv`, `ReversiVectorEnv`, `TorchVectorEnv`, `OpponentPool`; games as values, to branch and to search,
  `reversi_env.functional`.
* Records of games: `Game`, `read_transcript`, `read_ggf`, `read_obf`, `read_wthor`; more in `reversi_env.notation`; names of
  openings, `reversi_env.notation.openings`.
* Errors: all of them are `ReversiError`; its kinds are in `reversi_env.errors`.
"""

import lazy_loader

from reversi_env.envs.registration import register_all
from reversi_env.version import __version__ as __version__

# The names of __init__.pyi, imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]

register_all()
