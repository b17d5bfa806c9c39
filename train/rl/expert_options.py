"""`ExpertOptions`: all that decides what an expert iteration learns, and presets for every game."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reversi_env.extras import extra_libraries
from reversi_env.rules import Variant
from search.agents import AgentSpec
from search.batch import DEEPEST
from train.errors import check_whole
from train.labels.labellers import Plan, labeller_plan, option_numbers
from train.options import GameOptions, option

if TYPE_CHECKING:
    from train.rl.network import Architecture

#: The labeller that is the network in training itself.
SELF = "self"
#: Plies that the network's own search can look ahead: every one costs some ten times the one before.
SELF_DEPTHS = (1, 2, 3)
#: Empty squares up to which the network's own search leaves positions to the solver, unless it says another number.
SELF_EXACT = 12
#: Of the sums while learning.
PRECISIONS = ("single", "bfloat16")
#: Presets by board size.
PRESETS: dict[int, dict[str, Any]] = {
    4: {"iterations": 6, "positions": 500, "samples": 30_000, "labeller": "exact", "opening_plies": 4, "blocks": 2},
    6: {},
    8: {"iterations": 30, "positions": 30_000, "samples": 400_000, "channels": 48, "opening_plies": 12},
}


@dataclass(frozen=True)
class ExpertOptions(GameOptions):
    """What is learnt, from whom, and from how much.

    Every round has new ``positions``, of which none comes twice, nor an image of another, and learns ``samples`` from all rounds so
    far, each under one of the eight symmetries. The ``labeller`` says what is best: an evaluator searched to a depth,
    ``network:depth=4,exact=12`` or ``six-factor:depth=4``; ``self:depth=2,exact=12``, a search over the value of the network in
    training; or ``exact``. Positions with at most ``exact`` empty squares are always solved: they teach all best moves alike and no
    other. A side of a game draws one of ``temperatures`` and plays the policy at it, 0 for the best move. Weights, games and
    judgements are always in single precision.
    """

    size: int = option(6, "Board size: 4, 6 or 8; 6 by default.")
    seed: int = option(0, "Of the first weights, the games and the order of learning.", low=0, high=(1 << 32) - 1)
    iterations: int = option(12, "Rounds of games, labels and learning.", low=1, high=10_000)
    positions: int = option(25_000, "New positions a round, at most.", low=1, high=10_000_000)
    samples: int = option(300_000, "Positions learnt a round.", low=1, high=1_000_000_000)
    labeller: str = option(
        "network:depth=4,exact=12", "network:depth=4,exact=12; six-factor:depth=4; self:depth=2; exact."
    )
    temperature: float = option(
        1.0, "Discs; a searched move worse by that much is e times as rare.", low=0.001, high=1000.0, was="heat"
    )
    temperatures: tuple[float, ...] = option((0.25, 0.5, 1.0), "Of the policy's own play.", low=0.0, high=100.0)
    noise: float = option(0.03, "Probability of a random move.", low=0.0, high=1.0)
    opening_plies: int = option(10, "Random plies before a game, at most.", low=0)
    channels: int = option(32, "Of the network.", low=1, high=512)
    blocks: int = option(4, "Of the network, two convolutions each.", low=1, high=40)
    batch_size: int = option(512, "Positions a step.", low=1, high=1 << 20, was="batch")
    learning_rate: float = option(
        2e-3, "Adam's at the beginning; it falls to 0 over all rounds.", low=1e-8, high=1.0, was="rate"
    )
    precision: str = option("auto", "While learning; auto is the faster one here.", choices=("auto", *PRECISIONS))
    value_weight: float = option(
        4.0, "Of the value's squared error, in shares of the board, beside the policy's entropy.", low=0.0, high=1e6
    )
    games: int = option(100, "Against each baseline after a round.", low=2, high=100_000, even=True)

    def __post_init__(self) -> None:
        if self.precision == "auto":
            object.__setattr__(self, "precision", faster_precision())
        super().__post_init__()
        check_whole("opening_plies", self.opening_plies, 0, self.rules.square_count - 6)
        self.plan  # noqa: B018 - refuses a labeller that is none

    @property
    def architecture(self) -> Architecture:
        """The network's shape."""
        from train.rl.network import Architecture

        return Architecture(self.channels, self.blocks)

    @property
    def plan(self) -> Plan:
        """Who labels which positions; the evaluator is `SELF` where it is the network in training."""
        spec = AgentSpec.parse(self.labeller)
        return _own_plan(spec) if spec.name == SELF else labeller_plan(spec)


def faster_precision() -> str:
    """``bfloat16`` where the CPU multiplies matrices of it (AMX), else ``single``."""
    with extra_libraries():
        import torch
    supported = getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    return "bfloat16" if supported() else "single"


def preset(size: int = 6, variant: Variant = "normal", **changes: Any) -> ExpertOptions:
    """The options that did well for a game, with *changes*."""
    return ExpertOptions(**{"size": size, "variant": variant, **PRESETS.get(size, {}), **changes})


def _own_plan(spec: AgentSpec) -> Plan:
    """``self[:depth=2,exact=12]``."""
    ranges = {"depth": (SELF_DEPTHS[0], SELF_DEPTHS[-1]), "exact": (0, DEEPEST)}
    numbers = option_numbers(spec, ranges, "depth or exact")
    return Plan(numbers.get("exact", SELF_EXACT), SELF, numbers.get("depth", 2))
