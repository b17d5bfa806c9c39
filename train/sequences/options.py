"""Options of token streams, of the training of a sequence model, and of its probes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from reversi_env.options import Options, option
from reversi_env.rules import Rules, Variant

if TYPE_CHECKING:
    from models.vocabulary import Vocabulary

Split = Literal["train", "validation"]


@dataclass(frozen=True)
class StreamOptions(Options):
    """Which games a stream has, and their tokens. If they are of both variants, each begins with a token of its variant."""

    size: int = option(8, "Board size: 4, 6 or 8.")
    variant: Literal["normal", "reversed", "both"] = option("normal", "Rules: normal, reversed, or both in turn.")
    source: str = option("random", "Games: random, a file (GGF, WTHOR), or agents as network:depth=2+six-factor@1.5.")
    prefix: int = option(12, "First moves that training and held-out games never share; agents play after them.", low=4)
    seed: int = option(0, "Random seed.", low=0, high=2**31 - 1)
    passes: bool = option(False, "Write passes as tokens.")
    bos: bool = option(False, "Begin every sequence with a BOS token.")
    order: tuple[int, ...] | None = option(None)

    @property
    def rules(self) -> list[Rules]:
        variants: tuple[Variant, ...] = ("normal", "reversed") if self.variant == "both" else (self.variant,)
        return [Rules(self.size, variant) for variant in variants]

    @property
    def vocabulary(self) -> Vocabulary:
        from models.vocabulary import Vocabulary  # help does not import numpy

        return Vocabulary(self.size, self.passes, self.bos, self.variant == "both", self.order)


@dataclass(frozen=True)
class TokenOptions(StreamOptions):
    """All that decides the content of a dataset of tokens. Equal options give the same tokens on every device."""

    games: int = option(1_000_000, "Number of games.", low=1, high=1 << 40)
    split: Split = option("train", "Which games: train, or 1 in 16 for validation.")
    shard_games: int = option(100_000, "Games per file.", low=1, high=1 << 30)


@dataclass(frozen=True)
class GPTOptions(StreamOptions):
    """A GPT that is trained on a stream of games; defaults for a CPU."""

    n_layer: int = option(4, "Layers of the model.", low=1, high=64)
    n_head: int = option(4, "Attention heads of each layer.", low=1, high=64)
    n_embd: int = option(128, "Width of the model, a multiple of --n-head.", low=1, high=4096)
    steps: int = option(3000, "Gradient steps.", low=1, high=10**8)
    batch_size: int = option(256, "Batch size, in games.", low=1, high=1 << 20)
    learning_rate: float = option(
        4e-3, "Maximum learning rate (Muon, AdamW), lower for wide models; cosine decay to 0.", low=1e-8, high=1.0
    )
    eval_every: int = option(500, "Steps between evaluations, each with a checkpoint.", low=1, high=10**8)
    eval_games: int = option(1024, "Held-out games.", low=1, high=1 << 20)
    device: Literal["cpu", "cuda"] = option("cpu", "Device for games and training: cpu or cuda.")


#: Labels that probes read, with the number of classes, 0 for numbers.
CLASSES = {"relative": 3, "board": 3, "legal": 2, "flipped": 2, "stable": 2, "parity": 2, "mobility": 0, "values": 0}


@dataclass(frozen=True)
class ProbeOptions(Options):
    """Probes of one model, and interventions by them."""

    labels: tuple[str, ...] = option(tuple(CLASSES)[:-1], "Labels to probe, also values.", choices=tuple(CLASSES))
    empties: int = option(12, "Most empties of positions whose values are solved.", low=0, high=60)
    depth: int = option(
        0, "Search depth in plies after a move, for values that are not solved (0: none).", low=0, high=60
    )
    source: str | None = option(None, "Games to probe on (default: those of the model's training).")
    ends: int = option(5, "Positions left out at either end of a game.", low=0, high=30)
    games: int = option(8192, "Held-out games to train the probes on.", low=2, high=1 << 20)
    test_games: int = option(1024, "Held-out games to test the probes on.", low=2, high=1 << 20)
    steps: int = option(2000, "Gradient steps of the probes.", low=1, high=10**6)
    hidden: int = option(128, "Hidden units of the two-layer probes (0: none of them).", low=0, high=4096)
    cases: int = option(1000, "Intervention cases, half to choose layer and scale (0: none).", low=0, high=1 << 16)
    seed: int = option(0, "Random seed of probes and cases.", low=0, high=2**31 - 1)
    device: Literal["cpu", "cuda"] = option("cpu", "Device: cpu or cuda.")
