"""`GameTree`: recorded games beside a book – how often each move of a position was played, and how well it scored."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reversi_env import Position, ReversiError, Rules
from reversi_env.batch import action_images, canonical
from reversi_env.errors import quoted
from reversi_env.notation import WthorFile, read_wthor
from reversi_env.notation.text import within
from search.agents.book import rows_of
from train.evaluation.exam import wthor_files

#: Moves of the longest game.
ALL_PLIES = 60


class Played(NamedTuple):
    """Games in which a move was played: how many, the share of points it got, and the mean score in discs for who played it."""

    games: int
    points: float
    score: float


class _Moves(NamedTuple):
    """What was played after some number of moves, a row a move of a canonical position, in the order of own, opp and square.

    The sums are over games: half points and discs, for who played the move.
    """

    own: NDArray[np.uint64]
    opp: NDArray[np.uint64]
    square: NDArray[np.int8]
    games: NDArray[np.int32]
    points: NDArray[np.int32]
    score: NDArray[np.int32]


class GameTree:
    """The games of all WTHOR files in a folder, to so many *plies*; transpositions and images count as the same position.

    A ply's moves are counted when they are first asked for (`count`); from then on a lookup is a binary search.
    """

    def __init__(self, folder: str | PathLike[str], plies: int = ALL_PLIES) -> None:
        self._files = [_read(path) for path in wthor_files(folder)]
        self._plies = plies
        self._counted: dict[int, _Moves] = {}

    def __len__(self) -> int:
        return sum(map(len, self._files))

    def moves(self, position: Position) -> dict[str, Played]:
        """The moves that were played in *position*, by name, the most frequent first; passes are not recorded."""
        if position.rules != Rules():
            raise ReversiError(f"recorded games beside a position of {position.rules}: expected one of {Rules()}")
        ply = ALL_PLIES - position.empties
        if not 0 <= ply < self._plies:
            return {}
        counted, here = self.count(ply), position.canonical()
        sums: dict[tuple[int, int], np.ndarray] = {}
        for row in rows_of(counted.own, counted.opp, here):
            after = _image(here.play(int(counted.square[row])))
            sums[after] = sums.get(after, 0) + np.array([column[row] for column in counted[3:]], np.int64)
        found = {}
        for move in position.legal_moves() if sums else ():
            if (total := sums.get(_image(position.play(move)))) is not None:
                games, points, score = map(int, total)
                found[move] = Played(games, points / 2 / games, score / games)
        return dict(sorted(found.items(), key=lambda item: -item[1].games))

    def count(self, ply: int) -> _Moves:
        """What was played after *ply* moves, counted at the first call; by one thread at a time."""
        if ply not in self._counted:
            own, opp, square, result = map(
                np.concatenate, zip(*(file.played(ply) for file in self._files), strict=True)
            )
            self._counted[ply] = _summed(own, opp, square, result)
        return self._counted[ply]


def _read(path: Path) -> WthorFile:
    """The games of a file, all of them legal: others would be counted where they never were."""
    file = read_wthor(path)
    with within(f"WTHOR file {quoted(path.name)}"):
        for index in np.flatnonzero(file.replay().illegal)[:1]:
            file.game(int(index))  # which says what is wrong with it
    return file


def _image(position: Position) -> tuple[int, int]:
    """The boards that all images of a position have in common."""
    image = position.canonical()
    return image.own, image.opp


def _summed(own: np.ndarray, opp: np.ndarray, square: np.ndarray, result: np.ndarray) -> _Moves:
    """The moves of games, a row a game, summed up by canonical position and the move's image there."""
    own, opp, symmetry = canonical(own, opp)
    square = action_images(8)[symmetry, square].astype(np.int8)
    order = np.lexsort((square, opp, own))
    own, opp, square, result = own[order], opp[order], square[order], result[order].astype(np.int32)
    changes = (own[1:] != own[:-1]) | (opp[1:] != opp[:-1]) | (square[1:] != square[:-1])
    first = np.flatnonzero(np.concatenate([np.full(min(1, own.size), True), changes]))
    games = np.diff(first, append=own.size).astype(np.int32)
    points, score = (np.add.reduceat(column, first, dtype=np.int32) for column in (1 + np.sign(result), result))
    return _Moves(own[first], opp[first], square[first], games, points, score)
