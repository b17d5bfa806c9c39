"""Two books as one."""

from __future__ import annotations

import numpy as np

from reversi_env.errors import ReversiError
from search.book import Book
from train.book.tree import Tree


def merged(first: Book, second: Book) -> Book:
    """A book with the positions of both, and the values that follow from them.

    Where one of them has moves, they count, those of both. Where the books end, the deeper search does, of two as deep the first
    one's. The margin is the wider one. What a book does not hold, moves beyond its margin above all, it cannot bring along.
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
    return tree.book(max(first.margin, second.margin), about)
