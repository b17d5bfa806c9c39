"""The work of a dataset as jobs for other processes and machines: playing games, and labelling positions.

A job is a few numbers, or boards of at most `MAX_JOB_ROWS` positions (`MAX_GPU_JOB_ROWS` for a GPU) at 16 bytes each; its result
has 28 bytes for each position that a block may take, or 4 for each score. Both fit into a message: nothing large is stored, and a
lost machine loses only its current jobs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np
from numpy.typing import NDArray

from train.jobs.processes import WorkerPool, in_order
from train.labels.dataset import Labels
from train.labels.labellers import Counter, Scores, labeller_plan
from train.labels.options import LabelOptions
from train.labels.sampling import Boards, SamplingPlayers, block_rows

#: Maximum positions and games of a job: about a second of work for one core; a job has an overhead of a millisecond.
MAX_JOB_ROWS, MAX_JOB_GAMES = 5000, 3072
MIN_ROWS, MIN_GAMES = 100, 128
#: Maximum positions of a job on a GPU: 4 MB of boards.
MAX_GPU_JOB_ROWS = 250_000
#: Up to this many empties a job has `MAX_JOB_ROWS` positions; the time of a position grows by this factor per empty.
EASY_EMPTIES, GROWTH_PER_EMPTY = 12, 2.2
#: Minimum number of jobs per worker, so that few workers are idle at the end.
JOBS_PER_WORKER = 8

#: Positions of games: indices into their table (a row per game, a column per number of empties), own boards, other boards, keys.
Positions = tuple[NDArray[np.uint32], Boards, Boards, Boards]


@dataclass(frozen=True)
class PlayJob:
    """Play ``count`` games from index ``first`` on, for a block."""

    number: int
    first: int
    count: int
    block: int
    wanted: NDArray[np.bool_]


@dataclass(frozen=True)
class LabelJob:
    """Label positions."""

    number: int
    own: Boards
    opp: Boards


class LabelWorker:
    """Runs both kinds of jobs. Every result starts with the number of its job."""

    def __init__(
        self,
        options: LabelOptions,
        label: Callable[..., Labels],
        device: str,
        threads: int | None,
        progress: Counter = lambda done: None,
    ) -> None:
        self._options = options
        self._label = partial(label, options=options, device=device, threads=threads, progress=progress)
        self._players: SamplingPlayers | None = None

    def __call__(self, job: PlayJob | LabelJob) -> tuple[int, Scores] | tuple[int, Positions]:
        if isinstance(job, LabelJob):
            return job.number, self._label(job.own, job.opp).score
        return job.number, self._play(job)

    def _play(self, job: PlayJob) -> Positions:
        own, opp, key = (np.zeros((job.count, self._options.strata), np.uint64) for _ in range(3))
        self._players = self._players or SamplingPlayers(self._options)
        with self._players.raising_failures():
            self._players.play(job.first, job.wanted.copy(), own, opp, key)  # Ray's arrays are read-only
        places = np.flatnonzero((key != 0) & (block_of(key, self._options.blocks) == job.block))
        return places.astype(np.uint32), own.flat[places], opp.flat[places], key.flat[places]


def rows_per_job(options: LabelOptions, device: str = "cpu") -> int:
    """Return the maximum positions of a job, such that it takes seconds; on a GPU, which solves many at once."""
    if device == "cuda":
        return MAX_GPU_JOB_ROWS
    solved = min(options.empties[1], labeller_plan(options.labeller).exact)
    return max(MIN_ROWS, int(MAX_JOB_ROWS / GROWTH_PER_EMPTY ** max(0, solved - EASY_EMPTIES)))


def job_size(amount: int, workers: int, minimum: int, maximum: int) -> int:
    """Return the number of units in a job, for an *amount* of units in all."""
    return min(maximum, max(minimum, amount // (JOBS_PER_WORKER * workers)))


def block_of(key: Boards, parts: int) -> NDArray[np.int64]:
    """Return the block, of *parts*, of each key: `train.kernels.noisy_games.random_below` for arrays."""
    half = np.uint64(32)
    return (((key >> half) * np.uint64(parts)) >> half).astype(np.int64)


class PrefetchedGames:
    """Games for `sample_block` that a pool plays in advance; by then, fewer numbers of empties may be needed."""

    def __init__(self, pool: WorkerPool, options: LabelOptions, block: int) -> None:
        self._block, self._strata = block, options.strata
        games = -(-len(block_rows(options, block)) // options.strata) * options.blocks  # estimated
        self._each = job_size(games, pool.size, MIN_GAMES, MAX_JOB_GAMES)
        self._wanted: NDArray[np.bool_] = np.ones(options.strata, np.bool_)
        self._first, self._begun, self._finished = 0, False, False
        self._games = in_order(pool.results(self._jobs()))
        self._rows = [np.zeros((0, options.strata), np.uint64) for _ in range(3)]

    def __call__(self, first: int, games: int, wanted: NDArray[np.bool_]) -> tuple[Boards, Boards, Boards]:
        """Return the next games, in order from the first call's *first* on, which starts the pool."""
        if not self._begun:
            self._first, self._begun = first, True
        self._wanted = wanted.copy()
        parts = [self._rows]
        while sum(len(part[0]) for part in parts) < games:
            parts.append(self._table(next(self._games)))
        columns = [np.concatenate([part[column] for part in parts]) for column in range(3)]
        self._rows = [column[games:] for column in columns]
        own, opp, key = (column[:games] for column in columns)
        return own, opp, key

    def finish(self) -> None:
        """Wait for the last games, which are not needed, so that the pool is free."""
        self._finished = True
        for _ in self._games:
            pass

    def _jobs(self) -> Iterator[PlayJob]:
        for number in count():
            if self._finished:
                return
            yield PlayJob(number, self._first + number * self._each, self._each, self._block, self._wanted)

    def _table(self, positions: Positions) -> list[Boards]:
        places, *columns = positions
        table = []
        for column in columns:
            rows = np.zeros((self._each, self._strata), np.uint64)
            rows.flat[places] = column
            table.append(rows)
        return table


def label_parts(
    pool: WorkerPool, own: Boards, opp: Boards, parts: list[range], max_rows: int | None, progress: Counter
) -> Iterator[Scores]:
    """Yield the scores of the *parts* of a block, in order; *progress* is called with the rows of each job (None: a part)."""
    limit = max_rows or len(own)
    size = limit if max_rows is None else job_size(sum(map(len, parts)), pool.size, min(MIN_ROWS, limit), limit)
    chunks = [[part[start : start + size] for start in range(0, len(part), size)] for part in parts]
    slices = [slice(rows.start, rows.stop) for part in chunks for rows in part]
    jobs = (LabelJob(number, own[rows], opp[rows]) for number, rows in enumerate(slices))

    def counted() -> Iterator[tuple[int, Scores]]:
        for number, scores in pool.results(jobs):
            progress(len(scores))
            yield number, scores

    scores = in_order(counted())
    for part in chunks:
        yield np.concatenate([next(scores) for _ in part])
