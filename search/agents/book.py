"""`Book`: positions of the opening with the values of earlier searches, under all eight symmetries.

A book contains canonical positions (`reversi_env.batch`), each once. The moves of a position are those that lead to other
positions of the book. Its value is the negamax value of its moves or, in a leaf, that of a search. `train.book` builds books.
"""

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
from search.engine.limits import MoveValue, SearchResult

FORMAT = "reversi-book-1"
#: Values are stored in these units.
UNITS_PER_DISC = 100
#: The packaged books, and the value of the option ``book`` that selects one.
FOLDER = Path(__file__).parent / "books"
PACKAGED = "yes"
#: The share of the margin that a played move may lose by the book's own values; a deeper search (`train.book.check`) may find it
#: worse by the rest of the margin.
PLAYED_SHARE_OF_MARGIN = 1 / 6
#: The entry of ``about`` for books with exact scores of all positions up to a ply: the number of plies.
SOLVED = "solved"
#: Board size of packaged solved books.
SOLVED_SIZE = 6
#: The value of a position without a deeper search.
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
    """A book that is missing, corrupted, or of another game."""


class Entry(NamedTuple):
    """A position of a book: its value in discs for the side to move.

    ``depth``: plies of the search, 0 if the value follows from the moves. ``lines``: number of lines from here to the leaves.
    """

    value: float
    depth: int
    lines: int


class BookMove(NamedTuple):
    """A move of a book: its name, its value in discs for the side that plays it, and the `Entry` of the position after it.

    ``plays``: whether agents play it: it loses little by the book's own values, and at most the margin by those of a check.
    """

    move: str
    value: float
    depth: int
    lines: int
    plays: bool


@dataclass(frozen=True, eq=False)
class Book:
    """A book of one game; the arrays have a row per position, in the order of ``own``, then ``opp``.

    ``value`` in units for the side to move; ``checked``: the same by a deeper search, or `UNCHECKED`; ``margin``: maximum loss of a
    move in discs; ``about``: how the book was built.
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
        """Return the entry of *position* or a symmetric image of it; None if the book has none."""
        row = self._row(position)
        if row is None:
            return None
        return Entry(int(self.value[row]) / UNITS_PER_DISC, int(self.depth[row]), int(self.lines[row]))

    def moves(self, position: Position) -> tuple[BookMove, ...]:
        """Return the moves in *position* that are within the margin, best first; none in a leaf."""
        here = self._row(position)
        if here is None or self.depth[here]:
            return ()
        leads = ((action, self._row(position.play(action))) for action in position.legal_actions())
        after = {action: row for action, row in leads if row is not None}
        played_margin = 0.0 if self.is_solved else PLAYED_SHARE_OF_MARGIN * self.margin
        good = self._within_margin(here, list(after.values()))
        moves = []
        for action, row in after.items():
            value, depth, lines = -int(self.value[row]), int(self.depth[row]), int(self.lines[row])
            if (loss := (int(self.value[here]) - value) / UNITS_PER_DISC - 1e-9) <= self.margin:
                plays = loss <= played_margin and row in good
                moves.append(BookMove(position.rules.name_of(action), value / UNITS_PER_DISC, depth, lines, plays))
        return tuple(sorted(moves, key=lambda move: -move.value))

    def choose(
        self, position: Position, variety: float = 0.0, generator: np.random.Generator | None = None
    ) -> BookMove | None:
        """Return the best move or, with a *generator*, a random one at most *variety* discs worse; None if the book has none."""
        played = [move for move in self.moves(position) if move.plays]
        good = [move for move in played if move.value >= played[0].value - variety - 1e-9]
        if not good:
            return None
        return good[0] if generator is None else good[int(generator.integers(len(good)))]

    def line(self, position: Position) -> tuple[str, ...]:
        """Return the best moves from *position* to a leaf, by name."""
        line: list[str] = []
        while best := self.choose(position):
            line.append(best.move)
            position = position.play(best.move)
        return tuple(line)

    @property
    def is_solved(self) -> bool:
        """Whether all values are exact scores; only the best moves are played then."""
        return SOLVED in self.about

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def to_bytes(self) -> bytes:
        header = {
            "format": FORMAT,
            "size": self.rules.size,
            "variant": self.rules.variant,
            "margin": self.margin,
            "about": dict(self.about),
        }
        return pack_checksummed({name: getattr(self, name) for name in _COLUMNS}, header)

    def _within_margin(self, here: int, after: list[int]) -> set[int]:
        """Return the rows *after* a position whose moves lose at most the margin by the deeper search; all without one."""
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
    """Return the rows with the boards of *position* in arrays that are sorted by *own*, then *opp*."""
    first, last = (int(own.searchsorted(np.uint64(position.own), side)) for side in ("left", "right"))
    among = opp[first:last]
    return range(*(first + int(among.searchsorted(np.uint64(position.opp), side)) for side in ("left", "right")))


def read_book(path: str | Path) -> Book:
    """Read a book, from the cache if the file has not changed; raise a `BookError` if it is corrupted."""
    return read_cached(Path(path), _read)


def packaged_book(rules: Rules) -> Book | None:
    """Return the packaged book of that game; None if there is none."""
    path = FOLDER / f"{rules.size}x{rules.size}-{rules.variant}.safetensors"
    return read_book(path) if path.exists() else None


def solved_book(rules: Rules) -> Book | None:
    """Return the packaged book with exact scores of that game; None if there is none."""
    book = packaged_book(rules) if rules.size == SOLVED_SIZE else None
    return book if book is not None and book.is_solved else None


def solved_result(position: Position, multi_pv: int = 1) -> SearchResult | None:
    """Return the exact value of *position* by the packaged solved book, and those of the best *multi_pv* moves.

    None if the book does not have the positions after its moves. The principal variation ends with the book.
    """
    book = solved_book(position.rules)
    if book is None or not (moves := book.moves(position)):
        return None
    values = tuple(MoveValue(move.move, move.value) for move in moves[:multi_pv]) if multi_pv > 1 else ()
    line = book.line(position)
    return SearchResult(line[0], moves[0].value, position.empties, 100, line, 0, 0.0, values)


def book_for(name: str, rules: Rules) -> Book:
    """Return the book that the option ``book`` names, ``yes`` or a file, or raise a `BookError` if it is of another game."""
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
    except (OSError, ChecksumError, ValueError, LookupError, TypeError) as error:
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
