"""Making a data set: sample a block, label it shard by shard, and go on where an earlier run was interrupted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reversi_env.errors import TrainError
from train.jobs.processes import Executor, Processes, WorkerPool
from train.jobs.run import MANIFEST, Progress, Run, silent
from train.labels import dataset as storage
from train.labels.dataset import Labels, Manifest
from train.labels.jobs import GamesAhead, LabelWorker, label_pieces, piece_rows
from train.labels.labellers import (
    Counter,
    Scores,
    check_device,
    check_probcut,
    check_solvable,
    exact_scores,
    labeller_plan,
    residual_scores,
    searched_scores,
)
from train.labels.options import LabelOptions
from train.labels.sampling import Boards, block_rows, block_shards, rows_in_block, sample_block, sample_positions

#: What is kept of the games of a block until it is labelled.
SAMPLED = "games-{:04}.safetensors"


def generate(
    options: LabelOptions,
    folder: str | PathLike[str],
    *,
    device: str = "cpu",
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
    found: Callable[[int, int], None] = lambda shards, rows: None,
) -> Manifest:
    """Make the data set in *folder*, or finish it there; its manifest.

    The files depend on the options only. Interrupted in any way, even by ``kill -9``, the same call goes on from the last
    finished shard. A folder begun with other options, and a shard that is not as it was written, raise a `TrainError`.
    *device* ``cuda`` solves on a GPU. *threads* is by default the number of cores. An *executor* has games played and
    positions labelled by other processes or machines, each with *threads*, by default one; shards are written here.
    *found* is told once how many shards and rows are there already, when every file has been checked; *progress* how many rows
    of a block are sampled, or of all are labelled. More empties than can be solved raise a `TrainError` before anything is written.
    """
    path = Path(folder)
    search_instead = ", or --labeller network:depth=4, which searches"
    check_device(device)
    check_solvable(options.most_solved, options.rules, options.labeller, search_instead, device=device)
    check_probcut(labeller_plan(options.labeller), options.rules)
    storage.require_pyarrow()
    if device != "cpu" and options.most_solved:
        _try_device(options, device)
    hashes = storage.weight_hashes(options)
    with Run(path, file=MANIFEST):
        manifest = storage.open_folder(path, options, hashes)
        done = storage.shards_in_place(path, manifest)
        rows = sum(len(options.rows(shard)) for shard in done)
        found(len(done), rows)
        _forget_games(path, options, done)
        if len(done) == options.shards:
            return manifest
        count = _Count(rows, options.count, progress)
        with _workers(options, device, threads, executor, count.within) as pool:
            for block in range(options.blocks):
                if missing := [shard for shard in block_shards(options, block) if shard not in done]:
                    boards = path / SAMPLED.format(block)
                    own, opp = _sample(options, block, boards, threads, pool if executor else None, progress)
                    parts = [rows_in_block(options, shard) for shard in missing]
                    scores = label_pieces(pool, own, opp, parts, piece_rows(options) if executor else None, count.add)
                    for shard, part, score in zip(missing, parts, scores, strict=True):
                        labels = _labelled(own[part.start : part.stop], opp[part.start : part.stop], score, options)
                        manifest = storage.add_shard(path, manifest, shard, labels)
                    boards.unlink(missing_ok=True)
    return manifest


def _forget_games(folder: Path, options: LabelOptions, done: set[int]) -> None:
    """Remove what was kept of the games of blocks that are labelled: a run may have been killed before it could."""
    for block in range(options.blocks):
        if done.issuperset(block_shards(options, block)):
            (folder / SAMPLED.format(block)).unlink(missing_ok=True)


def _workers(
    options: LabelOptions, device: str, threads: int | None, executor: Executor | None, within: Counter
) -> AbstractContextManager[WorkerPool]:
    """Those who play and label: this process, which tells *within* a piece how far it is, or the executor's."""
    if executor is None:
        return Processes(0).workers(LabelWorker, options, label_positions, device, threads, within)
    return executor.workers(LabelWorker, options, label_positions, device, threads or 1, cpus=threads or 1)


