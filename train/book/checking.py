"""How good the moves are that a book plays, by a search that looks further than the book's own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from models.network import strongest_evaluator
from reversi_env import Position
from search.book import Book
from search.cuts import MARGIN
from search.engine import Engine
from search.limits import Limits
from train.progress import Progress, silent


class Checked(NamedTuple):
    """A move that a book plays: the board, black to move, its name, and the discs that it loses to the best move.

    ``loss`` by the book's own values, which know the moves of the book; ``found`` by the deeper search, which knows all.
    """

    board: str
    move: str
    loss: float
    found: float


def check(book: Book, positions: int, depth: int, *, seed: int = 0, progress: Progress = silent) -> list[Checked]:
    """The moves that *book* plays in so many positions with a choice, drawn by lot, each position searched *depth* plies deep.

    As in a book, a value is the mean of searches to that depth and to one ply less, by the game's strongest evaluator.
    """
    engine = Engine(strongest_evaluator(book.rules), book.rules)
    if engine.evaluator.probcut(book.rules):
        engine.set_probcut(MARGIN)
    found: list[Checked] = []
    for done, position in enumerate(islice(_positions(book, seed), positions), 1):
        found += _checked(book, engine, position, depth)
        progress("positions", done, positions)
    return found


def _positions(book: Book, seed: int) -> Iterator[Position]:
    """The positions of a book from which moves lead on, in any order, if another move is legal."""
    for row in np.random.default_rng(seed).permutation(np.flatnonzero(book.depth == 0)):
        position = Position(book.rules, int(book.own[row]), int(book.opp[row]))
        if len(position.legal_moves()) > 1:
            yield position


def _checked(book: Book, engine: Engine, position: Position, depth: int) -> Iterator[Checked]:
    moves = book.moves(position)
    played = [move for move in moves if move.plays]
    values = np.zeros(1 + len(played))
    engine.clear()
    for plies in (depth - 1, depth):
        after = [-engine.search(position.play(move.move), Limits(depth=plies - 1)).value for move in played]
        values += [engine.search(position, Limits(depth=plies)).value, *after]
    for move, value in zip(played, values[1:].tolist(), strict=True):
        yield Checked(position.to_text(), move.move, moves[0].value - move.value, (float(values.max()) - value) / 2)
