"""`TokenOptions`: all that decides a dataset of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from reversi_env.options import Options, option
from reversi_env.rules import Rules, Variant

if TYPE_CHECKING:
    from models.gpt.tokens import Vocabulary


@dataclass(frozen=True)
class TokenOptions(Options):
    """All that decides the content of a dataset of tokens. Equal options give the same tokens on every device."""

    games: int = option(1_000_000, "Number of games.", low=1, high=1 << 40)
    size: int = option(8, "Board size: 4, 6 or 8.")
    variant: Literal["normal", "reversed", "both"] = option("normal", "Rules: normal, reversed, or both in turn.")
    source: str = option(
        "random", "Games: random, a file (GGF, WTHOR), or agents such as network:depth=2+six-factor@1.5."
    )
    split: Literal["train", "validation"] = option("train", "Which games: train, or 1 in 16 for validation.")
    prefix: int = option(8, "First moves that train and validation games never share.", low=4)
    seed: int = option(0, "Random seed.", low=0, high=(1 << 64) - 1)
    passes: bool = option(False, "Write passes as tokens.")
    start: bool = option(False, "Begin every sequence with a start token.")
    rules: bool = option(False, "Begin every sequence with a token of its variant.")
    shard_games: int = option(100_000, "Games per file.", low=1, high=1 << 30)

    def __post_init__(self) -> None:
        super().__post_init__()
        Rules(self.size)

    @property
    def vocabulary(self) -> Vocabulary:
        from models.gpt.tokens import Vocabulary

        return Vocabulary(self.size, self.passes, self.start, self.rules)

    @property
    def variants(self) -> list[Rules]:
        variants: tuple[Variant, ...] = ("normal", "reversed") if self.variant == "both" else (self.variant,)
        return [Rules(self.size, variant) for variant in variants]
