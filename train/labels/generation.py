"""Making a data set: sample a block, label it shard by shard, and go on where an earlier run was interrupted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from train.cluster import Executor, Processes, WorkerPool
from train.labels import parquet, storage
from train.labels.data import Labels
from train.labels.errors import LabelError
from train.labels.labellers import (
    Counter,
    ExactLabeller,
    Labeller,
    Scores,
    SearchLabeller,
    check_solvable,
    labeller_plan,
)
from train.labels.options import LabelOptions
from train.labels.sampling import (
    Boards,
    block_rows,
    block_shards,
    cut_shard,
    rows_in_block,
    sample_block,
    sample_positions,
)
from train.labels.spreading import GamesAhead, LabelWorker, label_pieces, piece_rows
from train.labels.storage import Manifest
from train.run import Run


class Step(NamedTuple):
    """How far `generate` is: positions of the present block sampled, or rows of the whole data set labelled."""

    stage: Literal["sampling", "labelling"]
    done: int
    total: int


class Found(NamedTuple):
    """What earlier runs left in a folder: whole shards, and the positions in them."""

    shards: int
    rows: int


def _nobody(step: Step) -> None:
    pass


def _nobody_asks(found: Found) -> None:
    pass


def generate(
    options: LabelOptions,
    folder: str | PathLike[str],
    *,
    device: str = "cpu",
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[Step], None] = _nobody,
    found: Callable[[Found], None] = _nobody_asks,
) -> Manifest:
    """Make the data set in *folder*, or finish it there; its manifest.

    The files depend on the options only. Interrupted in any way, even by ``kill -9``, the same call goes on from the last
    finished shard. A folder begun with other options, and a shard that is not as it was written, raise a `LabelError`.
    *device* ``cuda`` solves on a GPU. *threads* is by default the number of cores. An *executor* has games played and
    positions labelled by other processes or machines, each with *threads*, by default one; shards are written here.
    *found* is told once what is there already, when every file has been checked. More empties than can be solved raise a
    `LabelError` before anything is written.
    """
    path = Path(folder)
    search_instead = ", or --labeller network:depth=4, which searches"
    check_solvable(options.most_solved, options.rules, options.labeller, search_instead)
    parquet.require_pyarrow()
    if device != "cpu":
        _try_device(options, device)
    with Run(path):
        manifest = storage.open_folder(path, options)
        done = {shard for shard in range(options.shards) if storage.is_done(path, manifest, shard)}
        rows = sum(len(options.rows(shard)) for shard in done)
        found(Found(len(done), rows))
        if len(done) == options.shards:
            return manifest
        count = _Count(rows, options.count, progress)
        with _workers(options, device, threads, executor, count.within) as pool:
            for block in range(options.blocks):
                if missing := [shard for shard in block_shards(options, block) if shard not in done]:
                    own, opp = _sample(options, block, threads, pool if executor else None, progress)
                    parts = [rows_in_block(options, shard) for shard in missing]
                    scores = label_pieces(pool, own, opp, parts, piece_rows(options) if executor else None, count.add)
                    for shard, score in zip(missing, scores, strict=True):
                        labels = _labelled(*cut_shard(options, shard, own, opp), score, options)
                        manifest = storage.add_shard(path, manifest, shard, parquet.to_bytes(labels))
    return manifest


def _workers(
    options: LabelOptions, device: str, threads: int | None, executor: Executor | None, within: Counter
) -> AbstractContextManager[WorkerPool]:
    """Those who play and label: this process, which tells *within* a piece how far it is, or the executor's."""
    if executor is None:
        return Processes(0).workers(LabelWorker, options, label_positions, device, threads, within)
    return executor.workers(LabelWorker, options, label_positions, device, threads or 1, cpus=threads or 1)


