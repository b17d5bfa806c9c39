"""What a training by reinforcement learning is asked to do, and the presets that did well."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from reversi_env import Rules
from reversi_env.errors import shown
from reversi_env.rules import Variant
from search import agents
from train.errors import TrainError, check_number, check_whole
from train.rl.network import Architecture

Algorithm = Literal["ppo", "dqn"]
Precision = Literal["single", "bfloat16"]


@dataclass(frozen=True)
class RlOptions:
    """A training. Whatever decides its result is here, and a run's folder remembers it.

    * ``size``, ``variant``: the game. ``algorithm``: ``ppo`` (MaskablePPO) or ``dqn``.
    * ``steps``: moves of the agent in all games together. ``seed``: of everything.
    * ``envs``: games in step; ``rollout``: moves in each of them between two updates of PPO.
    * ``batch``, ``epochs``: of an update. ``rate`` is Adam's step at the beginning; it falls to a tenth.
    * ``entropy``: how much a policy is paid for not being sure. ``trace``: λ of the advantage estimates.
    * ``channels``, ``blocks``: of the network. ``precision`` of its convolutions: ``bfloat16`` is faster where
      the processor knows it.
    * ``opponents``: fixed baselines, by spec; ``baseline_share``: of the games that are against them, the others are against past
      selves. ``snapshot``: steps between two selves that join the pool; ``pool``: how many of them are drawn from at a time.
    * ``plies``: random plies before a game, 0 to this many. ``symmetric``: games are shown turned and mirrored at random.
    * ``evaluate``: steps between two evaluations, of ``games`` games against each rung of the ladder.
    * ``buffer``, ``explore``: DQN's memory in steps, and the share of the training in which it explores less and less.
    """

    size: int = 6
    variant: Variant = "normal"
    algorithm: Algorithm = "ppo"
    steps: int = 1_000_000
    seed: int = 0
    envs: int = 256
    rollout: int = 64
    batch: int = 512
    epochs: int = 3
    rate: float = 1e-3
    entropy: float = 0.01
    trace: float = 0.95
    channels: int = 32
    blocks: int = 2
    precision: Precision = "single"
    opponents: tuple[str, ...] = ("random", "greedy", "cell-utility:depth=2")
    baseline_share: float = 0.3
    snapshot: int = 65_536
    pool: int = 6
    plies: int = 6
    symmetric: bool = True
    evaluate: int = 131_072
    games: int = 400
    buffer: int = 200_000
    explore: float = 0.3

    def __post_init__(self) -> None:
        Rules(self.size, self.variant)  # refuses a game that does not exist
        if self.algorithm not in get_args(Algorithm):
            raise TrainError(f"algorithm={shown(self.algorithm)}: expected one of {', '.join(get_args(Algorithm))}")
        if self.precision not in get_args(Precision):
            raise TrainError(f"precision={shown(self.precision)}: expected one of {', '.join(get_args(Precision))}")
        for name, (low, high) in _WHOLE.items():
            check_whole(name, getattr(self, name), low, high)
        for name, (least, most) in _NUMBERS.items():
            check_number(name, getattr(self, name), least, most)
        if self.games % 2:
            raise TrainError(f"games={self.games}: expected an even number, for both colours of every opening")
        if not isinstance(self.symmetric, bool):
            raise TrainError(f"symmetric={shown(self.symmetric)}: expected True or False")
        if not isinstance(self.opponents, tuple) or not all(isinstance(one, str) for one in self.opponents):
            raise TrainError(f"opponents={shown(self.opponents)}: expected a tuple of agent specs")
        if not self.opponents:
            raise TrainError("no opponents: expected at least one baseline, the pool has no past selves at first")
        for spec in self.opponents:
            agents.check(spec)
        check_whole("plies", self.plies, 0, self.rules.square_count // 2)

    @property
    def rules(self) -> Rules:
        """The game."""
        return Rules(self.size, self.variant)

    @property
    def architecture(self) -> Architecture:
        """The network's shape."""
        return Architecture(self.channels, self.blocks, "policy" if self.algorithm == "ppo" else "q")

    def as_dict(self) -> dict[str, Any]:
        """The options as JSON has them."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, options: dict[str, Any]) -> RlOptions:
        """The options of `as_dict`."""
        return cls(**{**options, "opponents": tuple(options["opponents"])})


_WHOLE = {
    "steps": (1, 10**12),
    "seed": (0, (1 << 31) - 1),
    "envs": (1, 65_536),
    "rollout": (1, 4096),
    "batch": (1, 1 << 20),
    "epochs": (1, 100),
    "channels": (1, 512),
    "blocks": (1, 40),
    "snapshot": (1, 10**12),
    "pool": (1, 64),
    "evaluate": (1, 10**12),
    "games": (2, 100_000),
    "buffer": (100, 10**8),
}
_NUMBERS = {
    "rate": (1e-8, 1.0),
    "entropy": (0.0, 10.0),
    "trace": (0.0, 1.0),
    "baseline_share": (0.0, 1.0),
    "explore": (0.0, 1.0),
}

#: What differs from the defaults, by algorithm and size.
_PRESETS: dict[tuple[str, int], dict[str, Any]] = {
    ("ppo", 4): {"steps": 300_000, "plies": 2, "snapshot": 32_768, "evaluate": 65_536, "blocks": 1},
    ("ppo", 6): {"steps": 1_000_000},
    ("ppo", 8): {"steps": 20_000_000, "channels": 48, "envs": 512, "evaluate": 524_288, "snapshot": 262_144},
    ("dqn", 4): {"steps": 200_000, "plies": 2, "envs": 64, "batch": 256, "rate": 5e-4, "blocks": 1, "evaluate": 50_000},
    ("dqn", 6): {"steps": 1_000_000, "envs": 64, "batch": 256, "rate": 5e-4},
    ("dqn", 8): {"steps": 5_000_000, "envs": 64, "batch": 256, "rate": 5e-4, "channels": 48, "evaluate": 524_288},
}


def preset(size: int = 6, variant: Variant = "normal", algorithm: Algorithm = "ppo", **changes: Any) -> RlOptions:
    """Options that did well for the game, with *changes*."""
    Rules(size, variant)
    known = [field.name for field in fields(RlOptions)]
    for name in changes:
        if name not in known:
            raise TrainError(f"option {shown(name)} of a training is unknown: expected some of {', '.join(known)}")
    chosen = _PRESETS.get((algorithm, size), {})
    return RlOptions(**{**chosen, "size": size, "variant": variant, "algorithm": algorithm, **changes})


def fastest_precision(device: str) -> Precision:
    """bfloat16 where the processor, or a GPU, has instructions for it."""
    from llvmlite.binding import get_host_cpu_features

    return "bfloat16" if device == "cuda" or get_host_cpu_features().get("avx512bf16", False) else "single"
