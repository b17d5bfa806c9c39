"""What spreading labels over workers gains and costs, on this machine: ``python -m studies.spreading``, a JSON object.

For threads of one process, worker processes and Ray workers, one and several of them: games played and positions solved a second
by the jobs of `reversi label`, and a second of the workers' processor time, which other programs' share of the machine does not
change much; the processor time that this process, which hands the jobs out, needs for each; then what it does besides: keeping new
positions, writing shards. `docs/scaling.md` has the arithmetic that follows.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import count
from time import perf_counter, process_time
from typing import Any

import numpy as np

from train.cluster.executor import Executor, WorkerPool
from train.cluster.pool import Processes
from train.labels import LabelOptions, Labels, label_positions
from train.labels.sampling import Players, sample_block
from train.labels.spreading import GAMES, PIECE_ROWS, Games, LabelWorker, Piece
from train.labels.storage import to_bytes


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m studies.spreading", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--empties", type=int, default=12, help="empty squares of the positions, 8x8 (default 12)")
    parser.add_argument("--pieces", type=int, default=4, help=f"jobs of {PIECE_ROWS} positions each")
    parser.add_argument("--games", type=int, default=4, help=f"jobs of {GAMES} games each")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    chosen = parser.parse_args()
    rows = chosen.pieces * PIECE_ROWS
    options = LabelOptions(count=rows, empties=(chosen.empties,) * 2, shard_rows=rows, block_rows=rows)
    print("sampling ...", file=sys.stderr)
    own, opp = sample_block(options, 0)
    wanted = np.ones(options.strata, np.bool_)
    games = [Games(number, number * GAMES, GAMES, 0, wanted) for number in range(chosen.games)]
    cuts = [slice(start, start + PIECE_ROWS) for start in range(0, rows, PIECE_ROWS)]
    pieces = [Piece(number, own[cut], opp[cut]) for number, cut in enumerate(cuts)]
    found: dict[str, Any] = {
        "empties": chosen.empties,
        "cores": os.cpu_count(),
        "bytes": _bytes(options, games[0], pieces[0]),
        "threads": {n: _rate(rows, partial(label_positions, own, opp, options, threads=n)) for n in chosen.workers},
        "driver": _alone(options, own, opp),
    }
    for name, executor in (("processes", _processes), ("ray", _ray)):
        found[name] = {}
        for workers in chosen.workers:
            print(f"{name}, {workers} ...", file=sys.stderr)
            with executor(workers) as hired, hired.workers(TimedWorker, options, label_positions, "cpu", 1) as pool:
                found[name][workers] = _measured(pool, workers, games, pieces)
    print(json.dumps(found, indent=1))


class TimedWorker(LabelWorker):
    """Gives the seconds of processor time that a job took, instead of its result."""

    def __call__(self, job: Games | Piece) -> Any:
        """Do a job."""
        busy = process_time()
        super().__call__(job)
        return process_time() - busy


@contextmanager
def _processes(workers: int) -> Iterator[Executor]:
    yield Processes(workers)


@contextmanager
def _ray(workers: int) -> Iterator[Executor]:
    """A cluster of its own with so many CPUs."""
    import ray

    from train.cluster.on_ray import RayCluster

    ray.init(
        address="local", num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
    )
    try:
        with RayCluster("local") as cluster:
            yield cluster
    finally:
        ray.shutdown()


def _measured(pool: WorkerPool, workers: int, games: list[Games], pieces: list[Piece]) -> dict[str, float]:
    """Rates, and milliseconds of this process for a job; kernels are loaded and workers started before."""
    few = [Piece(number, piece.own[:64], piece.opp[:64]) for number, piece in zip(count(), pieces, strict=False)]
    for _ in range(2):  # also a worker that comes late has had some
        for jobs in (few * workers, games[: 2 * workers]):
            list(pool.results(iter(jobs)))
    found = {}
    for name, jobs, size in (("games", games, GAMES), ("labels", pieces, PIECE_ROWS)):
        busy, began = process_time(), perf_counter()
        seconds = sum(pool.results(iter(jobs)))
        found[f"{name}_per_second"] = len(jobs) * size / (perf_counter() - began)
        found[f"{name}_per_cpu_second"] = len(jobs) * size / seconds
        found[f"{name}_driver_ms_per_job"] = 1000 * (process_time() - busy) / len(jobs)
    empty = [Piece(number, pieces[0].own[:0], pieces[0].opp[:0]) for number in range(1000)]
    busy = process_time()
    found["empty_jobs_per_second"] = _rate(len(empty), lambda: list(pool.results(iter(empty))))
    found["empty_driver_ms_per_job"] = 1000 * (process_time() - busy) / len(empty)
    return found


def _alone(options: LabelOptions, own: np.ndarray, opp: np.ndarray) -> dict[str, float]:
    """What only one process can do: positions a second that it looks at and keeps, and rows a second that it writes."""
    recorded: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def play(first: int, games: int, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        with ThreadPoolExecutor(1) as pool:
            recorded.append(Players(options).on_threads(pool)(first, games, wanted))
        return recorded[-1]

    sample_block(options, 0, play=play)
    looked = sum(int((key != 0).sum()) for _, _, key in recorded)
    again = iter(recorded)
    to_bytes(label_positions(own[:1], opp[:1], options))  # what is imported then
    many = Labels.concatenate([label_positions(own[:PIECE_ROWS], opp[:PIECE_ROWS], options)] * 50)
    return {
        "positions_kept_per_second": _rate(looked, lambda: sample_block(options, 0, play=lambda *_: next(again))),
        "rows_written_per_second": _rate(len(many), lambda: to_bytes(many)),
    }


def _rate(amount: int, work: Callable[[], Any]) -> float:
    began = perf_counter()
    work()
    return amount / (perf_counter() - began)


def _bytes(options: LabelOptions, games: Games, piece: Piece) -> dict[str, int]:
    """Sizes of jobs and results as they travel."""
    worker = LabelWorker(options, label_positions, "cpu", None)
    return {
        "games_job": len(pickle.dumps(games)),
        "games_result": len(pickle.dumps(worker(games))),
        "labels_job": len(pickle.dumps(piece)),
        "labels_result": len(pickle.dumps(worker(piece))),
    }


if __name__ == "__main__":
    measure = import_module("studies.spreading")  # by its name, which workers know

    measure.main()