def read(folder: str | PathLike[str], *, verify: bool = True, partial: bool = False) -> Labels:
    """The labels of a folder, in the order of its shards.

    *verify* checks every file against its SHA-256 and names one that is damaged. A data set that is not finished is refused
    unless *partial* asks for what is there.
    """
    path = Path(folder)
    manifest = storage.read_manifest(path)
    options = manifest.options
    if not manifest.complete and not partial:
        raise LabelError(
            f"{str(path)!r} has {len(manifest.shards)} of {options.shards} shards: expected all; run the same "
            f"`reversi label` again to make the others"
        )
    if not manifest.shards:
        raise LabelError(f"{str(path)!r} has no finished shard: expected one or more")
    parts = []
    for shard in manifest.shards:
        data = storage.checked_bytes(path, shard, verify=verify)
        parts.append(parquet.from_bytes(data, options.rules, str(path / shard.file)))
    return Labels.concatenate(parts)


def label_positions(
    own: Boards,
    opp: Boards,
    options: LabelOptions,
    *,
    device: str = "cpu",
    threads: int | None = None,
    progress: Counter = lambda done: None,
) -> Labels:
    """Label positions of the options' game as the options say: solved up to some number of empties, searched above.

    More empties than can be solved raise a `LabelError`.
    """
    rules, plan = options.rules, labeller_plan(options.labeller)
    exact = _is_exact(own, opp, options)
    check_solvable(int(_empties(own, opp, options)[exact].max(initial=0)), rules, options.labeller)
    score = np.zeros(len(own), np.float32)
    labellers: list[tuple[np.ndarray, Labeller]] = [(exact, ExactLabeller(rules, device, threads))]
    if plan.evaluator is not None:
        labellers.append((~exact, SearchLabeller(rules, plan.evaluator, plan.depth, threads, plan.mean)))
    done = 0
    for mask, labeller in labellers:
        if mask.any():
            score[mask] = labeller.label(own[mask], opp[mask], progress=_after(progress, done))
            done += int(mask.sum())
    return _labelled(own, opp, score, options)


def _labelled(own: Boards, opp: Boards, score: Scores, options: LabelOptions) -> Labels:
    """Positions and their scores, with what follows from the options."""
    empties, exact = _empties(own, opp, options), _is_exact(own, opp, options)
    depth = np.where(exact, empties, labeller_plan(options.labeller).depth).astype(np.uint8)
    return Labels(options.rules, own, opp, score, empties, exact, depth)


def _empties(own: Boards, opp: Boards, options: LabelOptions) -> NDArray[np.uint8]:
    return (options.rules.square_count - np.bitwise_count(own | opp)).astype(np.uint8)


def _is_exact(own: Boards, opp: Boards, options: LabelOptions) -> NDArray[np.bool_]:
    """Which positions are solved."""
    plan = labeller_plan(options.labeller)
    return np.asarray(_empties(own, opp, options) <= plan.solved)


class _Count:
    """Rows labelled so far, told as they are done."""

    def __init__(self, done: int, total: int, progress: Callable[[Step], None]) -> None:
        self._done, self._total, self._progress = done, total, progress

    def within(self, rows: int) -> None:
        """So many of the piece at hand are done."""
        self._progress(Step("labelling", self._done + rows, self._total))

    def add(self, rows: int) -> None:
        """A piece of so many is done."""
        self._done += rows
        self.within(0)


def _sample(
    options: LabelOptions, block: int, threads: int | None, pool: WorkerPool | None, progress: Callable[[Step], None]
) -> tuple[Boards, Boards]:
    total = len(block_rows(options, block))

    def count(kept: int) -> None:
        progress(Step("sampling", kept, total))

    if pool is None:
        return sample_block(options, block, threads=threads, progress=count)
    games = GamesAhead(pool, options, block)
    boards = sample_block(options, block, play=games, progress=count)
    games.finish()
    return boards


def _after(progress: Counter, before: int) -> Counter:
    return lambda done: progress(before + done)


def _try_device(options: LabelOptions, device: str) -> None:
    """Solve one of the longest positions there: a device that cannot is heard of before minutes of sampling."""
    longest = min(options.empties[1], max(options.empties[0], labeller_plan(options.labeller).exact))
    one = replace(options, count=1, empties=(longest, longest), labeller="exact")
    ExactLabeller(options.rules, device).label(*sample_positions(one, 0))
