"""A compiled network that learns from a teacher: positions of its games, and beside them, with what it says about them.

Solved positions keep their scores. The others, and those a random move or two aside of the games, which a search meets far more
often than good play does, are worth what the teacher says. The last moves, which it leaves to a solver, are solved.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from models.boards import bit_counts, legal_moves, turned
from models.player import Player
from models.residual import read_residual
from reversi_env import Rules
from reversi_env.extras import extra_libraries
from train.errors import TrainError
from train.fitting.fit import Epoch, FitOptions, checked_device
from train.fitting.training import Trained, train_in_folder
from train.labels import Labels
from train.labels.data import COLUMNS
from train.labels.labellers import exact_scores
from train.progress import Progress, silent
from train.run import load_arrays, remembered, save_arrays
from train.teacher.games import random_children
from train.teacher.options import TeacherOptions

with extra_libraries():
    import torch
    from torch import Tensor

#: The labels, and the digest in their file of what they were made from.
LABELS, MADE_FROM = "labels.npz", "made_from"
#: Random moves that lead aside of the games, at most.
ASIDE = 2
#: Images under which the teacher sees a position; what it says of them is averaged.
VIEWS = 2
#: Positions that are looked at at a time.
PIECE = 1 << 20


def distil(
    teacher: Path,
    out: Path,
    options: FitOptions,
    *,
    network: str = "deep",
    command: str = "",
    device: str = "cpu",
    threads: int | None = None,
    progress: Progress = silent,
    told: Callable[[Epoch], None] = lambda epoch: None,
) -> Trained:
    """Fit a network to what the teacher in its folder says, in the folder *out*.

    Interrupted in any way, the same call goes on; the labels are made once.
    """
    asked, weights = teacher_of(teacher)
    if out.resolve() == teacher.resolve():
        raise TrainError(f"{str(out)!r} is the teacher's own folder: expected another one")
    data = {"teacher": weights.name, "options": asked.as_dict(), "aside": ASIDE, "views": VIEWS}

    def labels() -> Labels:
        path, digest = out / LABELS, _digest(teacher, data, options.seed)
        if not path.exists():
            made = teacher_labels(teacher, asked, weights, options.seed, device, threads, progress)
            save_arrays(path, {name: getattr(made, name) for name in COLUMNS} | {MADE_FROM: digest})
        *columns, there = load_arrays(path, (*COLUMNS, MADE_FROM))
        if not np.array_equal(there, digest):
            raise TrainError(
                f"{str(path)!r} was made from another teacher or seed: expected the same, or another folder"
            )
        return Labels(asked.rules, *columns)

    how: dict[str, Any] = {"network": network, "command": command, "device": device, "threads": threads}
    return train_in_folder(labels, lambda found: data, out, options, **how, progress=told)


def _digest(teacher: Path, data: dict[str, Any], seed: int) -> np.ndarray:
    """What labels are made from: the teacher, its positions, and how."""
    files = [(path.name, path.stat().st_size) for path in sorted(teacher.glob("positions-*.npz"))]
    text = json.dumps([data, files, seed], sort_keys=True)
    return np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)


def teacher_of(folder: Path) -> tuple[TeacherOptions, Path]:
    """The options and the weights of the finished training in a folder."""
    options = remembered(folder, TeacherOptions)
    found = sorted(folder.glob("teacher-*.safetensors"))
    if options is None or len(found) != 1:
        raise TrainError(
            f"no finished teacher in {str(folder)!r}: expected a folder that `reversi train --teacher` made"
        )
    return options, found[0]


def teacher_labels(
    folder: Path,
    options: TeacherOptions,
    weights: Path,
    seed: int,
    device: str,
    threads: int | None,
    progress: Progress,
) -> Labels:
    """All positions that the folder has, and those aside of them, with what they are worth in discs for the side to move."""
    where, saved = checked_device(device), read_residual(weights)
    if saved.rules != options.rules:
        raise TrainError(f"{str(weights)!r} is for {saved.rules}: expected {options.rules}, as its folder says")
    player = Player(saved.net.to(where))
    generator = torch.Generator(where).manual_seed(seed)
    files, parts = sorted(folder.glob("positions-*.npz")), list[Labels]()
    for number, path in enumerate(files):
        progress("labelling, generations", number, len(files))
        for own, opp, score in _pieces(path, where):
            parts.append(_of_games(player, own, opp, score, options))
            boards = own, opp
            for _ in range(ASIDE):
                boards = _going_on(*random_children(*boards, options.rules, generator), options)
                parts.append(_labels(player, *boards, options.rules))
            parts += _ends(own, opp, options, generator, threads)
    progress("labelling, generations", len(files), len(files))
    return Labels.concatenate(parts)


def _pieces(path: Path, device: torch.device) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Boards and scores of a generation, so many at a time."""
    arrays = load_arrays(path, ("own", "opp", "score"))
    for start in range(0, len(arrays[0]), PIECE):
        own, opp, score = (torch.from_numpy(array[start : start + PIECE]).to(device) for array in arrays)
        yield own, opp, score


