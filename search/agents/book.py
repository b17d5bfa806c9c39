"""`Book`: positions of the opening with values that were searched out beforehand, under all eight symmetries.

A book holds canonical positions (`reversi_env.batch`), each once, however it was reached. A position's moves are those
that lead to another one of the book: nothing else links them. Its value is the negamax of its moves' or, where no move of it is in
the book, that of a search. `train.book` makes books; this is where they are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import quoted
from reversi_env.storage.checksummed import ChecksumError, pack_checksummed, read_cached, unpack_checksummed

FORMAT = "reversi-book-1"
#: Values are kept in these parts of a disc.
UNITS_PER_DISC = 100
#: The package's own books, and the word by which an agent asks for one of them.
FOLDER = Path(__file__).parent / "books"
PACKAGED = "yes"
#: The share of the margin that a move may lose, by the book's own values, and still be played. They are values of a search, and a
#: deeper one finds some moves worse: those that are played have the rest of the margin in hand. What loses even that, by a deeper
#: search (`train.book.check`), is not played.
PLAYED_SHARE_OF_MARGIN = 1 / 6
#: In place of the value of a deeper search where there was none.
UNCHECKED = np.int16(-32768)
_COLUMNS = {
    "own": np.uint64,
    "opp": np.uint64,
    "value": np.int16,
    "depth": np.uint8,
    "lines": np.uint32,
    "checked": np.int16,
}


class BookError(ReversiError):
    """A book that is not there, not whole, or not of the game that is played."""


class Entry(NamedTuple):
    """A position of a book: its value in discs for the side to move, and how it came about.

    ``depth``: plies of the search behind it, 0 where the value follows from the moves. ``lines``: ways to go on from here to where
    the book ends.
    """

    value: float
    depth: int
    lines: int


class BookMove(NamedTuple):
    """A move of a book: its name, its value in discs for who plays it, and the rest as in `Entry` of the position after it.

    ``plays``: whether the book plays it, and does not only know it: by its own values it loses little, and by those of a check, if
    there was one, no more than the margin.
    """

    move: str
    value: float
    depth: int
    lines: int
    plays: bool


@dataclass(frozen=True, eq=False)
class Book:
    """A book of one game; the arrays have a row a position, in the order of ``own``, then ``opp``.

    ``value`` in `UNITS_PER_DISC` parts of a disc for the side to move; ``checked``: the same by a search deeper than the book's, or
    `UNCHECKED`; ``margin``: discs that a move may be worse than the best of its position; ``about``: what it was made with.
    """

    rules: Rules
    own: NDArray[np.uint64]
    opp: NDArray[np.uint64]
    value: NDArray[np.int16]
    depth: NDArray[np.uint8]
    lines: NDArray[np.uint32]
    checked: NDArray[np.int16]
    margin: float
    about: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.own)

    def find(self, position: Position) -> Entry | None:
        """What the book knows of *position*, or of any image of it; None if it is not in it."""
        row = self._row(position)
        if row is None:
            return None
        return Entry(int(self.value[row]) / UNITS_PER_DISC, int(self.depth[row]), int(self.lines[row]))

    def moves(self, position: Position) -> tuple[BookMove, ...]:
        """The book's moves in *position*, the best first: all that are within the margin; none where the book ends."""
        here = self._row(position)
        if here is None or self.depth[here]:
            return ()
        leads = ((action, self._row(position.play(action))) for action in position.legal_actions())
        after = {action: row for action, row in leads if row is not None}
        good = self._within_margin(here, list(after.values()))
        moves = []
        for action, row in after.items():
            value, depth, lines = -int(self.value[row]), int(self.depth[row]), int(self.lines[row])
            if (loss := (int(self.value[here]) - value) / UNITS_PER_DISC - 1e-9) <= self.margin:
                plays = loss <= PLAYED_SHARE_OF_MARGIN * self.margin and row in good
                moves.append(BookMove(position.rules.name_of(action), value / UNITS_PER_DISC, depth, lines, plays))
        return tuple(sorted(moves, key=lambda move: -move.value))

    def choose(
        self, position: Position, variety: float = 0.0, generator: np.random.Generator | None = None
    ) -> BookMove | None:
        """A move to play: the best that it plays or, with a *generator*, any that is at most *variety* discs worse, by lot.

        None: the book has no move here.
        """
        played = [move for move in self.moves(position) if move.plays]
        good = [move for move in played if move.value >= played[0].value - variety - 1e-9]
        if not good:
            return None
        return good[0] if generator is None else good[int(generator.integers(len(good)))]

    def line(self, position: Position) -> tuple[str, ...]:
        """The best moves from *position* on, by name, to where the book ends."""
        line: list[str] = []
        while best := self.choose(position):
            line.append(best.move)
            position = position.play(best.move)
        return tuple(line)

    @property
    def sha256(self) -> str:
        """A hash of all that is in it."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def to_bytes(self) -> bytes:
        """The content of its file."""
        header = {
            "format": FORMAT,
            "size": self.rules.size,
            "variant": self.rules.variant,
            "margin": self.margin,
            "about": dict(self.about),
        }
        return pack_checksummed({name: getattr(self, name) for name in _COLUMNS}, header)

    def _within_margin(self, here: int, after: list[int]) -> set[int]:
        """Those rows *after* a position to which a move leads that loses at most the margin by the deeper search.

        All of them where the position was not searched deeper; where it was, those that were not are none of them. The best move
        is worth what the search of the position says, or that of a position after it, if that says more.
        """
        if self.checked[here] == UNCHECKED:
            return set(after)
        values = {row: -int(self.checked[row]) for row in after if self.checked[row] != UNCHECKED}
        best = max(int(self.checked[here]), *values.values(), -1 << 15)
        return {row for row, value in values.items() if best - value <= self.margin * UNITS_PER_DISC}

    def _row(self, position: Position) -> int | None:
        if (position.rules.size, position.rules.variant) != (self.rules.size, self.rules.variant):
            return None
        return next(iter(rows_of(self.own, self.opp, position.canonical())), None)


def rows_of(own: NDArray[np.uint64], opp: NDArray[np.uint64], position: Position) -> range:
    """The rows with exactly the boards of *position*, of arrays in the order of *own*, then *opp*."""
    first, last = (int(own.searchsorted(np.uint64(position.own), side)) for side in ("left", "right"))
    among = opp[first:last]
    return range(*(first + int(among.searchsorted(np.uint64(position.opp), side)) for side in ("left", "right")))


def read_book(path: str | Path) -> Book:
    """The book of a file, which is read again only when it has changed; a `BookError` with its name if it is no whole book."""
    return read_cached(Path(path), _read)


def packaged_book(rules: Rules) -> Book | None:
    """The package's book of that game; None if it has none."""
    path = FOLDER / f"{rules.size}x{rules.size}-{rules.variant}.safetensors"
    return read_book(path) if path.exists() else None


