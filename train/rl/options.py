"""`PpoOptions`: all options of a PPO run, and presets that performed well."""

from dataclasses import dataclass
from typing import Any, Literal

from reversi_env.errors import check_integer
from reversi_env.options import GameOptions, option
from reversi_env.rules import Variant

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class PpoOptions(GameOptions):
    """All options that decide the result of a PPO run; its folder stores them."""

    size: int = option(6, "Board size: 4, 6 or 8 (default: 6).")
    total_timesteps: int = option(
        1_000_000, "Training steps over all environments, rounded up to whole updates.", low=1, high=10**12
    )
    seed: int = option(0, "Random seed of the whole run.", low=0, high=(1 << 31) - 1)
    num_envs: int = option(256, "Number of parallel environments.", low=1, high=65_536)
    num_steps: int = option(64, "Steps per environment and rollout.", low=1, high=4096)
    batch_size: int = option(512, "Minibatch size, in positions.", low=1, high=1 << 20)
    n_epochs: int = option(3, "Epochs per rollout.", low=1, high=100)
    learning_rate: float = option(1e-3, "Initial learning rate (Adam); linear decay to a tenth.", low=1e-8, high=1.0)
    ent_coef: float = option(0.01, "Coefficient of the entropy bonus.", low=0.0, high=10.0)
    gae_lambda: float = option(0.95, "Lambda of the generalised advantage estimation.", low=0.0, high=1.0)
    channels: int = option(32, "Channels of the residual network.", low=1, high=512)
    blocks: int = option(2, "Residual blocks of the network, two convolutions each.", low=1, high=40)
    precision: Precision = option("float32", "Precision of the convolutions (default: the faster one on this machine).")
    snapshot_share: float = option(
        0.25, "Share of games in which a snapshot plays one side, once the pool is full.", low=0.0, high=1.0
    )
    snapshot_every: int = option(65_536, "Steps between snapshots added to the opponent pool.", low=1, high=10**12)
    pool_size: int = option(6, "Maximum number of snapshots in the opponent pool.", low=1, high=64)
    opening_plies: int = option(6, "Maximum number of random plies before a game.", low=0)
    eval_every: int = option(131_072, "Steps between evaluations.", low=1, high=10**12)
    eval_games: int = option(400, "Evaluation games against each baseline (even).", low=2, high=100_000, even=True)
    device: Literal["cpu", "cuda"] = option("cpu", "Device for self-play and training: cpu or cuda (default: cpu).")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("opening_plies", self.opening_plies, 0, self.rules.square_count // 2)

    @property
    def rounded_timesteps(self) -> int:
        """``total_timesteps``, rounded up to whole updates."""
        update = self.num_envs * self.num_steps
        return -(-self.total_timesteps // update) * update


#: Differences from the defaults on a CPU, by size.
_CPU: dict[int, dict[str, Any]] = {
    4: {"total_timesteps": 300_000, "opening_plies": 2, "snapshot_every": 32_768, "eval_every": 65_536, "blocks": 1},
    8: {
        "total_timesteps": 20_000_000,
        "channels": 48,
        "num_envs": 512,
        "eval_every": 524_288,
        "snapshot_every": 262_144,
    },
}
#: Differences on a GPU, where a step of few games takes as long as one of many.
_GPU: dict[str, Any] = {"num_envs": 32_768, "num_steps": 16, "batch_size": 16_384, "n_epochs": 2}
_GPU |= {"snapshot_every": 5_000_000, "eval_every": 10_000_000, "pool_size": 4}
_GPU_BY_SIZE: dict[int, dict[str, Any]] = {
    4: {"total_timesteps": 20_000_000, "num_envs": 8192, "opening_plies": 2, "blocks": 1},
    6: {"total_timesteps": 100_000_000},
    8: {"total_timesteps": 1_000_000_000, "channels": 48, "snapshot_every": 50_000_000, "eval_every": 100_000_000},
}


def preset(size: int = 6, variant: Variant = "normal", device: str = "cpu", **changes: Any) -> PpoOptions:
    """Return options that performed well for a game on a device, with *changes*."""
    chosen = _GPU | _GPU_BY_SIZE.get(size, {}) if device == "cuda" else _CPU.get(size, {})
    return PpoOptions.from_dict({**chosen, "size": size, "variant": variant, "device": device, **changes})


def faster_precision(device: str = "cpu") -> Precision:
    """Return bfloat16 for the *device* ``cuda`` and for a CPU that has instructions for it, else float32."""
    from llvmlite.binding import get_host_cpu_features

    return "bfloat16" if device == "cuda" or get_host_cpu_features().get("avx512bf16", False) else "float32"