def _of_games(player: Player, own: Tensor, opp: Tensor, score: Tensor, options: TeacherOptions) -> Labels:
    """Positions of the games: solved ones keep their scores."""
    found = _labels(player, own, opp, options.rules)
    exact = found.empties <= options.exact
    depth = np.where(exact, found.empties, 0).astype(np.uint8)
    return Labels(
        found.rules,
        found.own,
        found.opp,
        np.where(exact, score.cpu().numpy(), found.score),
        found.empties,
        exact,
        depth,
    )


def _ends(
    own: Tensor, opp: Tensor, options: TeacherOptions, generator: torch.Generator, threads: int | None
) -> Iterator[Labels]:
    """Solved positions with fewer empties than the teacher learns, after random moves: a student has to know them as well."""
    rules = options.rules
    nearest = rules.square_count - bit_counts(own | opp) == options.fewest
    own, opp = own[nearest], opp[nearest]
    for _ in range(options.fewest - 1):
        own, opp = random_children(own, opp, rules, generator)
        mine, theirs = (side.cpu().numpy().view(np.uint64) for side in (own, opp))
        empties = (rules.square_count - np.bitwise_count(mine | theirs)).astype(np.uint8)
        scores = exact_scores(mine, theirs, rules, threads=threads)  # the CPU has them before a GPU has begun
        yield Labels(rules, mine, theirs, scores, empties, np.ones(len(mine), np.bool_), empties)


def _going_on(own: Tensor, opp: Tensor, options: TeacherOptions) -> tuple[Tensor, Tensor]:
    """Positions where a side can move, and that are not left to the solver."""
    rules = options.rules
    moves = legal_moves(own, opp, rules.playable) | legal_moves(opp, own, rules.playable)
    wanted = (moves != 0) & (rules.square_count - bit_counts(own | opp) >= options.fewest)
    return own[wanted], opp[wanted]


def _labels(player: Player, own: Tensor, opp: Tensor, rules: Rules) -> Labels:
    """What the teacher says of positions, in the mean over some of their images."""
    value = torch.zeros(len(own), device=own.device)
    for symmetry in range(VIEWS):
        image = torch.full_like(own, symmetry * 5 % 8)
        value += player.values(turned(own, image), turned(opp, image)) / VIEWS
    value = value.clamp(-rules.square_count, rules.square_count)
    mine, theirs = (side.cpu().numpy().view(np.uint64) for side in (own, opp))
    empties = (rules.square_count - np.bitwise_count(mine | theirs)).astype(np.uint8)
    nothing = np.zeros(len(own), np.uint8)
    return Labels(rules, mine, theirs, value.cpu().numpy(), empties, nothing.astype(np.bool_), nothing)
