"""`LabelOptions`: all options that decide the content of a dataset of labels and the layout of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reversi_env.errors import TrainError, quoted
from reversi_env.options import GameOptions, option

if TYPE_CHECKING:
    from train.labels.labellers import LabellerPlan

#: Upper bound of the share of random games: they resemble positions inside a search tree more than positions of real play.
MAX_RANDOM_SHARE = 0.2
MAX_ROWS = 1 << 40
#: Maximum number of values of noise, temperature and prefixes.
MAX_CHOICES = 64


@dataclass(frozen=True)
class LabelOptions(GameOptions):
    """The positions of a dataset and their labels. Equal options give the same bytes, on any number of threads.

    Every number of empties gets the same number of positions, or one more if ``count`` is not a multiple. The ``labeller`` is
    ``exact``, or an evaluator with a search depth such as ``six-factor:depth=4``, which solves positions with at most ``exact=``
    empties (by default six more than the depth) and searches the rest; ``zero:FILE`` gives the rest the values of a residual
    network. Up to `MAX_SOLVED_EMPTIES` empties can be solved. Each side of each game draws one of ``noise`` and one of
    ``temperature``: a move that is worse by the temperature is e times as rare. A game draws one of ``prefixes`` and starts with
    a uniform number of random moves below it; positions of this start are not taken. A ``play_depth`` of two plies resembles
    human play more than one. A dataset of *k* blocks plays *k* times as many games, see
    `train.labels.sampling`.
    """

    count: int = option(1_000_000, "Total number of positions.", low=1, high=MAX_ROWS)
    empties: tuple[int, int] = option((10, 14), "Number of empties, such as 12 or 10-14.")
    seed: int = option(0, "Random seed.", low=0, high=(1 << 64) - 1)
    shard_rows: int = option(100_000, "Positions per file.", low=1, high=1 << 30)
    labeller: str = option("exact", "Labeller: exact, an evaluator spec to search with, or zero:FILE.")
    player: str = option("six-factor", "Evaluator that plays the games.")
    play_depth: int = option(2, "Search depth of the player in plies.", low=1, high=12)
    noise: tuple[float, ...] = option(
        (0.0, 0.02, 0.05), "Probabilities of a random move; each side of a game draws one.", low=0, high=1
    )
    temperature: tuple[float, ...] = option(
        (0.5, 1.0, 2.0),
        "Sampling temperatures in discs; each side of a game draws one; 0 plays the best move.",
        low=0,
        high=1000,
    )
    prefixes: tuple[int, ...] = option(
        (4, 10, 20),
        "Opening lengths: each game draws one value N and starts with 0 to N-1 random moves.",
        low=1,
        high=60,
    )
    random_share: float = option(0.03, "Share of games with random moves only.", low=0, high=MAX_RANDOM_SHARE)
    block_rows: int = option(
        1 << 23,
        "Positions per block. A block takes 40 bytes of memory per position; for every block after the first all games are "
        "played again.",
        low=1,
        high=1 << 30,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.empties
        most = self.rules.square_count - 5
        if not 1 <= low <= high <= most:
            raise TrainError(
                f"empties={low}-{high}: expected a range from 1 to {most} on the {self.size}x{self.size} board"
            )
        for name in ("noise", "temperature", "prefixes"):
            if len(getattr(self, name)) > MAX_CHOICES:
                raise TrainError(f"{name}={quoted(getattr(self, name))}: expected at most {MAX_CHOICES} of them")
        from search.evaluators.base import WEIGHTS_SEPARATOR
        from search.evaluators.registry import get_evaluator

        get_evaluator(self.player.partition(WEIGHTS_SEPARATOR)[0])  # only labelling needs the file of its weights
        self.plan()

    def plan(self) -> LabellerPlan:
        """Return which positions the labeller solves, and how it searches the others."""
        from train.labels.labellers import labeller_plan

        return labeller_plan(self.labeller)

    @property
    def strata(self) -> int:
        """Number of different numbers of empties."""
        return self.empties[1] - self.empties[0] + 1

    @property
    def max_solved_empties(self) -> int:
        """Maximum empties of the positions that the labeller solves; 0 if it solves none."""
        solved = min(self.empties[1], self.plan().solved)
        return solved if solved >= self.empties[0] else 0

    @property
    def shards(self) -> int:
        return -(-self.count // self.shard_rows)

    @property
    def shards_per_block(self) -> int:
        """Number of files that are sampled together."""
        return max(1, self.block_rows // self.shard_rows)

    @property
    def blocks(self) -> int:
        return -(-self.shards // self.shards_per_block)

    def rows(self, shard: int) -> range:
        """Return the rows of a shard in the dataset. Row *k* has ``empties[0] + k % strata`` empties."""
        return range(shard * self.shard_rows, min((shard + 1) * self.shard_rows, self.count))
