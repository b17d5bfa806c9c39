"""Making a data set: sample a block, label it shard by shard, and go on where an earlier run was interrupted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from train.labels import parquet, storage
from train.labels.data import Labels
from train.labels.labellers import Counter, ExactLabeller, Labeller, SearchLabeller, labeller_plan
from train.labels.options import LabelError, LabelOptions
from train.labels.sampling import Boards, block_rows, cut_shard, sample_block, sample_positions
from train.labels.storage import Manifest


class Step(NamedTuple):
    """How far `generate` is: positions of the present block sampled, or rows of the whole data set labelled."""

    stage: Literal["sampling", "labelling"]
    done: int
    total: int


def _nobody(step: Step) -> None:
    pass


def generate(
    options: LabelOptions,
    folder: str | PathLike[str],
    *,
    device: str = "cpu",
    threads: int | None = None,
    progress: Callable[[Step], None] = _nobody,
) -> Manifest:
    """Make the data set in *folder*, or finish it there; its manifest.

    The files depend on the options only. Interrupted in any way, even by ``kill -9``, the same call goes on from the last
    finished shard. A folder begun with other options, and a shard that is not as it was written, raise a `LabelError`.
    *device* ``cuda`` solves on a GPU. *threads* is by default the number of cores.
    """
    path = Path(folder)
    parquet.require_pyarrow()
    if device != "cpu":
        _try_device(options, device)
    with storage.only_writer(path):
        manifest = storage.open_folder(path, options)
        done = {shard for shard in range(options.shards) if storage.is_done(path, manifest, shard)}
        for block in range(options.blocks):
            first = block * options.shards_per_block
            shards = [s for s in range(first, min(first + options.shards_per_block, options.shards)) if s not in done]
            if shards:
                boards = _sample(options, block, threads, progress)
                for shard in shards:
                    rows = sum(len(options.rows(s)) for s in done)
                    count = _counter(progress, "labelling", rows, options.count)
                    labels = label_positions(
                        *cut_shard(options, shard, *boards), options, device=device, threads=threads, progress=count
                    )
                    manifest = storage.add_shard(path, manifest, shard, parquet.to_bytes(labels))
                    done.add(shard)
    return manifest


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
    """Label positions of the options' game as the options say: solved up to some number of empties, searched above."""
    rules, plan = options.rules, labeller_plan(options.labeller)
    empties = (rules.square_count - np.bitwise_count(own | opp)).astype(np.uint8)
    # a search that reaches the end of every game is a slow solver
    exact = empties <= max(plan.exact, plan.depth)
    score = np.zeros(len(own), np.float32)
    labellers: list[tuple[np.ndarray, Labeller]] = [(exact, ExactLabeller(rules, device, threads))]
    if plan.evaluator is not None:
        labellers.append((~exact, SearchLabeller(rules, plan.evaluator, plan.depth, threads)))
    done = 0
    for mask, labeller in labellers:
        if mask.any():
            score[mask] = labeller.label(own[mask], opp[mask], progress=_after(progress, done))
            done += int(mask.sum())
    return Labels(rules, own, opp, score, empties, exact, np.where(exact, empties, plan.depth).astype(np.uint8))


def _sample(
    options: LabelOptions, block: int, threads: int | None, progress: Callable[[Step], None]
) -> tuple[Boards, Boards]:
    count = _counter(progress, "sampling", 0, len(block_rows(options, block)))
    return sample_block(options, block, threads=threads, progress=count)


def _after(progress: Counter, before: int) -> Counter:
    return lambda done: progress(before + done)


def _counter(
    progress: Callable[[Step], None], stage: Literal["sampling", "labelling"], before: int, total: int
) -> Counter:
    return lambda done: progress(Step(stage, before + done, total))


def _try_device(options: LabelOptions, device: str) -> None:
    """Solve one of the longest positions there: a device that cannot is heard of before minutes of sampling."""
    longest = min(options.empties[1], max(options.empties[0], labeller_plan(options.labeller).exact))
    one = replace(options, count=1, empties=(longest, longest), labeller="exact")
    ExactLabeller(options.rules, device).label(*sample_positions(one, 0))