def book_for(name: str, rules: Rules) -> Book:
    """The book by the name that an agent's option has – ``yes`` or a file –, refused if it is not of that game."""
    book = packaged_book(rules) if name == PACKAGED else read_book(name)
    game = f"{rules.size}x{rules.size} {rules.variant}"
    if book is None:
        raise BookError(f"book={PACKAGED}: the package has no book of {game}; expected the file of one that you build")
    if (book.rules.size, book.rules.variant) != (rules.size, rules.variant):
        raise BookError(
            f"book {name!r} is of {book.rules.size}x{book.rules.size} {book.rules.variant}: expected one of {game}"
        )
    return book


def _read(path: Path) -> Book:
    try:
        header, tensors = unpack_checksummed(path.read_bytes())
        if header.get("format") != FORMAT:
            raise ValueError(f"format {quoted(header.get('format'))}")
        rules = Rules(header["size"], header["variant"])
        book = Book(rules, **_columns(tensors), margin=float(header["margin"]), about=header["about"])
    except OSError as error:
        raise BookError(f"book {str(path)!r} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except (ChecksumError, ValueError, LookupError, TypeError) as error:
        raise BookError(
            f"book {str(path)!r} cannot be read ({error}): expected a file that `reversi book build` made"
        ) from None
    return book


def _columns(tensors: Mapping[str, np.ndarray]) -> dict[str, Any]:
    tensors = {"checked": np.full(tensors["own"].size, UNCHECKED), **tensors}
    for name, kind in _COLUMNS.items():
        column = tensors[name]
        if column.dtype != kind or column.shape != (tensors["own"].size,):
            raise ValueError(f"column {name} of {column.dtype} and shape {column.shape}")
    return {name: tensors[name] for name in _COLUMNS}
