"""Options of datasets of tokens, of the training of a sequence model, with presets for each board and device, and of its probes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from reversi_env.options import GameOptions, Options, option
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
        from models.gpt.tokens import Vocabulary  # help does not import numpy

        return Vocabulary(self.size, self.passes, self.start, self.rules)

    @property
    def variants(self) -> list[Rules]:
        variants: tuple[Variant, ...] = ("normal", "reversed") if self.variant == "both" else (self.variant,)
        return [Rules(self.size, variant) for variant in variants]


@dataclass(frozen=True)
class GPTOptions(GameOptions):
    """A GPT that is trained on a stream of games; defaults for Othello-GPT's model of 8x8 on one GPU."""

    size: int = option(8, "Board size: 4, 6 or 8 (default: 8).")
    mixed: bool = option(False, "Train one model on both variants, with a token of the variant in front of each game.")
    source: str = option(
        "random", "Games: random, a file of recorded games, or agents with a temperature such as network:depth=2@1."
    )
    n_layer: int = option(8, "Layers of the model.", low=1, high=64)
    n_head: int = option(8, "Attention heads of each layer.", low=1, high=64)
    n_embd: int = option(512, "Width of the model, a multiple of --n-head.", low=1, high=4096)
    steps: int = option(30_000, "Gradient steps.", low=1, high=10**8)
    minutes: float = option(
        0.0, "Time limit in minutes, in place of --steps; the learning rate then follows the time (0: none).", low=0.0
    )
    batch_size: int = option(2048, "Batch size, in games.", low=1, high=1 << 20)
    learning_rate: float = option(1e-3, "Maximum learning rate (AdamW); cosine decay to 0.", low=1e-8, high=1.0)
    warmup_steps: int = option(500, "Steps of the learning rate's warm-up.", low=1, high=10**6)
    weight_decay: float = option(0.1, "Weight decay of the matrices.", low=0.0, high=10.0)
    eval_every: int = option(
        1000, "Steps between evaluations on held-out games, each with a checkpoint.", low=1, high=10**8
    )
    eval_games: int = option(16_384, "Held-out games.", low=1, high=1 << 20)
    prefix: int = option(8, "First moves of a game that no training game shares with a held-out one.", low=4)
    seed: int = option(0, "Random seed of the whole run.", low=0, high=2**31 - 1)
    device: Literal["cpu", "cuda"] = option("cpu", "Device for games and training: cpu or cuda (default: cpu).")

    @property
    def variants(self) -> tuple[Variant, ...]:
        return ("normal", "reversed") if self.mixed else (self.variant,)

    @property
    def games(self) -> Rules | tuple[Rules, ...]:
        """The rules of the games, as streams and labels take them."""
        return tuple(Rules(self.size, variant) for variant in self.variants) if self.mixed else self.rules

    @property
    def vocabulary(self) -> Vocabulary:
        from models.gpt.tokens import Vocabulary  # help does not import numpy

        return Vocabulary(self.size, rules=self.mixed)


_COLUMNS = "n_layer", "n_head", "n_embd", "steps", "batch_size", "warmup_steps", "eval_every", "eval_games", "prefix"
#: For two cores of a CPU, or one GPU.
_PRESETS = {
    (4, "cpu"): (2, 2, 32, 600, 256, 50, 300, 512, 4),
    (6, "cpu"): (4, 4, 96, 3000, 256, 100, 500, 1024, 6),
    (8, "cpu"): (4, 4, 128, 6000, 256, 100, 500, 1024, 8),
    (4, "cuda"): (2, 2, 64, 2000, 1024, 100, 500, 4096, 4),
    (6, "cuda"): (8, 8, 256, 30_000, 2048, 500, 1000, 16_384, 6),
    (8, "cuda"): (8, 8, 512, 15_000, 2048, 500, 1000, 16_384, 8),
}


def preset(size: int = 8, device: str = "cpu", **changes: Any) -> GPTOptions:
    """Return the options of a board on a device, with *changes*."""
    by_size = dict(zip(_COLUMNS, _PRESETS.get((size, device), ()), strict=False))
    options: dict[str, Any] = {**by_size, "size": size, "device": device}
    return GPTOptions(**(options | changes))


@dataclass(frozen=True)
class ProbeOptions(Options):
    """Probes of one model, and interventions by them."""

    labels: tuple[str, ...] = option(
        ("relative", "board", "legal", "flipped", "stable", "parity", "mobility"),
        "Labels: relative (mine, yours, empty), board (black, white, empty), legal, flipped, stable, parity, mobility, values.",
        choices=("relative", "board", "legal", "flipped", "stable", "parity", "mobility", "values"),
    )
    empties: int | None = option(
        None, "Solve positions with at most this many empties for values (default: 10 on 8x8, else 12).", low=0, high=60
    )
    source: str | None = option(None, "Games to probe on (default: those of the model's training).")
    games: int = option(8192, "Held-out games to train the probes on.", low=2, high=1 << 20)
    test_games: int = option(2048, "Held-out games to test the probes on.", low=2, high=1 << 20)
    steps: int = option(2000, "Gradient steps of the probes.", low=1, high=10**6)
    batch_size: int = option(128, "Batch size, in games.", low=1, high=1 << 16)
    hidden: int = option(128, "Hidden units of the two-layer probes (0: none of them).", low=0, high=4096)
    learning_rate: float = option(3e-3, "Learning rate (Adam), with cosine decay.", low=1e-6, high=1.0)
    cases: int = option(
        1000, "Cases of the interventions, half of them to choose layer and scale (0: none).", low=0, high=1 << 16
    )
    seed: int = option(0, "Random seed of probes and cases.", low=0, high=2**31 - 1)
    device: Literal["cpu", "cuda"] = option("cpu", "Device: cpu or cuda.")
