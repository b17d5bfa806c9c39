"""How good the moves are that a book plays, by a search that looks further than the book's own.

Positions are searched one by one, those that the book plays from and those that it plays to; a move loses what the best one of its
position is worth more by these values. They go into the book, which from then on does not play what loses more than its margin
(`search.agents.book.Book`). Whatever else it plays was judged: no move comes to be played by a check.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reversi_env import Position, Rules, batch
from reversi_env.kernels.bitboard import PASS_SQUARE
from reversi_env.kernels.parallel import core_count
from reversi_env.storage.atomic import write_atomically
from search.agents.book import PLAYED_SHARE_OF_MARGIN, UNCHECKED, UNITS_PER_DISC, Book
from train.book.build import BOOK, LOG, LoggedSearches, Searcher
from train.book.options import CheckOptions
from train.book.tree import Rows
from train.jobs.logs import JsonLines, Progress, no_progress
from train.jobs.processes import Executor, LocalExecutor
from train.jobs.run import Run

#: Positions that are played from, of one line of the log: with those after them some seconds of many cores.
BATCH = 128


class CheckedMove(NamedTuple):
    """A move that a book plays by its own values: the board, black to move, its name, and the discs that it loses to the best.

    ``loss`` by the book's own values, which know the moves of the book; ``found`` by the deeper search, which knows all.
    """

    board: str
    move: str
    loss: float
    found: float


class BookMoves(NamedTuple):
    """Moves of a book: the rows before and after them, their squares, and their losses by the book in units (`UNITS_PER_DISC`)."""

    before: Rows
    after: Rows
    square: NDArray[np.int64]
    loss: NDArray[np.int64]

    def of(self, which: NDArray[np.bool_]) -> BookMoves:
        """Some of them."""
        return BookMoves(*(column[which] for column in self))


def check(
    book: Book,
    options: CheckOptions,
    folder: str | PathLike[str] | None = None,
    *,
    executor: Executor | None = None,
    progress: Progress = no_progress,
) -> Book:
    """*book* with what deeper searches say of some of its positions, and of those that it plays to from there.

    With a *folder* it is in the file `BOOK` there, and the same call goes on after it was interrupted in any way. What was
    found depends on book and options only. The *executor* searches; by default as many processes as there are cores.
    """
    executor = executor or LocalExecutor(core_count())
    if folder is None:
        with executor.workers(Searcher, options) as pool:
            return _checked(book, options, LoggedSearches(pool), progress)
    path, content_hashes = Path(folder), {"book_sha256": book.sha256, **options.content_hashes}
    with Run(path, options, content_hashes), executor.workers(Searcher, options) as pool:
        found = _checked(book, options, LoggedSearches(pool, JsonLines(path / LOG)), progress)
        write_atomically(path / BOOK, found.to_bytes())
    return found


def checked_moves(book: Book) -> list[CheckedMove]:
    """What a check of *book* says of the moves that it plays by its own values, and would without the check."""
    known, moves = book.checked != UNCHECKED, all_moves(book)
    moves = moves.of(known[moves.before] & known[moves.after])
    value = book.checked.astype(np.int64)
    best = value.copy()
    np.maximum.at(best, moves.before, -value[moves.after])
    moves = moves.of(_would_play(book, moves))
    found = (best[moves.before] + value[moves.after]) / UNITS_PER_DISC
    names = (_name(book.rules, square) for square in moves.square.tolist())
    boards = (Position(book.rules, int(book.own[row]), int(book.opp[row])).to_text() for row in moves.before)
    return list(map(CheckedMove, boards, names, (moves.loss / UNITS_PER_DISC).tolist(), found.tolist()))


def all_moves(book: Book) -> BookMoves:
    """The moves between positions of *book*, beyond the margin or not, in the order of the rows before them."""
    inner = np.flatnonzero(book.depth == 0)
    children = batch.expand(book.own[inner], book.opp[inner], book.rules)
    row = {boards: row for row, boards in enumerate(zip(book.own.tolist(), book.opp.tolist(), strict=True))}
    own, opp, _ = batch.canonical(children.own, children.opp)
    after = np.array([row.get(boards, -1) for boards in zip(own.tolist(), opp.tolist(), strict=True)], np.int64)
    before = inner[children.parent]
    loss = book.value[before].astype(np.int64) + book.value[after]
    return BookMoves(before, after, children.square, loss).of(after >= 0)


def _name(rules: Rules, square: int) -> str:
    return rules.name_of(rules.pass_action if square == PASS_SQUARE else rules.action_of(square))


def _would_play(book: Book, moves: BookMoves) -> NDArray[np.bool_]:
    return moves.loss <= PLAYED_SHARE_OF_MARGIN * book.margin * UNITS_PER_DISC + 1e-7


def _sampled_rows(book: Book, options: CheckOptions) -> NDArray[np.int64]:
    """Return the rows of the expanded positions that are checked, each at most once."""
    return np.random.default_rng(options.seed).permutation(np.flatnonzero(book.depth == 0))[: options.positions]


def _checked(book: Book, options: CheckOptions, search: LoggedSearches, progress: Progress) -> Book:
    moves, drawn = all_moves(book), _sampled_rows(book, options)
    moves = moves.of(_would_play(book, moves))
    checked = np.full(len(book), UNCHECKED)
    for start in range(0, len(drawn), BATCH):
        progress("positions", start, len(drawn))
        before = drawn[start : start + BATCH]
        rows = np.union1d(before, moves.after[np.isin(moves.before, before)])
        rows = rows[checked[rows] == UNCHECKED]
        if rows.size:
            checked[rows], _ = search(book.own[rows], book.opp[rows], options.depth)
    progress("positions", len(drawn), len(drawn))
    about = {**book.about, "check": {**options.as_dict(), **options.content_hashes}}
    return replace(book, checked=checked, about=about)
