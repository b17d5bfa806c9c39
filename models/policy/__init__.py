"""Policy-value networks of PPO, their files and the agents that play by them."""

from dataclasses import dataclass
from pathlib import Path

from reversi_env.options import Options, option

#: The package's own policies: ``HOW-SIZExSIZE-VARIANT-HASH.safetensors``.
FOLDER = Path(__file__).parent / "weights"


@dataclass(frozen=True)
class Architecture(Options):
    """The shape of a network: ``channels`` and ``blocks`` (two convolutions each) of its trunk."""

    channels: int = option(32, low=1, high=512)
    blocks: int = option(2, low=1, high=40)
