"""Generation of a dataset: sample a block, label it shard by shard, resume an interrupted run."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reversi_env.errors import TrainError
from train.jobs.logs import Progress, no_progress
from train.jobs.processes import Executor, LocalExecutor, WorkerPool
from train.jobs.run import MANIFEST, Run
from train.labels import dataset as storage
from train.labels.dataset import Labels, Manifest
from train.labels.jobs import LabelWorker, PrefetchedGames, label_parts, rows_per_job
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

#: The checkpoint of the games of a block, until the block is labelled.
SAMPLED = "games-{:04}.safetensors"


def generate(
    options: LabelOptions,
    folder: str | PathLike[str],
    *,
    device: str = "cpu",
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress = no_progress,
    on_resume: Callable[[int, int], None] = lambda shards, rows: None,
) -> Manifest:
    """Make the dataset in *folder*, or finish it there, and return its manifest.

    The files depend on the options only. Interrupted in any way, even by ``kill -9``, the same call resumes after the last
    finished shard. A folder started with other options and a corrupted shard raise a `TrainError`. *device* ``cuda`` solves on a
    GPU. *threads* is by default the number of cores. With an *executor*, other processes or machines play games and label
    positions, each with *threads*, by default one; shards are written here. *on_resume* is called once with the numbers of
    finished shards and rows, after a check of their files; *progress* with the number of sampled rows of a block, or of labelled
    rows of the dataset. More empties than can be solved raise a `TrainError` before anything is written.
    """
    path = Path(folder)
    remedy = "; use --labeller network:depth=4, which searches"
    check_device(device)
    check_solvable(options.max_solved_empties, options.rules, options.labeller, remedy, device=device)
    check_probcut(labeller_plan(options.labeller), options.rules)
    storage.require_pyarrow()
    if device != "cpu" and options.max_solved_empties and executor is None:
        _try_device(options, device)
    hashes = storage.weight_hashes(options)
    with Run(path, file=MANIFEST):
        manifest = storage.open_folder(path, options, hashes)
        done = storage.shards_in_place(path, manifest)
        rows = sum(len(options.rows(shard)) for shard in done)
        on_resume(len(done), rows)
        _remove_finished_games(path, options, done)
        if len(done) == options.shards:
            return manifest

        def report(within_job: int, finished: int = 0) -> None:
            nonlocal rows
            rows += finished
            progress("labelling", rows + within_job, options.count)

        with _workers(options, device, threads, executor, report) as pool:
            for block in range(options.blocks):
                if missing := [shard for shard in block_shards(options, block) if shard not in done]:
                    checkpoint = path / SAMPLED.format(block)
                    own, opp = _sample(options, block, checkpoint, threads, pool if executor else None, progress)
                    parts = [rows_in_block(options, shard) for shard in missing]
                    scores = label_parts(
                        *(pool, own, opp, parts),
                        rows_per_job(options, device) if executor else None,
                        partial(report, 0),
                    )
                    for shard, part, score in zip(missing, parts, scores, strict=True):
                        labels = _labelled(own[part.start : part.stop], opp[part.start : part.stop], score, options)
                        manifest = storage.add_shard(path, manifest, shard, labels)
                    checkpoint.unlink(missing_ok=True)
    return manifest


def _remove_finished_games(folder: Path, options: LabelOptions, done: set[int]) -> None:
    """Remove the checkpoints of labelled blocks: a run may have been killed before it removed them."""
    for block in range(options.blocks):
        if done.issuperset(block_shards(options, block)):
            (folder / SAMPLED.format(block)).unlink(missing_ok=True)


def _workers(
    options: LabelOptions, device: str, threads: int | None, executor: Executor | None, progress: Counter
) -> AbstractContextManager[WorkerPool]:
    """Return the executor's workers, or this process, which reports the *progress* within a job."""
    if executor is None:
        return LocalExecutor(0).workers(LabelWorker, options, label_positions, device, threads, progress)
    arguments = (options, label_positions, device, threads or 1)
    return executor.workers(LabelWorker, *arguments, cpus=threads or 1, device="cuda" if device == "cuda" else "cpu")


def read(folder: str | PathLike[str], *, partial: bool = False) -> Labels:
    """Return the labels of a folder, in the order of its shards; an unfinished dataset raises unless *partial* allows it."""
    path = Path(folder)
    manifest = storage.read_manifest(path)
    options = manifest.options
    if not manifest.complete and not partial:
        raise TrainError(
            f"{str(path)!r} has {len(manifest.shards)} of {options.shards} shards: expected all; run the same "
            f"`reversi label` again to finish it"
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
    """Label positions: solved up to some number of empties, searched or valued by a network above.

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
    plan, empties = labeller_plan(options.labeller), _empties(own, opp, options)
    exact = empties <= plan.solved
    return Labels(options.rules, own, opp, score, empties, exact, np.where(exact, empties, plan.depth).astype(np.uint8))


def _empties(own: Boards, opp: Boards, options: LabelOptions) -> NDArray[np.uint8]:
    return (options.rules.square_count - np.bitwise_count(own | opp)).astype(np.uint8)


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
    games = PrefetchedGames(pool, options, block)
    boards = sample_block(options, block, play=games, checkpoint=checkpoint, progress=count)
    games.finish()
    return boards


def _try_device(options: LabelOptions, device: str) -> None:
    """Solve one of the hardest positions, so that an unusable device fails before minutes of sampling."""
    empties = options.max_solved_empties
    single = replace(options, count=1, empties=(empties, empties), labeller="exact")
    exact_scores(*sample_positions(single, 0), options.rules, device=device)
