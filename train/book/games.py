"""`GameTree`: recorded games beside a book – how often each move of a position was played, and how well it scored."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reversi_env import Position, ReversiError, Rules
from reversi_env.notation import WthorFile, read_wthor


class Played(NamedTuple):
    """Games in which a move was played: how many, the share of points it got, and the mean score in discs for who played it."""

    games: int
    points: float
    score: float


class GameTree:
    """The games of all WTHOR files in a folder; transpositions and images count as the same position."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        paths = sorted(path for path in Path(folder).glob("*") if path.suffix.lower() == ".wtb")
        if not paths:
            raise ReversiError(f"folder {str(folder)!r} has no WTHOR files: expected some that end in .wtb")
        self._files: list[WthorFile] = [read_wthor(path) for path in paths]

    def __len__(self) -> int:
        return sum(map(len, self._files))

    def moves(self, position: Position) -> dict[str, Played]:
        """The moves that were played in *position*, by name, the most frequent first; passes are not recorded."""
        if position.rules != Rules():
            raise ReversiError(f"recorded games beside a position of {position.rules}: expected one of {Rules()}")
        found = {}
        if position.is_over() or position.must_pass():
            return {}
        here = [file.through(position)[0] for file in self._files]
        for move in position.legal_moves():
            results = self._results(here, position.play(move))
            if results.size:
                points = float((results > 0).mean() + (results == 0).mean() / 2)
                found[move] = Played(results.size, points, float(results.mean()))
        return dict(sorted(found.items(), key=lambda item: -item[1].games))

    def _results(self, here: list[np.ndarray], after: Position) -> np.ndarray:
        """Results of the games that went on from *here* to the position *after* a move, for who made it."""
        if after.is_over():
            return np.empty(0, np.int64)  # a record says no more of such games than that they ended
        sign = -1
        if after.must_pass():
            after, sign = after.play("pass"), 1
        parts = []
        for before, file in zip(here, self._files, strict=True):
            reached, result = file.through(after)
            parts.append(sign * result[before & reached].astype(np.int64))
        return np.concatenate(parts)
