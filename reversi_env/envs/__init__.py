"""The environments for reinforcement learning: Gymnasium's single and vector API (PettingZoo's is `reversi_env.aec`).

The names below are imported on first use, so that registering the ids stays cheap.
"""

from typing import TYPE_CHECKING

from reversi_env.lazy import lazy_names

if TYPE_CHECKING:
    from reversi_env.envs.opponents import OpponentPool
    from reversi_env.envs.settings import SettingsError
    from reversi_env.envs.single import ReversiEnv
    from reversi_env.envs.torch_vector import TorchVectorEnv
    from reversi_env.envs.vector import ReversiVectorEnv

__all__ = ["OpponentPool", "ReversiEnv", "ReversiVectorEnv", "SettingsError", "TorchVectorEnv"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "OpponentPool": "reversi_env.envs.opponents",
        "ReversiEnv": "reversi_env.envs.single",
        "ReversiVectorEnv": "reversi_env.envs.vector",
        "SettingsError": "reversi_env.envs.settings",
        "TorchVectorEnv": "reversi_env.envs.torch_vector",
    },
)
