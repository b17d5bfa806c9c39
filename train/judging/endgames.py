"""Where the positions of an `ExactSet` come from: noisy games, or games that were recorded.

All sets are the same for the same options, and no two of their positions are images of each other. They are solved once, and kept
in the user's cache.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reversi_env import Rules, batch
from reversi_env.notation import read_wthor
from train.errors import TrainError
from train.judging.exact import Boards, ExactSet, SolvedFile, unpacked
from train.labels import LabelOptions
from train.labels.sampling import sample_block
from train.options import GameOptions, option
from train.progress import Progress, silent

#: Solved positions that come with the package, a file a game; studies/exam_positions.py makes them.
PACKAGED = Path(__file__).parent / "positions"
#: With one empty square there is no choice; with more than this, solving all moves takes minutes.
FEWEST_EMPTIES, MOST_EMPTIES = 2, 18
DEFAULT_EMPTIES = 14
#: Positions sampled for each that is wanted, at first and at most: with few empties many have a single move.
SHARE, MOST_SHARE = 4, 64


@dataclass(frozen=True)
class EndgameOptions(GameOptions):
    """Positions of noisy games, as many with each number of empty squares, each with a choice of two moves or more.

    By default 2 to 14 empties, on the 4x4 board 2 to 11. Small boards have fewer positions than are wanted near the start; all
    there are that the games come through are taken then.
    """

    positions: int = option(200, "Positions for each number of empty squares.", low=1, high=100_000)
    empties: tuple[int, int] | None = option(None, "Empty squares, as in 2-14, which is the default.")
    seed: int = option(0, "Same seed, same result.", low=0, high=(1 << 32) - 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        most = min(MOST_EMPTIES, self.rules.square_count - 5)
        if self.empties is None:
            object.__setattr__(self, "empties", (FEWEST_EMPTIES, min(DEFAULT_EMPTIES, most)))
        low, high = self.span
        if not FEWEST_EMPTIES <= low <= high <= most:
            raise TrainError(
                f"empties={low}-{high}: expected a range from {FEWEST_EMPTIES} to {most} on the {self.size}x{self.size} board"
            )

    @property
    def span(self) -> tuple[int, int]:
        """Lowest and highest number of empty squares, both included."""
        assert self.empties is not None
        return self.empties

    @property
    def name(self) -> str:
        """What the file with these positions is called."""
        low, high = self.span
        return f"noisy-{self.size}x{self.size}-{self.variant}-{low}-{high}-{self.positions}-{self.seed}"


def noisy_endgames(
    options: EndgameOptions, folder: Path | None = None, *, threads: int | None = None, progress: Progress = silent
) -> ExactSet:
    """The positions of *options*, from the file in *folder* or, the first time, by solving; by default the user's cache."""
    file = SolvedFile(options.name, options.rules, options.as_dict(), folder)
    return file.solved(lambda: _sampled(options, threads), threads=threads, progress=progress)


def _sampled(options: EndgameOptions, threads: int | None) -> tuple[Boards, Boards]:
    """Positions with a choice, as many as are wanted with each number of empties, or all that are found."""
    low, high = options.span
    share = SHARE
    while True:
        count = share * options.positions * (high - low + 1)
        how = LabelOptions(
            *(options.size, options.variant, count, (low, high), options.seed), shard_rows=count, block_rows=count
        )
        own, opp = sample_block(how, 0, threads=threads, fewer=True)
        empties = options.rules.square_count - np.bitwise_count(own | opp).astype(np.int64)
        choice = np.bitwise_count(batch.legal_moves(own, opp, options.rules)) >= 2
        rows = [np.flatnonzero(choice & (empties == e)) for e in range(low, high + 1)]
        short = [
            len(found) < options.positions and int((empties == e).sum()) == share * options.positions
            for e, found in enumerate(rows, low)
        ]
        if not any(short) or share >= MOST_SHARE:
            chosen = np.concatenate([found[: options.positions] for found in rows])
            return own[chosen], opp[chosen]
        share *= 2


# --- recorded games -------------------------------------------------------------------------------


def wthor_files(folder: str | os.PathLike[str] | None = None) -> list[Path]:
    """The ``.wtb`` files in *folder*, by default that of the variable REVERSI_DATA, or in ``wthor`` below it."""
    given = folder if folder is not None else os.environ.get("REVERSI_DATA")
    if given is None:
        raise TrainError(
            "no games: expected a folder with WTHOR files (*.wtb), by --wthor or the variable REVERSI_DATA"
        )
    found = sorted(Path(given).glob("*.wtb")) or sorted((Path(given) / "wthor").glob("*.wtb"))
    if not found:
        raise TrainError(f"no WTHOR files in {str(given)!r}: expected *.wtb there, or in a folder wthor below it")
    return found


def wthor_sample(files: Sequence[Path], empties: int, count: int, seed: int = 0) -> tuple[Boards, Boards]:
    """*count* different positions (own, opp) of recorded games, the same for the same seed."""
    boards = [read_wthor(path).positions(empties) for path in files]
    own, opp = (np.concatenate(side) for side in zip(*boards, strict=True))
    images = np.stack(batch.canonical(own, opp)[:2], axis=-1)
    _, first = np.unique(images, axis=0, return_index=True)
    if first.size < count:
        raise TrainError(f"{first.size} positions with {empties} empty squares: expected at least {count}")
    chosen = np.random.default_rng((seed, empties)).permutation(np.sort(first))[:count]
    return own[chosen], opp[chosen]


def recorded_endgames(
    files: Sequence[Path],
    rules: Rules,
    empties: int,
    count: int,
    seed: int = 0,
    folder: Path | None = None,
    *,
    threads: int | None = None,
    progress: Progress = silent,
) -> ExactSet:
    """*count* positions of WTHOR files with some number of empty squares, from the file in *folder* or by solving."""
    own, opp = wthor_sample(files, empties, count, seed)
    digest = hashlib.sha256(own.tobytes() + opp.tobytes()).hexdigest()[:12]
    name = f"recorded-{rules.size}x{rules.size}-{rules.variant}-{empties}-{count}-{digest}"
    file = SolvedFile(name, rules, {"empties": empties, "positions": digest}, folder)
    return file.solved(lambda: (own, opp), threads=threads, progress=progress, doing=f"{empties} empties")


# --- those of the package -------------------------------------------------------------------------


def packaged_endgames(rules: Rules) -> ExactSet:
    """The package's own solved positions of a game: some hundred with each even number of empty squares from 10 to 20.

    Those of 8x8 normal are of tournament games, the others of games of the network with itself.
    """
    path = PACKAGED / f"{rules.size}x{rules.size}-{rules.variant}.npz"
    if not path.exists():
        raise TrainError(f"no solved positions for {rules.size}x{rules.size}: expected 6x6 or 8x8")
    own, opp, values, _ = unpacked(path.read_bytes(), rules)
    return ExactSet.of_values(rules, own, opp, values)
