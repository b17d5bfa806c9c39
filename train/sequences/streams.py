"""`GameStream`: endless batches of games as tokens, born on the device that trains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import numpy as np

from models.gpt.tokens import PADDING, Vocabulary
from reversi_env import Rules
from reversi_env.errors import TrainError, check_integer, extra_libraries, quoted
from train.kernels import sequences
from train.sequences.sources import GameSource, RandomGames, Selection, boards_of, parse_source

with extra_libraries():
    import torch
    from torch.utils.data import IterableDataset, get_worker_info

Split = Literal["train", "validation"]
#: Moves whose hash decides the split: the default, and the fewest with which both splits have games on every board.
PREFIX, MIN_PREFIX = 8, 4


class GameStream(IterableDataset[torch.Tensor]):
    """Batches of games as tokens: uint8 tensors ``(batch_size, vocabulary.length)`` with 0 after the end, endlessly.

    Batch *k* depends on the arguments and *k* alone. A GPU plays the same random games as a CPU. ``skip_to(state)`` resumes a
    stream. With several processes of a ``DataLoader`` each makes its share of the batches, in order.

    Args:
        rules: the game, or games that differ in the variant alone, which take turns.
        vocabulary: the tokens.
        batch_size: games per batch.
        seed: random seed of the games.
        device: of the batches, ``"cpu"`` or ``"cuda"``. Random games are also played there.
        split: the hash of a game's first *prefix* moves decides whether it is for training or, 1 in 16, for validation. Seed and
            variant do not count, so games of the two splits never have the same first *prefix* moves.
        source: of the games: ``"random"`` (uniformly random moves), agents or files (`train.sequences.sources.parse_source`).

    """

    def __init__(
        self,
        rules: Rules | Sequence[Rules],
        vocabulary: Vocabulary,
        batch_size: int,
        *,
        seed: int,
        device: str | torch.device = "cpu",
        split: Split = "train",
        prefix: int = PREFIX,
        source: GameSource | str = "random",
    ) -> None:
        self.rules = [rules] if isinstance(rules, Rules) else list(rules)
        if {(one.size, one.start) for one in self.rules} != {(vocabulary.size, one.start) for one in self.rules[:1]}:
            raise TrainError(f"rules={quoted(rules)}: expected games of size {vocabulary.size} with one start")
        check_integer("batch_size", batch_size, 1)
        check_integer("seed", seed, 0, (1 << 64) - 1)
        check_integer("prefix", prefix, MIN_PREFIX)
        if split not in get_args(Split):
            raise TrainError(f"split={quoted(split)}: expected train or validation")
        self._source = parse_source(source, self.rules[0]) if isinstance(source, str) else source
        self.vocabulary, self.batch_size, self.device = vocabulary, batch_size, torch.device(device)
        self._selection = Selection(seed, prefix, split == "validation")
        self._prefixes = np.array([[*vocabulary.prefix(one.variant), PADDING] for one in self.rules], np.uint8)
        self.state = 0  #: number of the next batch

    def skip_to(self, batch: int) -> None:
        """Go on with batch number *batch*, counted from 0."""
        self.state = batch

    def __iter__(self) -> Iterator[torch.Tensor]:
        worker = get_worker_info()
        own, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        while True:
            self.state += step
            yield self.batch(self.state - step + own)

    def batch(self, number: int) -> torch.Tensor:
        """Return batch *number*, counted from 0."""
        count, first, tables = (
            self.batch_size,
            number * self.batch_size,
            (self.vocabulary.token_of_square, self._prefixes),
        )
        tokens = torch.empty((count, self.vocabulary.length), dtype=torch.uint8)
        if isinstance(self._source, RandomGames) and self.device.type == "cuda":
            from train.sequences.gpu import random_tokens

            return random_tokens(tokens.shape, tables, boards_of(self.rules[0]), first, self._selection, self.device)
        numbers = np.arange(first, first + count, dtype=np.uint64)
        squares = np.empty((count, sequences.MAX_SQUARES), np.uint8)
        for turn, rules in enumerate(self.rules):
            rows = slice((turn - first) % len(self.rules), None, len(self.rules))
            squares[rows] = self._source.games(rules, numbers[rows], self._selection)
        sequences.tokens_of_games(count, squares, *tables, np.uint64(first), tokens.numpy())
        return tokens.to(self.device)
