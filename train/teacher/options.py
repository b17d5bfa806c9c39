"""`TeacherOptions`: everything that decides a teacher's training, and good values for each board and device.

`SelfPlayOptions` has what any training by play in generations shares (`train.zero`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from train.errors import check_whole
from train.options import GameOptions, option


@dataclass(frozen=True)
class SelfPlayOptions(GameOptions):
    """A training in generations: games of the network with itself, the worth of their positions, and steps to learn it.

    At the end the network learns from all that is remembered, with a rate that falls to 0.
    """

    generations: int = option(18, "Times that games are played and learnt from.", low=1, high=10_000)
    games: int = option(24_576, "Games of a generation.", low=2, high=1 << 22)
    steps: int = option(450, "Steps of a generation.", low=1, high=10**7)
    last_steps: int = option(9_000, "Steps at the end, with a falling rate.", low=0, high=10**8)
    batch_size: int = option(8192, "Positions a step.", low=1, high=1 << 20)
    learning_rate: float = option(1e-3, "Adam's.", low=1e-8, high=1.0)
    memory: int = option(12, "Generations that are remembered.", low=2, high=1000)
    strangers: float = option(0.125, "Share of games in which one side takes what it can.", low=0.0, high=1.0)
    channels: int = option(128, "Of the network.", low=1, high=512)
    blocks: int = option(8, "Of the network, two convolutions each.", low=1, high=64)
    seed: int = option(0, "Of everything.", low=0, high=2**31 - 1)

    def remembered(self, generation: int) -> int:
        """Generations, up to this one, that are learnt from: half of them, since the first ones know little."""
        return max(2, min(self.memory, generation // 2 + 2))


@dataclass(frozen=True)
class TeacherOptions(SelfPlayOptions):
    """How the teacher plays. The first generation's games are random, and only their endgames count."""

    exact: int = option(14, "Empties from which on positions are solved.", low=1, high=16)
    perfect: float = option(0.1, "Share of games played perfectly from there on.", low=0.0, high=1.0)
    aside: float = option(0.2, "Positions after a random move, for each one of a game.", low=0.0, high=1.0)
    simulations: int = option(16, "Positions that a search looks at for each move.", low=1, high=10_000)
    considered: int = option(8, "Moves that the search begins with.", low=1, high=64)
    temperature: float = option(1.0, "Share of the lot in the choice of a move; 0: none.", low=0.0, high=64.0)
    trace: float = option(0.95, "Weight of how a game goes on, beside the search's value.", low=0.0, high=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("exact", self.exact, 1, self.rules.square_count - 8)

    @property
    def fewest(self) -> int:
        """Fewest empties of positions that are learnt: with fewer, whoever uses the network solves them."""
        return max(1, min(8, self.exact - 4))


_SMALL: dict[str, Any] = {
    "generations": 10,
    "games": 384,
    "steps": 150,
    "last_steps": 800,
    "batch_size": 256,
    "channels": 24,
    "blocks": 2,
    "exact": 10,
    "simulations": 8,
    "considered": 4,
    "strangers": 0.0,
}


def preset(size: int, device: str, **changes: Any) -> TeacherOptions:
    """Options that did well for a board: those of one GPU, or such that two cores of a CPU are done in minutes."""
    known: dict[str, Any] = {} if device == "cuda" else dict(_SMALL)
    if size == 4:
        known |= {
            "exact": 6,
            "games": 256,
            "generations": 6,
            "steps": 100,
            "last_steps": 300,
            "channels": 16,
            "blocks": 2,
        }
    elif size == 6 and device == "cuda":
        known |= {"exact": 12, "generations": 12, "last_steps": 6000, "channels": 96, "blocks": 6}
    return TeacherOptions(**{**known, "size": size, **changes})
