"""`PuzzleOptions`, `EndgameOptions` and `WholeGameOptions`; the help of the commands reads them, so imports are light."""

from dataclasses import dataclass

from reversi_env.errors import TrainError
from reversi_env.options import GameOptions, option
from train.labels.options import LabelOptions

#: Candidates solved between two writes, and the maximum number of candidates per puzzle.
BATCH, CANDIDATES_PER_PUZZLE = 128, 40
#: Maximum share of the puzzles that one number of levels misses.
MAX_SHARE_PER_DIFFICULTY = 0.2
#: With one empty square there is no choice; with more than this on 8x8, solving all moves takes minutes.
MIN_EMPTIES, MAX_EMPTIES = 2, 18
DEFAULT_EMPTIES = 14


@dataclass(frozen=True)
class PuzzleOptions(GameOptions):
    """Which puzzles to make; equal options give equal puzzles."""

    count: int = option(1000, "Number of puzzles.", low=1, high=100_000)
    empties: tuple[int, int] = option((8, 14), "Range of the number of empty squares, such as 8-14.")
    margin: int = option(4, "Minimum gap between the best and the second-best move, in discs.", low=2, high=64)
    seed: int = option(0, "Random seed.", low=0, high=(1 << 32) - 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size == 4:
            raise TrainError("puzzles on the 4x4 board, which has too few positions: expected size 6 or 8")
        low, high = self.empties
        if not 3 <= low <= high <= 16:
            raise TrainError(f"empties={low}-{high}: expected LOW-HIGH from 3 to 16; put the smaller number first")

    @property
    def candidates(self) -> LabelOptions:
        """The sampled positions; a shard is a batch."""
        count = CANDIDATES_PER_PUZZLE * max(BATCH, self.count)
        return LabelOptions(self.size, self.variant, count, self.empties, self.seed, shard_rows=BATCH, block_rows=count)

    @property
    def max_per_difficulty(self) -> int:
        """Maximum number of puzzles that the same number of levels misses."""
        return max(1, round(MAX_SHARE_PER_DIFFICULTY * self.count))


@dataclass(frozen=True)
class EndgameOptions(GameOptions):
    """Positions of noisy games with two legal moves or more, equally many per number of empty squares.

    Small boards have too few positions near the start; then all that occur in the games are used.
    """

    positions: int = option(200, "Positions per number of empties.", low=1, high=100_000)
    empties: tuple[int, int] | None = option(
        None, "Number of empties, such as 4-12 (default: 2-14, on the 4x4 board 2-11)."
    )
    seed: int = option(0, "Random seed.", low=0, high=(1 << 32) - 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        most = MAX_EMPTIES if self.size == 8 else self.rules.square_count - 5
        if self.empties is None:
            object.__setattr__(self, "empties", (MIN_EMPTIES, min(DEFAULT_EMPTIES, most)))
        low, high = self.span
        if not MIN_EMPTIES <= low <= high <= most:
            raise TrainError(
                f"empties={low}-{high}: expected a range from {MIN_EMPTIES} to {most} on the {self.size}x{self.size} board"
            )

    @property
    def span(self) -> tuple[int, int]:
        """Lowest and highest number of empty squares, both included."""
        assert self.empties is not None
        return self.empties

    @property
    def name(self) -> str:
        """Name of the file with these positions."""
        low, high = self.span
        return f"noisy-games-{self.size}x{self.size}-{self.variant}-{low}-{high}-{self.positions}-{self.seed}"


@dataclass(frozen=True)
class WholeGameOptions(GameOptions):
    """Games against perfect play from fixed balanced openings, each played with both colours; the first is the start."""

    agents: tuple[str, ...] = option(("random",), "")
    size: int = option(6, "Board size: 4 or 6.")
    games: int = option(202, "Number of games (even: two per opening).", low=2, high=100_000, even=True)
    seed: int = option(0, "Random seed of the agents.", low=0, high=(1 << 32) - 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size == 8:
            raise TrainError(
                "whole games on 8x8: expected size 4 or 6; positions near the start of 8x8 cannot be solved"
            )
