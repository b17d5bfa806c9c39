"""The environments for reinforcement learning: Gymnasium's single and vector API (PettingZoo's is `reversi_env.aec`).

The names below are imported on first use, so that registering the ids stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reversi_env.envs.opponents import OpponentPool
    from reversi_env.envs.settings import SettingsError
    from reversi_env.envs.single import ReversiEnv
    from reversi_env.envs.torch_vector import TorchVectorEnv
    from reversi_env.envs.vector import ReversiVectorEnv

__all__ = ["OpponentPool", "ReversiEnv", "ReversiVectorEnv", "SettingsError", "TorchVectorEnv"]

_HOMES = {
    "OpponentPool": "opponents",
    "ReversiEnv": "single",
    "ReversiVectorEnv": "vector",
    "SettingsError": "settings",
    "TorchVectorEnv": "torch_vector",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"reversi_env.envs.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
