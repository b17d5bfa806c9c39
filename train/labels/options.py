"""`LabelOptions`: everything that decides what a data set of labels holds, and how its rows are laid out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reversi_env import Rules
from reversi_env.errors import shown
from reversi_env.rules import Variant
from search import evaluators
from train.labels.errors import LabelError
from train.labels.labellers import labeller_plan

#: Boards of random games teach what a search meets on the way, and play never comes to: no more than a fifth of all.
MOST_RANDOM = 0.2
MOST_ROWS = 1 << 40
#: Most values that noise, heat or prefixes may have.
MOST_CHOICES = 64


@dataclass(frozen=True)
class LabelOptions:
    """What to sample and how to label it. Two equal options give the same bytes, on any number of threads.

    * ``size``, ``variant``: the game.
    * ``count``: positions in all, the same number for each number of empties (one more for some if it does not divide).
    * ``empties``: lowest and highest number of empty squares, both included.
    * ``seed``: which games are played.
    * ``shard_rows``: positions a file; the work that an interruption can lose.
    * ``labeller``: ``exact``, or an evaluator with a search depth such as ``six-factor:depth=4``. The latter solves exactly
      what has at most ``exact=`` empties (by default six more than the depth) and searches the rest. Up to `MOST_SOLVED`
      empties can be solved, which only those who label are held to.
    * ``player``: name of the evaluator that chooses the moves that are not random.
    * ``play_depth``: plies that it searches for a move, the move included. Two plies look much more like the play of people
      than one: the same number of labels taught a network tournament positions to 7.5 discs instead of 7.8.
    * ``noise``: probabilities of a random move; each side of each game draws one.
    * ``heat``: temperatures in discs with which the other moves are drawn, 0 for the best move; each side draws one. A
      move that is worse by one temperature is e times as rare.
    * ``prefixes``: a game draws one of these numbers and begins with fewer random moves than that, every number of them
      being as likely. No position of this beginning is taken.
    * ``random_share``: share of games that are random to the end, at most a fifth.
    * ``block_rows``: positions that are sampled and deduplicated together, about 40 bytes of memory each. A data set of *k*
      blocks plays *k* times as many games, see `train.labels.sampling`.
    """

    size: int = 8
    variant: Variant = "normal"
    count: int = 1_000_000
    empties: tuple[int, int] = (10, 14)
    seed: int = 0
    shard_rows: int = 100_000
    labeller: str = "exact"
    player: str = "six-factor"
    play_depth: int = 2
    noise: tuple[float, ...] = (0.0, 0.02, 0.05)
    heat: tuple[float, ...] = (0.5, 1.0, 2.0)
    prefixes: tuple[int, ...] = (4, 10, 20)
    random_share: float = 0.03
    block_rows: int = 1 << 23

    def __post_init__(self) -> None:
        for name in ("empties", "noise", "heat", "prefixes"):  # lists, as JSON has them, are welcome
            value = getattr(self, name)
            object.__setattr__(self, name, tuple(value) if isinstance(value, (list, tuple)) else value)
        rules = self.rules  # refuses a game that does not exist
        for name, least, most in (
            ("count", 1, MOST_ROWS),
            ("seed", 0, (1 << 64) - 1),
            ("shard_rows", 1, 1 << 30),
            ("block_rows", 1, 1 << 30),
            ("play_depth", 1, 12),
        ):
            _check_whole(name, getattr(self, name), least, most)
        self._check_empties(rules)
        self._check_noise()
        evaluators.get(self.player)
        labeller_plan(self.labeller)

    @property
    def rules(self) -> Rules:
        """The game."""
        return Rules(self.size, self.variant)

    @property
    def strata(self) -> int:
        """How many numbers of empties there are."""
        return self.empties[1] - self.empties[0] + 1

    @property
    def most_solved(self) -> int:
        """Most empties of the positions that the labeller solves; 0 if it solves none."""
        solved = min(self.empties[1], labeller_plan(self.labeller).solved)
        return solved if solved >= self.empties[0] else 0

    @property
    def shards(self) -> int:
        """How many files there will be."""
        return -(-self.count // self.shard_rows)

    @property
    def shards_per_block(self) -> int:
        """How many files are sampled together."""
        return max(1, self.block_rows // self.shard_rows)

    @property
    def blocks(self) -> int:
        """How many times games are played, each time for another part of the hash space."""
        return -(-self.shards // self.shards_per_block)

    def rows(self, shard: int) -> range:
        """The row numbers, within the whole data set, of a shard. Row *k* has ``empties[0] + k % strata`` empties."""
        return range(shard * self.shard_rows, min((shard + 1) * self.shard_rows, self.count))

    def as_dict(self) -> dict[str, Any]:
        """The options as JSON has them."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    def _check_empties(self, rules: Rules) -> None:
        most = rules.square_count - 5
        pair = self.empties
        if not (isinstance(pair, tuple) and len(pair) == 2 and all(_is_whole(n) for n in pair)):
            raise LabelError(f"empties={shown(pair)}: expected two whole numbers, lowest and highest")
        if not 1 <= pair[0] <= pair[1] <= most:
            raise LabelError(
                f"empties={pair[0]}-{pair[1]}: expected a range from 1 to {most} on the {self.size}x{self.size} board"
            )

    def _check_noise(self) -> None:
        noises = self.noise if isinstance(self.noise, tuple) else ()
        if not 0 < len(noises) <= MOST_CHOICES or not all(_is_number(p) and 0 <= p <= 1 for p in noises):
            raise LabelError(f"noise={shown(self.noise)}: expected one or more probabilities from 0 to 1")
        heats = self.heat if isinstance(self.heat, tuple) else ()
        if not 0 < len(heats) <= MOST_CHOICES or not all(_is_number(heat) and 0 <= heat <= 1000 for heat in heats):
            raise LabelError(f"heat={shown(self.heat)}: expected one or more temperatures from 0 to 1000 discs")
        lengths = self.prefixes if isinstance(self.prefixes, tuple) else ()
        if not 0 < len(lengths) <= MOST_CHOICES or not all(_is_whole(n) and 1 <= n <= 60 for n in lengths):
            raise LabelError(f"prefixes={shown(self.prefixes)}: expected one or more whole numbers from 1 to 60")
        if not (_is_number(self.random_share) and 0 <= self.random_share <= MOST_RANDOM):
            raise LabelError(f"random_share={shown(self.random_share)}: expected a number from 0 to {MOST_RANDOM}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and bool(np.isfinite(value))


def _check_whole(name: str, value: Any, least: int, most: int) -> None:
    if not _is_whole(value) or not least <= value <= most:
        raise LabelError(f"{name}={shown(value)}: expected a whole number from {least} to {most}")
