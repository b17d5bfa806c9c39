"""`PuzzleOptions`; nothing heavy is imported, since the help of `reversi puzzles` reads them."""

from __future__ import annotations

from dataclasses import dataclass

from reversi_env.errors import TrainError
from reversi_env.options import GameOptions, option
from train.labels.options import LabelOptions

#: Candidates solved between two visits to the disk, and of all for each puzzle that is wanted.
BATCH, CANDIDATES_PER_PUZZLE = 128, 40
#: No number of levels that miss a puzzle has more than this share of all puzzles.
MAX_SHARE_PER_DIFFICULTY = 0.2


@dataclass(frozen=True)
class PuzzleOptions(GameOptions):
    """Which puzzles; the same options give the same ones."""

    count: int = option(1000, "Number of puzzles.", low=1, high=100_000)
    empties: tuple[int, int] = option((8, 14), "Number of empties, such as 8-14.")
    margin: int = option(4, "Minimum gap between the best and the second-best move, in discs.", low=2, high=64)
    seed: int = option(0, "Random seed.", low=0, high=(1 << 32) - 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size == 4:
            raise TrainError("puzzles on the 4x4 board, which has too few positions: expected size 6 or 8")
        low, high = self.empties
        if not 3 <= low <= high <= 16:
            raise TrainError(f"empties={low}-{high}: expected a range from 3 to 16")

    @property
    def candidates(self) -> LabelOptions:
        """Where the positions come from: a shard is a batch."""
        count = CANDIDATES_PER_PUZZLE * max(BATCH, self.count)
        return LabelOptions(self.size, self.variant, count, self.empties, self.seed, shard_rows=BATCH, block_rows=count)

    @property
    def max_per_difficulty(self) -> int:
        """Puzzles that so many levels miss and no others, at most."""
        return max(1, round(MAX_SHARE_PER_DIFFICULTY * self.count))
