"""`ExactScores`: exact values of positions and moves, from the solved book, a cache on disk, and the solver.

Jobs share the cache: a position and its symmetric images are solved once. On 4x4 and 6x6 every position can be solved.
"""

import zlib
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from time import monotonic

import numpy as np

from reversi_env import Position, Rules, batch
from reversi_env.rules import PASS_NAME
from reversi_env.storage.atomic import append_atomically
from reversi_env.storage.user_cache import cache_folder
from search.agents.book import Book, packaged_book
from search.engine.solver import Solver
from search.engine.table import TranspositionTable
from search.evaluators.registry import get_evaluator

#: Positions with fewer empties are not cached: solving them takes about as long as reading them.
MIN_CACHED_EMPTIES = 10
#: Interval between two writes to the cache, in seconds.
WRITE_SECONDS = 1.0
#: Boards of a canonical position, and the proven bounds of its value.
Key = tuple[int, int]
Bounds = tuple[int, int]


class BoundsFile:
    """Bounds of positions in a file that processes share: lines are only appended, and each has a checksum.

    A line that is incomplete or corrupted is ignored, so that its position is solved again. A file that cannot be read is treated
    as empty.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._size = path, 0

    def read_new(self) -> Iterable[tuple[Key, Bounds]]:
        """Yield the entries that were appended since the last call, by any process."""
        data = b""
        with suppress(OSError), self.path.open("rb") as stream:
            stream.seek(self._size)
            data = stream.read()
        complete = data[: data.rfind(b"\n") + 1]
        self._size += len(complete)
        for line in complete.splitlines():
            content, _, checksum = line.rpartition(b" ")
            with suppress(ValueError):
                own, opp, lower, upper = content.split()
                if int(checksum, 16) == zlib.crc32(content):
                    yield (int(own, 16), int(opp, 16)), (int(lower), int(upper))

    def append(self, entries: Iterable[tuple[Key, Bounds]]) -> None:
        contents = (f"{own:x} {opp:x} {lower} {upper}".encode() for (own, opp), (lower, upper) in entries)
        lines = b"".join(b"%b %08x\n" % (content, zlib.crc32(content)) for content in contents)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        append_atomically(self.path, b"\n" + lines)  # the line end completes the line of a killed process


class ExactScores:
    """Exact values in discs for the side to move, under perfect play of both sides.

    *folder* has the cache, by default the user's; it only saves time and need not be writable. With *order* the network orders the
    moves of positions with many empties, which pays above about 16. `write` adds new values to the cache; this also happens every
    second.
    """

    def __init__(
        self,
        rules: Rules,
        folder: Path | None = None,
        *,
        threads: int = 1,
        megabytes: float = 256.0,
        order: bool = True,
    ) -> None:
        self.rules, self._threads, self._megabytes = rules, threads, megabytes
        self._order = "network" if order and rules.size > 4 else None  # no network has weights for 4x4
        self._file = BoundsFile(
            (folder or cache_folder("solved")) / f"bounds-{rules.size}x{rules.size}-{rules.variant}"
        )
        self._bounds: dict[Key, Bounds] = {}
        self._unwritten: dict[Key, Bounds] = {}
        self._written = monotonic()

    def score(self, position: Position, guess: int | None = None) -> int:
        """Return the value of *position*; *guess* is an estimate of it."""
        return self._clipped(position, -self.rules.square_count, self.rules.square_count, guess)

    def move_value(self, position: Position, action: int) -> int:
        """Return the value of a legal action; that of a best move takes one null-window search after `score`."""
        best = self.score(position)
        return -self._clipped(position.play(action), -best, self.rules.square_count, -best)

    def move_values(self, position: Position) -> dict[int, int]:
        """Return the value of every legal action."""
        return {action: self.move_value(position, action) for action in position.legal_actions()}

    def best_action(self, position: Position) -> int:
        """Return the best action; of several the one with the best static value after it, independent of the cache."""
        actions, best = position.legal_actions(), self.score(position)
        children = [position.play(action) for action in actions]
        if self._order is not None:
            values = get_evaluator(self._order).static_values(*batch.from_positions(children), self.rules)
            order = np.argsort(values, kind="stable").tolist()
        else:
            order = list(range(len(actions)))
        for row in order[:-1]:
            if self._clipped(children[row], -best, 2 - best, -best) == -best:
                return actions[row]
        return actions[order[-1]]

    def read(self) -> None:
        """Read what other processes have added to the cache."""
        for key, (lower, upper) in self._file.read_new():
            old_lower, old_upper = self._bounds.get(key, (lower, upper))
            self._bounds[key] = max(lower, old_lower), min(upper, old_upper)

    def write(self) -> None:
        """Add new values to the cache."""
        if self._unwritten:
            with suppress(OSError):
                self._file.append(self._unwritten.items())
            self._unwritten.clear()
        self._written = monotonic()

    def _clipped(self, position: Position, low: int, high: int, guess: int | None = None) -> int:
        """Return the value of *position*, limited to the range from *low* to *high*."""
        if position.is_over():
            return min(max(position.score(), low), high)
        if position.must_pass():
            return -self._clipped(position.play(PASS_NAME), -high, -low, None if guess is None else -guess)
        lower, upper = self._cached_bounds(position)
        window = max(low, lower), min(high, upper)
        if window[0] < window[1]:
            proven = self._solver.narrow(position, window, guess)
            lower, upper = max(lower, proven[0]), min(upper, proven[1])
            self._store(position, (lower, upper))
        return min(max(lower if lower >= high else upper, low), high)

    def _cached_bounds(self, position: Position) -> Bounds:
        widest = -self.rules.square_count, self.rules.square_count
        if position.empties < MIN_CACHED_EMPTIES:
            return widest
        if position.empties >= self.book_empties and self._book and (entry := self._book.find(position)):
            return int(entry.value), int(entry.value)
        if not self._bounds:
            self.read()
        return self._bounds.get(_key(position), widest)

    def _store(self, position: Position, bounds: Bounds) -> None:
        if position.empties >= MIN_CACHED_EMPTIES:
            key = _key(position)
            self._bounds[key] = self._unwritten[key] = bounds
            if monotonic() > self._written + WRITE_SECONDS:
                self.write()

    @cached_property
    def _book(self) -> Book | None:
        book = packaged_book(self.rules)
        return book if book is not None and book.is_solved else None

    @cached_property
    def book_empties(self) -> int:
        """Minimum empties of positions in the solved book, which has all reachable positions above; all squares without a book."""
        discs = 0 if self._book is None else int(np.bitwise_count(self._book.own | self._book.opp).max())
        return self.rules.square_count - discs

    @cached_property
    def _solver(self) -> Solver:
        table = TranspositionTable(self._megabytes)
        return Solver(self.rules, threads=self._threads, table=table, evaluator=self._order)


def _key(position: Position) -> Key:
    position = position.canonical()
    return position.own, position.opp
