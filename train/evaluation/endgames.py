"""Positions of an `ExactSet`, solved once and stored in the user's cache; sampling from noisy games.

Equal options give equal sets, without symmetric duplicates.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env import Position, Rules, batch
from reversi_env.errors import TrainError
from reversi_env.storage.user_cache import cache_folder
from search.exact_scores import ExactScores
from train.evaluation.exact_set import ILLEGAL, Boards, ExactSet, move_values
from train.evaluation.options import EndgameOptions
from train.jobs.logs import Progress, load_arrays, no_progress, save_arrays
from train.labels import LabelOptions
from train.labels.sampling import sample_games

FORMAT = 2
#: Positions with more empties are solved one after the other, each by all threads.
BATCH_EMPTIES = 16
TABLE_MIB = 128
#: Positions solved between two writes: in a batch, and one after the other.
BATCH_CHUNK, CHUNK = 512, 8
#: Boards, and the game of each position; None: every position is of a game of its own.
SampledPositions = tuple[Boards, Boards, NDArray[np.int64] | None]
#: Positions sampled per required one, at first and at most, since with few empties many positions have a single move.
SAMPLED_SHARE, MAX_SAMPLED_SHARE = 4, 64


def solve_cached(
    name: str,
    rules: Rules,
    about: Mapping[str, Any],
    sample: Callable[[], SampledPositions],
    folder: Path | None = None,
    *,
    threads: int | None = None,
    progress: Progress = no_progress,
    doing: str = "solving all moves",
) -> ExactSet:
    """Return the positions of *sample* with the values of all moves; those in the file *name* are not solved again.

    The file is in *folder*, by default in the user's cache. *about* describes the positions: a file with another description
    raises a `TrainError`. An interrupted call loses one chunk of positions at most.
    """
    path, about = (folder or cache_folder("solved")) / f"{name}.npz", {"format": FORMAT, **about}
    stored = _read(path, about)
    if stored is None:
        progress("sampling positions", 0, 1)
        stored = *sample(), np.zeros((0, rules.square_count), np.int8)
    own, opp, games, values = stored
    boards = {"own": own, "opp": opp} | ({} if games is None else {"games": games})
    # All threads solve one position, whose moves share the table.
    scores = ExactScores(rules, folder, threads=threads or os.cpu_count() or 1, megabytes=TABLE_MIB)
    while len(values) < len(own):
        start = len(values)
        in_batches = rules.square_count - int(np.bitwise_count(own[start] | opp[start])) <= BATCH_EMPTIES
        rows = slice(start, start + (BATCH_CHUNK if in_batches else CHUNK))
        progress(doing, start, len(own))
        if in_batches:
            new_values = move_values(own[rows], opp[rows], rules, threads=threads)
        else:
            new_values = _move_values_in_turn(own[rows], opp[rows], scores)
        values = np.concatenate([values, new_values])
        path.parent.mkdir(parents=True, exist_ok=True)
        text = np.array(json.dumps(about))
        save_arrays(path, {**boards, "values": values, "about": text}, compressed=True)
    progress(doing, len(own), len(own))
    return ExactSet.of_values(rules, own, opp, values, games)


def _move_values_in_turn(own: Boards, opp: Boards, scores: ExactScores) -> NDArray[np.int8]:
    values = np.full((len(own), scores.rules.square_count), ILLEGAL, np.int8)
    for row, boards in zip(values, zip(own.tolist(), opp.tolist(), strict=True), strict=True):
        for action, value in scores.move_values(Position(scores.rules, *boards)).items():
            row[action] = value
    scores.write()
    return values


def _read(
    path: Path, about: Mapping[str, Any]
) -> tuple[Boards, Boards, NDArray[np.int64] | None, NDArray[np.int8]] | None:
    """Return the positions, and the values of the first of them or of all; None without a file of this format."""
    if not path.exists():
        return None
    own, opp, values, text, games = load_arrays(path, ("own", "opp", "values", "about"), optional=("games",))
    description = json.loads(str(text))
    description.pop("digest", None)  # of an older version
    if description.get("format") != FORMAT:
        return None
    if description != about:
        raise TrainError(f"{str(path)!r} has other positions: expected those of {about}; delete it to solve again")
    return own, opp, games, values


def noisy_endgames(
    options: EndgameOptions, folder: Path | None = None, *, threads: int | None = None, progress: Progress = no_progress
) -> ExactSet:
    """Return the positions of *options*, solved at the first call and stored in *folder*, by default the user's cache."""
    about, sample = options.as_dict(), lambda: _sample(options, threads)
    return solve_cached(options.name, options.rules, about, sample, folder, threads=threads, progress=progress)


def _sample(options: EndgameOptions, threads: int | None) -> SampledPositions:
    """Return positions with two moves or more, as many as required with each number of empties, or all that were sampled."""
    low, high = options.span
    share = SAMPLED_SHARE
    while True:
        count = share * options.positions * (high - low + 1)
        sampled = LabelOptions(options.size, options.variant, count, (low, high), options.seed)
        own, opp, games = sample_games(sampled, threads=threads, fewer=True)
        empties = options.rules.square_count - np.bitwise_count(own | opp).astype(np.int64)
        has_choice = np.bitwise_count(batch.legal_moves(own, opp, options.rules)) >= 2
        rows = [np.flatnonzero(has_choice & (empties == e)) for e in range(low, high + 1)]
        needs_more = [  # a sample below its quota has all positions of the games
            len(part) < options.positions and int((empties == e).sum()) == share * options.positions
            for e, part in enumerate(rows, low)
        ]
        if not any(needs_more) or share >= MAX_SAMPLED_SHARE:
            chosen = np.concatenate([part[: options.positions] for part in rows])
            return own[chosen], opp[chosen], games[chosen]
        share *= 2
