"""Two books as one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reversi_env.errors import ReversiError
from search.book import UNCHECKED, Book
from train.book.tree import Tree


def merged(first: Book, second: Book) -> Book:
    """A book with the positions of both, and the values that follow from them.

    Where one of them has moves, they count, those of both. Where the books end, the deeper search does, of two as deep the first
    one's. The margin is the wider one. What a book does not hold, moves beyond its margin above all, it cannot bring along.

    What a check found comes along, of two checks the deeper one's, of two as deep both: what it barred stays barred, and so are
    moves that only the other book has from positions that were checked, until the book is checked again.
    """
    if (first.rules.size, first.rules.variant) != (second.rules.size, second.rules.variant):
        raise ReversiError(f"books of {first.rules} and of {second.rules}: expected two of one game")
    tree, inner = Tree(first.rules), np.zeros(0, np.bool_)
    for book in (first, second):
        tree.add(book.own, book.opp)
        rows = tree.rows(book.own, book.opp)
        inner = np.append(inner, np.zeros(len(tree) - len(inner), np.bool_))
        depth = book.depth.astype(np.int64)
        better = depth > tree.depth[rows]
        tree.set(rows[better], book.value[better].astype(np.int64), depth[better])
        inner[rows[depth == 0]] = True
    tree.link_known(np.flatnonzero(inner))
    about = {"merged": [dict(book.about) for book in (first, second)]}
    return _with_checks(tree.book(max(first.margin, second.margin), about), first, second)


def _with_checks(both: Book, *books: Book) -> Book:
    """The book with what the deepest check of *books* found, if there was one."""
    deepest = max(_check_depth(book) for book in books)
    if not deepest:
        return both
    checked, check = both.checked.copy(), {}
    row = {boards: row for row, boards in enumerate(zip(both.own.tolist(), both.opp.tolist(), strict=True))}
    for book in reversed(books):  # the first one's last, which stay
        if _check_depth(book) == deepest:
            at = np.array(
                [row.get(one, -1) for one in zip(book.own.tolist(), book.opp.tolist(), strict=True)], np.int64
            )
            known = (at >= 0) & (book.checked != UNCHECKED)
            checked[at[known]], check = book.checked[known], book.about["check"]
    return replace(both, checked=checked, about={**both.about, "check": check})


def _check_depth(book: Book) -> int:
    return int(book.about.get("check", {}).get("depth", 0))