def read(folder: str | PathLike[str], *, partial: bool = False) -> Labels:
    """The labels of a folder, in the order of its shards; one that is damaged is named.

    A data set that is not finished is refused unless *partial* asks for what is there.
    """
    path = Path(folder)
    manifest = storage.read_manifest(path)
    options = manifest.options
    if not manifest.complete and not partial:
        raise TrainError(
            f"{str(path)!r} has {len(manifest.shards)} of {options.shards} shards: expected all; run the same "
            f"`reversi label` again to make the others"
        )
    if not manifest.shards:
        raise TrainError(f"{str(path)!r} has no finished shard: expected one or more")
    return Labels.concatenate([storage.read_shard(path, shard, options.rules) for shard in manifest.shards])


def label_positions(
    own: Boards,
    opp: Boards,
    options: LabelOptions,
    *,
    device: str = "cpu",
    threads: int | None = None,
    progress: Counter = lambda done: None,
) -> Labels:
    """Label positions as the options say: solved up to some number of empties, searched or valued by a network above.

    More empties than can be solved raise a `TrainError`.
    """
    rules, plan = options.rules, labeller_plan(options.labeller)
    empties = _empties(own, opp, options)
    exact = empties <= plan.solved
    check_solvable(int(empties[exact].max(initial=0)), rules, options.labeller, device=device)
    score, solved = np.zeros(len(own), np.float32), int(exact.sum())
    if solved:
        score[exact] = exact_scores(own[exact], opp[exact], rules, device=device, threads=threads, progress=progress)
    if solved < len(own):
        rest = (own[~exact], opp[~exact], rules, plan)

        def count(done: int) -> None:
            progress(solved + done)

        if plan.depth:
            score[~exact] = searched_scores(*rest, threads=threads, progress=count)
        else:
            score[~exact] = residual_scores(*rest, device=device, progress=count)
    return _labelled(own, opp, score, options)


def _labelled(own: Boards, opp: Boards, score: Scores, options: LabelOptions) -> Labels:
    """Positions and their scores, with what follows from the options."""
    plan, empties = labeller_plan(options.labeller), _empties(own, opp, options)
    exact = empties <= plan.solved
    return Labels(options.rules, own, opp, score, empties, exact, np.where(exact, empties, plan.depth).astype(np.uint8))


def _empties(own: Boards, opp: Boards, options: LabelOptions) -> NDArray[np.uint8]:
    return (options.rules.square_count - np.bitwise_count(own | opp)).astype(np.uint8)


class _Count:
    """Rows labelled so far, told as they are done."""

    def __init__(self, done: int, total: int, progress: Progress) -> None:
        self._done, self._total, self._progress = done, total, progress

    def within(self, rows: int) -> None:
        """So many of the piece at hand are done."""
        self._progress("labelling", self._done + rows, self._total)

    def add(self, rows: int) -> None:
        """A piece of so many is done."""
        self._done += rows
        self.within(0)


def _sample(
    options: LabelOptions,
    block: int,
    checkpoint: Path,
    threads: int | None,
    pool: WorkerPool | None,
    progress: Progress,
) -> tuple[Boards, Boards]:
    total = len(block_rows(options, block))

    def count(kept: int) -> None:
        progress("sampling", kept, total)

    if pool is None:
        return sample_block(options, block, threads=threads, checkpoint=checkpoint, progress=count)
    games = GamesAhead(pool, options, block)
    boards = sample_block(options, block, play=games, checkpoint=checkpoint, progress=count)
    games.finish()
    return boards


def _try_device(options: LabelOptions, device: str) -> None:
    """Solve one of the longest positions there: a device that cannot is heard of before minutes of sampling."""
    longest = options.most_solved
    one = replace(options, count=1, empties=(longest, longest), labeller="exact")
    exact_scores(*sample_positions(one, 0), options.rules, device=device)
