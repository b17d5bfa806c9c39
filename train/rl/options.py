"""What a training by reinforcement learning is asked to do, and the presets that did well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from reversi_env.rules import Variant
from search.agents import AgentSpec
from train.errors import check_whole
from train.options import GameOptions, option

if TYPE_CHECKING:
    from train.rl.network import Architecture

Algorithm = Literal["ppo", "dqn"]
Precision = Literal["single", "bfloat16"]


@dataclass(frozen=True)
class RlOptions(GameOptions):
    """A training. Whatever decides its result is here, and a run's folder remembers it."""

    size: int = option(6, "Board size: 4, 6 or 8; 6 by default.")
    algorithm: Algorithm = option("ppo", "ppo (MaskablePPO) or dqn.")
    steps: int = option(1_000_000, "Moves of the agent, in all games.", low=1, high=10**12)
    seed: int = option(0, "Of everything.", low=0, high=(1 << 31) - 1)
    envs: int = option(256, "Games in step.", low=1, high=65_536)
    rollout: int = option(64, "Moves in each between two updates of PPO.", low=1, high=4096)
    batch_size: int = option(512, "Positions a gradient.", low=1, high=1 << 20, was="batch")
    epochs: int = option(3, "Times every position is seen.", low=1, high=100)
    learning_rate: float = option(1e-3, "Adam's; it falls to a tenth.", low=1e-8, high=1.0, was="rate")
    entropy_coefficient: float = option(0.01, "Weight of the entropy bonus.", low=0.0, high=10.0, was="entropy")
    gae_lambda: float = option(0.95, "Lambda of the advantage estimates.", low=0.0, high=1.0, was="trace")
    channels: int = option(32, "Of the network.", low=1, high=512)
    blocks: int = option(2, "Of the network, two convolutions each.", low=1, high=40)
    precision: Precision = option("single", "Of the convolutions; by default the faster one here.")
    opponents: tuple[str, ...] = option(
        ("random", "greedy", "cell-utility:depth=2"), "A baseline by spec; repeat for more."
    )
    baseline_share: float = option(0.3, "Of the games; the others are against past selves.", low=0.0, high=1.0)
    snapshot: int = option(65_536, "Steps until another self joins.", low=1, high=10**12)
    pool: int = option(6, "Past selves that are drawn from at a time.", low=1, high=64)
    plies: int = option(6, "Random plies before a game, at most.", low=0)
    symmetric: bool = option(True, "Games are shown turned and mirrored at random.")
    evaluate: int = option(131_072, "Steps between two evaluations.", low=1, high=10**12)
    games: int = option(400, "Against each rung of the ladder.", low=2, high=100_000, even=True)
    buffer_size: int = option(200_000, "DQN's memory, in steps.", low=100, high=10**8, was="buffer")
    exploration_fraction: float = option(
        0.3, "Share of the training in which DQN explores less and less.", low=0.0, high=1.0, was="explore"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for spec in self.opponents:
            AgentSpec.parse(spec).check()
        check_whole("plies", self.plies, 0, self.rules.square_count // 2)

    @property
    def architecture(self) -> Architecture:
        """The network's shape."""
        from train.rl.network import Architecture

        return Architecture(self.channels, self.blocks, "policy" if self.algorithm == "ppo" else "q")


#: What differs from the defaults, by algorithm and size.
_DQN: dict[str, Any] = {"envs": 64, "batch_size": 256, "learning_rate": 5e-4}
_PRESETS: dict[tuple[str, int], dict[str, Any]] = {
    ("ppo", 4): {"steps": 300_000, "plies": 2, "snapshot": 32_768, "evaluate": 65_536, "blocks": 1},
    ("ppo", 6): {"steps": 1_000_000},
    ("ppo", 8): {"steps": 20_000_000, "channels": 48, "envs": 512, "evaluate": 524_288, "snapshot": 262_144},
    ("dqn", 4): {"steps": 200_000, "plies": 2, **_DQN, "blocks": 1, "evaluate": 50_000},
    ("dqn", 6): {"steps": 1_000_000, **_DQN},
    ("dqn", 8): {"steps": 5_000_000, **_DQN, "channels": 48, "evaluate": 524_288},
}


def preset(size: int = 6, variant: Variant = "normal", algorithm: Algorithm = "ppo", **changes: Any) -> RlOptions:
    """Options that did well for the game, with *changes*."""
    chosen = _PRESETS.get((algorithm, size), {})
    return RlOptions.from_dict({**chosen, "size": size, "variant": variant, "algorithm": algorithm, **changes})


def fastest_precision(device: str) -> Precision:
    """bfloat16 where the processor, or a GPU, has instructions for it."""
    from llvmlite.binding import get_host_cpu_features

    return "bfloat16" if device == "cuda" or get_host_cpu_features().get("avx512bf16", False) else "single"
