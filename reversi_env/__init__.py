"""Reversi (Othello) and Reversed Reversi on 4x4, 6x6 and 8x8 boards: compiled rules, positions, notation and environments.

Importing it registers ``Reversi-v0`` and ``ReversedReversi-v0`` with Gymnasium, and with PettingZoo if that is loaded.

* The game: `Rules`, `Position`, `Colour`; arrays of positions, the module `reversi_env.batch`; boards in compiled code,
  `reversi_env.kernels`.
* Environments: `ReversiEnv`, `ReversiVectorEnv`, `TorchVectorEnv`, `OpponentPool`; games as values, to branch and to search,
  `reversi_env.functional`.
* Records of games: `Game`, `read_transcript`, `read_ggf`, `read_obf`, `read_wthor`; more in `reversi_env.notation`; names of
  openings, `reversi_env.notation.openings`.
* Errors: all of them are `ReversiError`; its kinds are in `reversi_env.errors`.
"""

__version__ = "0.2.0"

import sys

import lazy_loader

from reversi_env.envs.registration import register_all

# The names of __init__.pyi, imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]

# The command line makes no environment by its id, and its help must not wait for Gymnasium (0.4 s).
if "play.cli" not in sys.modules:
    register_all()
