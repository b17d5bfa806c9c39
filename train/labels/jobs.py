"""The two kinds of work of a data set as jobs for other processes and machines: playing games, and labelling positions.

A job is a few numbers, or boards of at most `PIECE_ROWS` positions at 16 bytes each; its result has 28 bytes for each position
that a block may keep, or 4 for each score. Both fit into a message: nothing large is ever stored, and a machine that is lost takes
nothing with it but the jobs that it was at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from train.jobs.processes import WorkerPool, in_order
from train.labels.dataset import Labels
from train.labels.labellers import Counter, Scores, labeller_plan
from train.labels.options import LabelOptions
from train.labels.sampling import Boards, Players, block_rows

#: Most positions that are labelled as one job, and most games that are played as one: a second or so of work for one core, since
#: handing out a job costs a millisecond; fewer where there would be too few jobs for everybody.
PIECE_ROWS, GAMES = 5000, 3072
LEAST_ROWS, LEAST_GAMES = 100, 128
#: Up to so many empties; with each one more, a position takes so many times as long to solve.
EASY, HARDER = 12, 2.2
#: Jobs for each worker, at least: the last ones to end leave the others waiting.
SHARES = 8

#: The positions of some games: places in their table (a row a game, a column a number of empties), own boards, other boards, keys.
Positions = tuple[NDArray[np.uint32], Boards, Boards, Boards]


@dataclass(frozen=True)
class Games:
    """Play so many games from number *first* on, for a block."""

    number: int
    first: int
    count: int
    block: int
    wanted: NDArray[np.bool_]


@dataclass(frozen=True)
class Piece:
    """Label these positions."""

    number: int
    own: Boards
    opp: Boards


class LabelWorker:
    """Does both kinds of jobs. Every result begins with the number of its job."""

    def __init__(
        self,
        options: LabelOptions,
        label: Callable[..., Labels],
        device: str,
        threads: int | None,
        progress: Counter = lambda done: None,
    ) -> None:
        self._options, self._label = options, label
        self._how: dict[str, Any] = {"device": device, "threads": threads, "progress": progress}
        self._players: Players | None = None

    def __call__(self, job: Games | Piece) -> tuple[int, Scores] | tuple[int, Positions]:
        """Do a job."""
        if isinstance(job, Piece):
            return job.number, self._label(job.own, job.opp, self._options, **self._how).score
        return job.number, self._play(job)

    def _play(self, job: Games) -> Positions:
        own, opp, key = (np.zeros((job.count, self._options.strata), np.uint64) for _ in range(3))
        self._players = self._players or Players(self._options)
        with self._players.heard():
            self._players.play(job.first, job.wanted.copy(), own, opp, key)  # Ray's arrays are read-only
        places = np.flatnonzero((key != 0) & (part_of(key, self._options.blocks) == job.block))
        return places.astype(np.uint32), own.flat[places], opp.flat[places], key.flat[places]


def piece_rows(options: LabelOptions) -> int:
    """Most positions of a job, so that it does not take minutes: nobody hears of it meanwhile, and a loss costs all of it."""
    solved = min(options.empties[1], labeller_plan(options.labeller).exact)
    return max(LEAST_ROWS, int(PIECE_ROWS / HARDER ** max(0, solved - EASY)))


def share(amount: int, workers: int, least: int, most: int) -> int:
    """How much of an amount of work is one job."""
    return min(most, max(least, amount // (SHARES * workers)))


def part_of(key: Boards, parts: int) -> NDArray[np.int64]:
    """The block, of so many, that keeps positions of this key: `train.kernels.noisy_games.below` for arrays."""
    half = np.uint64(32)
    return (((key >> half) * np.uint64(parts)) >> half).astype(np.int64)


class GamesAhead:
    """Games played by a pool before they are asked for, as `sample_block` wants them.

    They are played with the wants of a moment ago, which were at least as many.
    """

    def __init__(self, pool: WorkerPool, options: LabelOptions, block: int) -> None:
        self._block, self._strata = block, options.strata
        games = -(-len(block_rows(options, block)) // options.strata) * options.blocks  # about so many are needed
        self._each = share(games, pool.size, LEAST_GAMES, GAMES)
        self._wanted: NDArray[np.bool_] = np.ones(options.strata, np.bool_)
        self._first, self._begun, self._over = 0, False, False
        self._played = in_order(pool.results(self._jobs()))
        self._rows = [np.zeros((0, options.strata), np.uint64) for _ in range(3)]

    def __call__(self, first: int, games: int, wanted: NDArray[np.bool_]) -> tuple[Boards, Boards, Boards]:
        """The next games; they are asked for one after the other, and the pool begins when the first are."""
        if not self._begun:
            self._first, self._begun = first, True
        self._wanted = wanted.copy()
        parts = [self._rows]
        while sum(len(part[0]) for part in parts) < games:
            parts.append(self._table(next(self._played)))
        columns = [np.concatenate([part[column] for part in parts]) for column in range(3)]
        self._rows = [column[games:] for column in columns]
        own, opp, key = (column[:games] for column in columns)
        return own, opp, key

    def finish(self) -> None:
        """Wait for the games that nobody needs any more: they are few, and the pool is free then."""
        self._over = True
        for _ in self._played:
            pass

    def _jobs(self) -> Iterator[Games]:
        for number in count():
            if self._over:
                return
            yield Games(number, self._first + number * self._each, self._each, self._block, self._wanted)

    def _table(self, positions: Positions) -> list[Boards]:
        places, *columns = positions
        table = []
        for column in columns:
            rows = np.zeros((self._each, self._strata), np.uint64)
            rows.flat[places] = column
            table.append(rows)
        return table


def label_pieces(
    pool: WorkerPool, own: Boards, opp: Boards, parts: list[range], most: int | None, done: Callable[[int], None]
) -> Iterator[Scores]:
    """The scores of each of the *parts* of a block, in their order. A job has at most so many rows of a part; None: all.

    *done* hears how many rows each piece had, as they come.
    """
    most = len(own) if most is None else share(sum(map(len, parts)), pool.size, min(LEAST_ROWS, most), most)
    cuts = [[part[start : start + most] for start in range(0, len(part), most)] for part in parts]
    pieces = [slice(cut.start, cut.stop) for part in cuts for cut in part]
    jobs = (Piece(number, own[rows], opp[rows]) for number, rows in enumerate(pieces))

    def counted() -> Iterator[tuple[int, Scores]]:
        for number, scores in pool.results(jobs):
            done(len(scores))
            yield number, scores

    scores = in_order(counted())
    for part in cuts:
        yield np.concatenate([next(scores) for _ in part])
