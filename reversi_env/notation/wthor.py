"""WTHOR: the game database of the French Othello federation, one ``.wtb`` file per year of tournament games.

All numbers are unsigned and little-endian. A file is a header of 16 bytes and then 68 bytes per game:

====== =================================================================================================================
bytes  header
====== =================================================================================================================
0-3    date of the file: century, year of the century, month, day
4-7    number of games
8-9    number of names: 0 here, used by the files of players (``.jou``) and tournaments (``.trn``)
10-11  year of the games
12     size of the board: 0 or 8 for 8x8 (10x10 exists and is refused)
13     kind: 0 for games (1, solitaire problems, is refused)
14     depth: number of empty squares from which the theoretical score was computed
15     reserved
====== =================================================================================================================

====== =================================================================================================================
bytes  game
====== =================================================================================================================
0-5    numbers of the tournament, of the black player and of the white player
6      black's score
7      black's theoretical score: black's discs if both had played perfectly from *depth* empty squares on
8-67   the moves, ten times the row plus the column, both from 1 (a1 = 11, h1 = 18, a8 = 81); 0 after the last; no
       passes
====== =================================================================================================================

The names are in two files of the same folder, usually ``WTHOR.JOU`` (players) and ``WTHOR.TRN`` (tournaments): the same header,
then 20 or 26 bytes per name, in Latin-1 with trailing zeros, numbered from 0.

Scores are checked against the moves, or learnt from, only where `WthorFile.replay` ends in a finished game: a game that stops
earlier has the tournament's score, which does not follow from its last position (docs/reference/files.md).
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reversi_env.errors import NotationError, count_noun, quoted
from reversi_env.kernels.games import NO_MOVE, positions_with, replay_games
from reversi_env.notation.game import Game, play_recorded
from reversi_env.notation.text import IN_MEMORY, BytesSource, contents, within
from reversi_env.position import Position

SQUARES = 64
_HEADER = struct.Struct("<4BIHH4B")
_COLUMNS = {
    "tournaments": "<u2",
    "black_players": "<u2",
    "white_players": "<u2",
    "scores": "u1",
    "theoretical_scores": "u1",
}
_RECORD = np.dtype([*_COLUMNS.items(), ("moves", "u1", 60)])
_NOT_A_MOVE = -2
#: Bytes of a name in the files of players and of tournaments.
NAME_BYTES = {".jou": 20, ".trn": 26}


_SQUARES_BY_BYTE = np.full(256, _NOT_A_MOVE, np.int8)
_SQUARES_BY_BYTE[0] = NO_MOVE
_SQUARES_BY_BYTE[[10 * (sq // 8 + 1) + sq % 8 + 1 for sq in range(SQUARES)]] = np.arange(SQUARES)


class WthorHeader(NamedTuple):
    """The header of a file; ``created`` is (year, month, day) as written, ``depth`` is in empty squares."""

    created: tuple[int, int, int]
    games: int
    names: int
    year: int
    size: int
    kind: int
    depth: int


class Replays(NamedTuple):
    """The results of replayed games, in arrays with one entry per game."""

    #: Boards of the black and of the white discs after the last legal move (uint64).
    black: np.ndarray
    white: np.ndarray
    #: Number of moves played, passes not counted (int64).
    plies: np.ndarray
    #: Whether the record has an illegal move; the replay stops before it (bool).
    illegal: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class WthorFile:
    """The games of one file as arrays with one entry (``squares``: one row) per game.

    ``squares`` is int8, games x 60: the squares 0-63 in the order they were played, passes left out, `NO_MOVE` (-1)
    after the last. ``scores`` are black's discs as recorded, 0-64, and ``theoretical_scores`` those after perfect play.
    Players and tournaments are numbers into ``player_names`` and ``tournament_names``, which are empty if there are no such
    files. Whether the moves are legal is checked by `game` and `replay` only.
    """

    header: WthorHeader
    tournaments: np.ndarray
    black_players: np.ndarray
    white_players: np.ndarray
    scores: np.ndarray
    theoretical_scores: np.ndarray
    squares: np.ndarray
    player_names: tuple[str, ...] = ()
    tournament_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.squares)

    def game(self, index: int) -> Game:
        """Return game *index*, counted from 0, with its passes; raise if a move is illegal.

        Its tags are ``DT`` (the year), the numbers ``TournamentId``, ``BlackId``, ``WhiteId``, ``TheoreticalScore``, and
        ``Tournament``, if its name is known.
        """
        if not 0 <= index < len(self):
            raise NotationError(f"game {quoted(index)} does not exist: expected 0 to {len(self) - 1}")
        start = position = Position.initial()
        moves: list[str] = []
        with within(f"WTHOR game {index}"):
            for number, name in enumerate(self._names(index), 1):
                with within(f"move {number}"):
                    played, position = play_recorded(position, name)
                moves.extend(played)
        black, white = (_name(self.player_names, column[index]) for column in (self.black_players, self.white_players))
        result = 2 * int(self.scores[index]) - SQUARES
        return Game(start, tuple(moves), black, white, result, tags=self._tags(index))

    def games(self) -> Iterator[Game]:
        return (self.game(index) for index in range(len(self)))

    def replay(self) -> Replays:
        """Replay all games in compiled code, about a million games per second."""
        return Replays(*replay_games(self.squares, *_start()))

    def positions(self, empties: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the position of every game with that many empty squares: boards (own, opp) of the side to move, which has a move.

        Games that end there or earlier are left out.
        """
        if not 0 <= empties <= SQUARES - 4:
            raise NotationError(f"{quoted(empties)} empty squares: expected 0 to {SQUARES - 4}")
        own, opp, reached = positions_with(self.squares, *_start(), empties)
        return own[reached], opp[reached]

    def played(self, plies: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the positions after *plies* moves, the next moves and the results: boards (own, opp), squares, discs (int8).

        Boards and recorded results are for the side that makes the move. Games that end there are left out.
        """
        if not 0 <= plies < SQUARES - 4:
            raise NotationError(f"{quoted(plies)} moves: expected 0 to {SQUARES - 5}")
        squares = self.squares[:, plies]
        own, opp, reached, results = self._scored(plies, self.scores)
        reached &= squares != NO_MOVE
        return own[reached], opp[reached], squares[reached], results[reached]

    def solved_positions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the positions with as many empty squares as the header's depth, and the file's exact scores.

        Boards (own, opp), and int8 scores in discs for the side to move.
        """
        own, opp, reached, scores = self._scored(SQUARES - 4 - self.header.depth, self.theoretical_scores)
        return own[reached], opp[reached], scores[reached]

    def _scored(self, plies: int, discs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return boards (own, opp) after *plies* moves, whether the games reach them, and scores for the side to move.

        *discs* are black's discs at the end.
        """
        own, opp, reached = positions_with(self.squares, *_start(), SQUARES - 4 - plies)
        black = replay_games(self.squares[:, :plies], *_start())[0]
        scores = 2 * discs.astype(np.int64) - SQUARES
        return own, opp, reached, np.where(own == black, scores, -scores).astype(np.int8)

    def _names(self, index: int) -> list[str]:
        rules = Position.initial().rules
        return [rules.name_of(rules.action_of(int(sq))) for sq in self.squares[index] if sq != NO_MOVE]

    def _tags(self, index: int) -> dict[str, str]:
        numbers = {
            "TournamentId": self.tournaments,
            "BlackId": self.black_players,
            "WhiteId": self.white_players,
            "TheoreticalScore": self.theoretical_scores,
        }
        tags = {"DT": str(self.header.year)} | {name: str(values[index]) for name, values in numbers.items()}
        tournament = _name(self.tournament_names, self.tournaments[index])
        return tags if tournament is None else tags | {"Tournament": tournament}


def _start() -> tuple[np.uint64, np.uint64, np.uint64]:
    """Black's discs and white's at the beginning, and the board."""
    start = Position.initial()
    return np.uint64(start.black), np.uint64(start.white), np.uint64(start.rules.playable)


def _name(names: tuple[str, ...], number: int) -> str | None:
    return names[number] if number < len(names) else None


def read_wthor(source: BytesSource) -> WthorFile:
    """Read the games of a ``.wtb`` file, by its path or as its bytes.

    The names of players and tournaments are read, too, if files with them (``.jou``, ``.trn``) lie beside the path's.
    """
    data = contents(source)
    name = f"data {quoted(data[:16])}" if isinstance(source, IN_MEMORY) else f"file {quoted(Path(source).name)}"
    with within(f"WTHOR {name}"):
        header = _read_header(data)
        records = np.frombuffer(data, _RECORD, offset=_HEADER.size)
        squares = _SQUARES_BY_BYTE[records["moves"]]
        _check_moves(records["moves"], squares)
        for column in ("scores", "theoretical_scores"):
            for game in np.flatnonzero(records[column] > SQUARES)[:1]:
                raise NotationError(f"game {game}: {column} {records[column][game]}, expected 0 to {SQUARES} discs")
    columns = {column: records[column].copy() for column in _COLUMNS}
    folder = None if isinstance(source, IN_MEMORY) else Path(source).parent
    players, tournaments = (_names_in(folder, kind) for kind in NAME_BYTES)
    return WthorFile(header, squares=squares, **columns, player_names=players, tournament_names=tournaments)


def read_wthor_names(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The names of a ``.jou`` file (players) or a ``.trn`` file (tournaments), in the order of their numbers."""
    kind = Path(path).suffix.lower()
    with within(f"WTHOR file {quoted(Path(path).name)}"):
        if kind not in NAME_BYTES:
            raise NotationError("expected a name that ends in .jou or .trn")
        data, size = contents(path), NAME_BYTES[kind]
        if len(data) < _HEADER.size:
            raise NotationError(f"{len(data)} bytes: expected a header of {_HEADER.size}")
        count = _HEADER.unpack_from(data)[5]
        if len(data) != _HEADER.size + count * size:
            expected = _HEADER.size + count * size
            raise NotationError(f"{len(data)} bytes: expected {expected} for the header's {count_noun(count, 'name')}")
        names = (data[start : start + size] for start in range(_HEADER.size, len(data), size))
        return tuple(name.partition(b"\0")[0].decode("latin-1").strip() for name in names)


def _names_in(folder: Path | None, kind: str) -> tuple[str, ...]:
    """The names of the first file of that kind in a folder; none if there is no such file."""
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() == kind) if folder is not None else []
    return read_wthor_names(paths[0]) if paths else ()


def _read_header(data: bytes) -> WthorHeader:
    if len(data) < _HEADER.size:
        raise NotationError(f"{len(data)} bytes: expected a header of {_HEADER.size}")
    century, year_of_century, month, day, games, names, year, size, kind, depth, _ = _HEADER.unpack_from(data)
    if size not in (0, 8):
        raise NotationError(f"board size {size}: expected 0 or 8, for 8x8")
    if kind != 0:
        raise NotationError(f"kind {kind}: expected 0, for games")
    if depth > SQUARES - 4:
        raise NotationError(f"depth {depth} of the exact scores: expected at most {SQUARES - 4} empty squares")
    expected = _HEADER.size + games * _RECORD.itemsize
    if len(data) != expected:
        raise NotationError(f"{len(data)} bytes: expected {expected} for the header's {count_noun(games, 'game')}")
    return WthorHeader((100 * century + year_of_century, month, day), games, names, year, size, kind, depth)


def _check_moves(moves: np.ndarray, squares: np.ndarray) -> None:
    for game, ply in np.argwhere(squares == _NOT_A_MOVE)[:1]:
        raise NotationError(f"game {game}, move {ply + 1}: byte {moves[game, ply]}, expected 11 to 88, or 0")
    played = squares != NO_MOVE
    for game, ply in np.argwhere(played[:, 1:] & ~played[:, :-1])[:1]:
        raise NotationError(f"game {game}, move {ply + 2}: byte {moves[game, ply + 1]} after the end, expected 0")
