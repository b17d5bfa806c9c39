"""`SelfPlayOptions`: everything that decides a training by self-play, and good values for each board and device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from reversi_env.errors import check_integer
from reversi_env.options import GameOptions, option


@dataclass(frozen=True)
class SelfPlayOptions(GameOptions):
    """A training in generations: games of the network with itself, the worth of their positions, and steps to learn it.

    At the end the network learns from all that is remembered, with a rate that falls to 0. The defaults are those for 8x8 on
    one GPU.
    """

    generations: int = option(17, "Times that games are played and learnt from.", low=1, high=10_000)
    games: int = option(16_384, "Games of a generation.", low=2, high=1 << 22)
    steps: int = option(450, "Steps of a generation.", low=1, high=10**7)
    final_steps: int = option(7_000, "Steps at the end, with a falling rate.", low=0, high=10**8)
    batch_size: int = option(8192, "Positions a step.", low=1, high=1 << 20)
    learning_rate: float = option(1e-3, "Adam's.", low=1e-8, high=1.0)
    replay_window: int = option(12, "Generations that are remembered.", low=2, high=1000)
    greedy_share: float = option(0.125, "Share of games in which one side takes what it can.", low=0.0, high=1.0)
    channels: int = option(128, "Of the network.", low=1, high=512)
    blocks: int = option(6, "Of the network, two convolutions each.", low=1, high=64)
    seed: int = option(0, "Of everything.", low=0, high=2**31 - 1)
    simulations: int = option(16, "Positions that a search looks at for each move.", low=1, high=10_000)
    method: Literal["gumbel", "puct"] = option("gumbel", "Of the search.")
    max_considered_actions: int = option(8, "Moves that a Gumbel search begins with.", low=1, high=64)
    temperature: float = option(1.0, "How much the lot counts in the choice of a move.", low=0.0, high=64.0)
    exact: int = option(
        14, "Empties from which on positions are solved; 0: none. On a GPU leaves are not.", low=0, high=16
    )
    plies: int = option(16, "Random plies before a game, at most.", low=0, high=32)
    td_lambda: float = option(0.95, "Weight of how a game goes on, beside the search's value.", low=0.0, high=1.0)
    evaluate: int = option(
        5, "Generations between two evaluations; the last is after the last steps.", low=1, high=10_000
    )
    ladder: int = option(200, "Games against each rung of the ladder; 0: none.", low=0, high=100_000, even=True)
    device: Literal["cpu", "cuda"] = option("cpu", "Where it plays and learns.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("plies", self.plies, 0, self.rules.square_count // 2)
        check_integer("exact", self.exact, 0, self.rules.square_count - 6)

    def remembered(self, generation: int) -> int:
        """Generations, up to this one, that are learnt from: half of them, since the first ones know little."""
        return max(2, min(self.replay_window, generation // 2 + 2))


_COLUMNS = (
    *("generations", "games", "steps", "final_steps", "channels", "blocks"),
    *("simulations", "max_considered_actions", "exact", "plies"),
)
#: For two cores of a CPU, or one GPU. Those for 8x8 on a CPU, and for the smaller boards on a GPU, are guesses.
_SIZES = {
    (4, "cpu"): (18, 256, 200, 1200, 16, 2, 16, 16, 6, 4),
    (6, "cpu"): (26, 640, 200, 1200, 24, 2, 8, 4, 8, 8),
    (8, "cpu"): (60, 640, 400, 4000, 32, 3, 16, 8, 8, 10),
    (4, "cuda"): (10, 4096, 450, 1000, 32, 3, 16, 8, 6, 6),
    (6, "cuda"): (20, 8192, 450, 4000, 96, 6, 16, 8, 12, 8),
    (8, "cuda"): (17, 16_384, 450, 7000, 128, 6, 16, 8, 14, 16),
}
_ON: dict[str, dict[str, Any]] = {
    "cpu": {"batch_size": 256, "learning_rate": 2e-3, "replay_window": 8, "greedy_share": 0.0, "td_lambda": 0.9}
}


def preset(size: int = 8, device: str = "cpu", **changes: Any) -> SelfPlayOptions:
    """Options for a board on a device, with *changes*."""
    sizes = dict(zip(_COLUMNS, _SIZES.get((size, device), ()), strict=False))
    known: dict[str, Any] = {**_ON.get(device, {}), **sizes}
    return SelfPlayOptions(**{**known, "size": size, "device": device, **changes})
