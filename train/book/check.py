"""Checking a book: the losses of its moves by a deeper search.

The positions before and after the book's moves are searched; the loss of a move is its difference from the best one by these
values. The values become part of the book, which then does not play moves that lose more than its margin
(`search.agents.book.Book`). A check adds no moves.
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
from train.jobs.shipping import build_id

#: Sampled positions per line of the log, which also has the positions after their moves.
BATCH = 128


class CheckedMove(NamedTuple):
    """A move that a book plays by its own values: the board, black to move, and its name.

    ``loss``: discs that it loses by the book's values; ``found``: by the deeper search.
    """

    board: str
    move: str
    loss: float
    found: float


class BookMoves(NamedTuple):
    """Moves of a book: the rows before and after them, their squares, and their losses in units (`UNITS_PER_DISC`)."""

    before: Rows
    after: Rows
    square: NDArray[np.int64]
    loss: NDArray[np.int64]

    def of(self, which: NDArray[np.bool_]) -> BookMoves:
        return BookMoves(*(column[which] for column in self))


def check(
    book: Book,
    options: CheckOptions,
    folder: str | PathLike[str] | None = None,
    *,
    executor: Executor | None = None,
    progress: Progress = no_progress,
) -> Book:
    """Return *book* with the values of deeper searches of sampled positions, and of those that its moves from there lead to.

    With a *folder* it is written to `BOOK` there, and the same call resumes an interrupted check. The result depends on book and
    options only. The *executor* searches, by default a process per core.
    """
    executor = executor or LocalExecutor(core_count())
    if folder is None:
        with executor.workers(Searcher, options) as pool:
            return _check(book, options, LoggedSearches(pool), progress)
    path, content_hashes = Path(folder), {"book_sha256": book.sha256, **options.content_hashes}
    with Run(path, options, content_hashes), executor.workers(Searcher, options) as pool:
        checked_book = _check(book, options, LoggedSearches(pool, JsonLines(path / LOG)), progress)
        write_atomically(path / BOOK, checked_book.to_bytes())
    return checked_book


def checked_moves(book: Book) -> list[CheckedMove]:
    """Return the checked moves that *book* plays by its own values."""
    is_checked, moves = book.checked != UNCHECKED, all_moves(book)
    moves = moves.of(is_checked[moves.before] & is_checked[moves.after])
    value = book.checked.astype(np.int64)
    best = value.copy()
    np.maximum.at(best, moves.before, -value[moves.after])
    moves = moves.of(_would_play(book, moves))
    losses = (best[moves.before] + value[moves.after]) / UNITS_PER_DISC
    names = (_name(book.rules, square) for square in moves.square.tolist())
    boards = (Position(book.rules, int(book.own[row]), int(book.opp[row])).to_text() for row in moves.before)
    return list(map(CheckedMove, boards, names, (moves.loss / UNITS_PER_DISC).tolist(), losses.tolist()))


def all_moves(book: Book) -> BookMoves:
    """Return all moves between positions of *book*, in the order of the rows before them."""
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


def sampled_rows(book: Book, options: CheckOptions) -> NDArray[np.int64]:
    """Return the rows of the expanded positions that are checked, each at most once."""
    return np.random.default_rng(options.seed).permutation(np.flatnonzero(book.depth == 0))[: options.positions]


def _check(book: Book, options: CheckOptions, search: LoggedSearches, progress: Progress) -> Book:
    moves, sampled = all_moves(book), sampled_rows(book, options)
    moves = moves.of(_would_play(book, moves))
    checked = np.full(len(book), UNCHECKED)
    for start in range(0, len(sampled), BATCH):
        progress("positions", start, len(sampled))
        before = sampled[start : start + BATCH]
        rows = np.union1d(before, moves.after[np.isin(moves.before, before)])
        rows = rows[checked[rows] == UNCHECKED]
        if rows.size:
            checked[rows], _ = search(book.own[rows], book.opp[rows], options.depth)
    progress("positions", len(sampled), len(sampled))
    about = {**book.about, "check": {**options.as_dict(), **options.content_hashes, "code": build_id()}}
    return replace(book, checked=checked, about=about)
