"""`ZeroOptions`: everything that decides a training, and good values for each board and device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from train.errors import check_whole
from train.options import option
from train.teacher.options import SelfPlayOptions


@dataclass(frozen=True)
class ZeroOptions(SelfPlayOptions):
    """How the games are played, and how often the network is measured."""

    simulations: int = option(32, "Positions that a search looks at for each move.", low=1, high=10_000)
    method: Literal["gumbel", "puct"] = option("gumbel", "Of the search.")
    considered: int = option(16, "Moves that a Gumbel search begins with.", low=1, high=64)
    exact: int = option(
        0, "Empties from which on positions are solved; 0: none. On a GPU leaves are not.", low=0, high=14
    )
    plies: int = option(10, "Random plies before a game, at most.", low=0)
    trace: float = option(0.9, "Weight of how a game goes on, beside the search's value.", low=0.0, high=1.0)
    evaluate: int = option(
        5, "Generations between two evaluations; the last is after the last steps.", low=1, high=10_000
    )
    ladder: int = option(200, "Games against each rung of the ladder.", low=2, high=100_000, even=True)
    device: Literal["cpu", "cuda"] = option("cpu", "Where it plays and learns.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("plies", self.plies, 0, self.rules.square_count // 2)
        check_whole("exact", self.exact, 0, self.rules.square_count - 6)


#: What differs from the defaults, which are for 8x8 on one GPU.
_SMALL: dict[str, Any] = {"batch_size": 256, "learning_rate": 2e-3, "memory": 8, "strangers": 0.0}
_PRESETS: dict[tuple[int, str], dict[str, Any]] = {
    (4, "cpu"): {
        **_SMALL,
        "generations": 18,
        "games": 256,
        "steps": 200,
        "last_steps": 1200,
        "channels": 16,
        "blocks": 2,
        "simulations": 16,
        "exact": 6,
        "plies": 4,
    },
    (6, "cpu"): {
        **_SMALL,
        "generations": 26,
        "games": 640,
        "steps": 200,
        "last_steps": 1200,
        "channels": 24,
        "blocks": 2,
        "simulations": 8,
        "considered": 4,
        "exact": 8,
        "plies": 8,
    },
    (8, "cpu"): {
        **_SMALL,
        "generations": 60,
        "games": 640,
        "steps": 400,
        "last_steps": 4000,
        "channels": 32,
        "blocks": 3,
        "simulations": 16,
        "considered": 8,
        "exact": 8,
    },
    (4, "cuda"): {
        "generations": 10,
        "games": 4096,
        "last_steps": 1000,
        "channels": 32,
        "blocks": 3,
        "exact": 6,
        "plies": 6,
    },
    (6, "cuda"): {
        "generations": 20,
        "games": 8192,
        "last_steps": 4000,
        "channels": 96,
        "blocks": 6,
        "exact": 12,
        "plies": 8,
    },
    (8, "cuda"): {
        "generations": 17,
        "games": 16_384,
        "last_steps": 7000,
        "blocks": 6,
        "simulations": 16,
        "considered": 8,
        "exact": 14,
        "trace": 0.95,
        "plies": 16,
    },
}


def preset(size: int, device: str, **changes: Any) -> ZeroOptions:
    """Options for a board on two cores of a CPU or on one GPU, with *changes*.

    Those of 8x8 on a CPU, and of the smaller boards on a GPU, are guesses.
    """
    return ZeroOptions(**{**_PRESETS.get((size, device), {}), "size": size, "device": device, **changes})
