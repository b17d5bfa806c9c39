"""`GameTree`: statistics of recorded games: how often each move of a position was played, and its score."""

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


class RecordedMove(NamedTuple):
    """A recorded move: the number of games with it, and the mean points (0 to 1) and discs of the side that played it."""

    games: int
    points: float
    score: float


class _Moves(NamedTuple):
    """The moves after a number of plies, a row per move of a canonical position, in the order of own, opp and square.

    ``points`` (half points) and ``score`` (discs) are sums over the games for the side that played the move.
    """

    own: NDArray[np.uint64]
    opp: NDArray[np.uint64]
    square: NDArray[np.int8]
    games: NDArray[np.int32]
    points: NDArray[np.int32]
    score: NDArray[np.int32]


class GameTree:
    """The games of all WTHOR files in a folder, up to *plies*; transpositions and symmetric images are one position.

    The moves of a ply are counted at the first lookup (`count`); later lookups are binary searches.
    """

    def __init__(self, folder: str | PathLike[str], plies: int = ALL_PLIES) -> None:
        self._files = [_read(path) for path in wthor_files(folder)]
        self._plies = plies
        self._counted: dict[int, _Moves] = {}

    def __len__(self) -> int:
        return sum(map(len, self._files))

    def moves(self, position: Position) -> dict[str, RecordedMove]:
        """Return the recorded moves in *position*, by name, the most frequent first; passes are not recorded."""
        if position.rules != Rules():
            raise ReversiError(f"recorded games for a position of {position.rules}: expected one of {Rules()}")
        ply = ALL_PLIES - position.empties
        if not 0 <= ply < self._plies:
            return {}
        counted, canonical_position = self.count(ply), position.canonical()
        sums: dict[tuple[int, int], np.ndarray] = {}
        for row in rows_of(counted.own, counted.opp, canonical_position):
            after = _image(canonical_position.play(int(counted.square[row])))
            sums[after] = sums.get(after, 0) + np.array([column[row] for column in counted[3:]], np.int64)
        played = {}
        for move in position.legal_moves() if sums else ():
            if (total := sums.get(_image(position.play(move)))) is not None:
                games, points, score = map(int, total)
                played[move] = RecordedMove(games, points / 2 / games, score / games)
        return dict(sorted(played.items(), key=lambda item: -item[1].games))

    def count(self, ply: int) -> _Moves:
        """Return the moves after *ply* moves, counted at the first call. Not thread-safe."""
        if ply not in self._counted:
            own, opp, square, result = map(
                np.concatenate, zip(*(file.played(ply) for file in self._files), strict=True)
            )
            self._counted[ply] = _summed(own, opp, square, result)
        return self._counted[ply]


def _read(path: Path) -> WthorFile:
    """Read a file; an illegal game raises, since its moves would be counted in wrong positions."""
    file = read_wthor(path)
    with within(f"WTHOR file {quoted(path.name)}"):
        for index in np.flatnonzero(file.replay().illegal)[:1]:
            file.game(int(index))  # raises
    return file


def _image(position: Position) -> tuple[int, int]:
    image = position.canonical()
    return image.own, image.opp


def _summed(own: np.ndarray, opp: np.ndarray, square: np.ndarray, result: np.ndarray) -> _Moves:
    """Sum the moves of games by canonical position and the move's image there."""
    own, opp, symmetry = canonical(own, opp)
    square = action_images(8)[symmetry, square].astype(np.int8)
    order = np.lexsort((square, opp, own))
    own, opp, square, result = own[order], opp[order], square[order], result[order].astype(np.int32)
    changes = (own[1:] != own[:-1]) | (opp[1:] != opp[:-1]) | (square[1:] != square[:-1])
    first = np.flatnonzero(np.concatenate([np.full(min(1, own.size), True), changes]))
    games = np.diff(first, append=own.size).astype(np.int32)
    points, score = (np.add.reduceat(column, first, dtype=np.int32) for column in (1 + np.sign(result), result))
    return _Moves(own[first], opp[first], square[first], games, points, score)
