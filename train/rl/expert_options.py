"""`ExpertOptions`: all that decides what an expert iteration learns, and presets for every game."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from reversi_env import Rules
from reversi_env.errors import shown
from reversi_env.extras import extra_libraries
from reversi_env.rules import Variant
from search.batch import DEEPEST
from train.errors import TrainError, check_number, check_whole
from train.labels.labellers import Plan, labeller_plan
from train.rl.network import Architecture

with extra_libraries():
    import torch

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
class ExpertOptions:
    """What is learnt, from whom, and from how much.

    * ``size``, ``variant``: the game.
    * ``seed``: of the network's first weights, the games and the order of learning.
    * ``iterations``: rounds of games, labels and learning.
    * ``positions``: new positions a round, at most; none comes twice, nor an image of another.
    * ``samples``: positions learnt a round, drawn from all rounds so far, each under one of the eight symmetries.
    * ``labeller``: who says what is best. An evaluator searched to a depth, ``network:depth=4,exact=12`` or
      ``six-factor:depth=4``; or ``self:depth=2,exact=12``, a search over the value of the network in training; or ``exact``.
      Positions with at most ``exact`` empty squares are always solved.
    * ``heat``: in discs; of searched moves, one that is worse by that much is e times as rare in what the policy learns. Solved
      positions teach all best moves alike and no other.
    * ``temperatures``: a side of a game draws one of them and plays the policy at it, 0 for the best move.
    * ``noise``: probability of a random move.
    * ``opening_plies``: a game begins with up to so many random plies.
    * ``channels``, ``blocks``: of the network.
    * ``batch``, ``rate``: positions a step of Adam, and its rate at first; it falls to 0 along a cosine over all rounds.
    * ``precision``: of the sums while learning, ``single`` or ``bfloat16``, which is twice as fast on a CPU made for it; by default
      whichever is faster here. Weights, games and judgements are always in single precision.
    * ``value_weight``: of the value's squared error (in shares of the board) beside the policy's cross entropy.
    * ``games``: against each player of the ladder after every round.
    """

    size: int = 6
    variant: Variant = "normal"
    seed: int = 0
    iterations: int = 12
    positions: int = 25_000
    samples: int = 300_000
    labeller: str = "network:depth=4,exact=12"
    heat: float = 1.0
    temperatures: tuple[float, ...] = (0.25, 0.5, 1.0)
    noise: float = 0.03
    opening_plies: int = 10
    channels: int = 32
    blocks: int = 4
    batch: int = 512
    rate: float = 2e-3
    precision: str = "auto"
    value_weight: float = 4.0
    games: int = 100

    def __post_init__(self) -> None:
        if self.precision == "auto":
            object.__setattr__(self, "precision", faster_precision())
        if self.precision not in PRECISIONS:
            raise TrainError(f"precision={shown(self.precision)}: expected auto, {' or '.join(PRECISIONS)}")
        if isinstance(self.temperatures, list):  # as JSON has it
            object.__setattr__(self, "temperatures", tuple(self.temperatures))
        squares = self.rules.square_count  # refuses a game that does not exist
        for name, least, most in (
            ("seed", 0, (1 << 32) - 1),
            ("iterations", 1, 10_000),
            ("positions", 1, 10_000_000),
            ("samples", 1, 1_000_000_000),
            ("opening_plies", 0, squares - 6),
            ("batch", 1, 1 << 20),
            ("games", 2, 100_000),
        ):
            check_whole(name, getattr(self, name), least, most)
        if self.games % 2:
            raise TrainError(
                f"games={self.games}: expected an even number, since every opening is played from both sides"
            )
        for name, least_number, most_number in (
            ("heat", 0.001, 1000.0),
            ("noise", 0.0, 1.0),
            ("rate", 1e-8, 1.0),
            ("value_weight", 0.0, 1e6),
        ):
            check_number(name, getattr(self, name), least_number, most_number)
        if not isinstance(self.temperatures, tuple) or not self.temperatures:
            raise TrainError(f"temperatures={shown(self.temperatures)}: expected one or more numbers")
        for number in self.temperatures:
            check_number("temperatures", number, 0.0, 100.0)
        self.architecture  # noqa: B018 - refuses a shape that is none
        self.plan  # noqa: B018 - and a labeller

    @property
    def rules(self) -> Rules:
        """The game."""
        return Rules(self.size, self.variant)

    @property
    def architecture(self) -> Architecture:
        """The network's shape."""
        return Architecture(self.channels, self.blocks)

    @property
    def plan(self) -> Plan:
        """Who labels which positions; the evaluator is `SELF` where it is the network in training."""
        name, _, _ = self.labeller.partition(":")
        return _own_plan(self.labeller) if name == SELF else labeller_plan(self.labeller)

    def as_dict(self) -> dict[str, Any]:
        """The options as JSON has them."""
        return json.loads(json.dumps(asdict(self)))


def faster_precision() -> str:
    """``bfloat16`` where the CPU multiplies matrices of it (AMX), else ``single``."""
    supported = getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    return "bfloat16" if supported() else "single"


def preset(size: int = 6, variant: Variant = "normal", **changes: Any) -> ExpertOptions:
    """The options that did well for a game, with *changes*."""
    return ExpertOptions(**{"size": size, "variant": variant, **PRESETS.get(size, {}), **changes})


def _own_plan(spec: str) -> Plan:
    """``self[:depth=2,exact=12]``."""
    numbers = {"depth": 2, "exact": SELF_EXACT}
    ranges = {"depth": (SELF_DEPTHS[0], SELF_DEPTHS[-1]), "exact": (0, DEEPEST)}
    for item in filter(None, spec.partition(":")[2].split(",")):
        key, _, text = item.partition("=")
        if key not in numbers:
            raise TrainError(f"option {shown(key)} of labeller {shown(spec)}: expected depth or exact")
        low, high = ranges[key]
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise TrainError(
                f"{key}={shown(text)} of labeller {shown(spec)}: expected a whole number from {low} to {high}"
            )
        numbers[key] = int(text)
    return Plan(numbers["exact"], SELF, numbers["depth"])
