"""`Tree`: a book during its build: canonical positions, the moves between them, and the values that follow from the leaves.

Moves are added for expanded positions only, all at once (`Tree.expand_leaves`). Every move adds a disc and a pass changes the side
alone, so that positions form layers, and values and costs are propagated layer by layer, without recursion.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules, batch
from reversi_env.rules import Start
from search.agents.book import UNCHECKED, UNITS_PER_DISC, Book

Rows = NDArray[np.int64]
Boards = NDArray[np.uint64]
#: The cost of positions to which no moves within the margin lead.
UNREACHABLE = np.int64(1 << 60)
#: Moves that lose up to this many discs more than the margin by the first search are searched to full depth.
FULL_SEARCH_MARGIN = 1.5


class BookCosts(NamedTuple):
    """Values in units (`UNITS_PER_DISC`) and costs in hundredths of a ply of all positions.

    ``near``: a move leads to the position that is in the book, or may be after searches to full depth.
    """

    value: NDArray[np.int64]
    cost: NDArray[np.int64]
    near: NDArray[np.bool_]

    @property
    def in_book(self) -> NDArray[np.bool_]:
        """Whether moves within the margin lead to a position."""
        return self.cost < UNREACHABLE


class Tree:
    """Positions of one game by row, beginning with the *starts*, by default that of the *rules*."""

    def __init__(self, rules: Rules, starts: Sequence[Start] = ()) -> None:
        self.rules = rules
        self.own, self.opp = np.empty(0, np.uint64), np.empty(0, np.uint64)
        #: Searched values, and the plies of the searches: the number of empties where a value is exact.
        self.value, self.depth = np.empty(0, np.int64), np.empty(0, np.int64)
        self._layer = np.empty(0, np.int64)
        self._parent, self._child = np.empty(0, np.int64), np.empty(0, np.int64)
        self._row: dict[tuple[int, int], int] = {}
        for start in starts or (rules.start,):
            self.add(*batch.canonical(*batch.start(1, replace(rules, start=start)))[:2])
        self._starts = slice(len(starts) or 1)

    def __len__(self) -> int:
        return len(self.own)

    @property
    def is_inner(self) -> NDArray[np.bool_]:
        inner = np.zeros(len(self), np.bool_)
        inner[self._parent] = True
        return inner

    @property
    def is_exact(self) -> NDArray[np.bool_]:
        return self.depth >= self.empties

    @property
    def empties(self) -> NDArray[np.int64]:
        return self.rules.square_count - np.bitwise_count(self.own | self.opp).astype(np.int64)

    def rows(self, own: Boards, opp: Boards) -> Rows:
        """Return the rows of canonical positions, -1 for new ones."""
        pairs = zip(own.tolist(), opp.tolist(), strict=True)
        return np.array([self._row.get(pair, -1) for pair in pairs], np.int64)

    def add(self, own: Boards, opp: Boards) -> Rows:
        """Add new canonical positions, each once, and return their rows."""
        before = len(self)
        for pair in zip(own.tolist(), opp.tolist(), strict=True):
            self._row.setdefault(pair, len(self._row))
        new = np.array(list(self._row)[before:], np.uint64).reshape(-1, 2)
        can_move = batch.legal_moves(new[:, 0], new[:, 1], self.rules) != 0
        layer = 2 * np.bitwise_count(new[:, 0] | new[:, 1]).astype(np.int64) + can_move
        zeros = np.zeros(len(new), np.int64)
        self.own, self.opp = np.append(self.own, new[:, 0]), np.append(self.opp, new[:, 1])
        self.value, self.depth = np.append(self.value, zeros), np.append(self.depth, zeros)
        self._layer = np.append(self._layer, layer)
        return np.arange(before, len(self))

    def expand_leaves(self, rows: Rows) -> Rows:
        children = batch.expand(self.own[rows], self.opp[rows], self.rules)
        own, opp, _ = batch.canonical(children.own, children.opp)
        new = self.add(own, opp)
        self._parent = np.append(self._parent, rows[children.parent])
        self._child = np.append(self._child, self.rows(own, opp))
        return new

    def set(self, rows: Rows, value: NDArray[np.int64], depth: NDArray[np.int64]) -> None:
        self.value[rows], self.depth[rows] = value, depth

    def propagate(self, margin: float, loss_plies: float = 0.0) -> BookCosts:
        """Return the values and costs of all positions, with the parameters of `BookOptions`."""
        value, inner = self.value.copy(), self.is_inner
        value[inner] = -UNREACHABLE
        layers = list(self._moves_by_layer())
        for parent, child in reversed(layers):
            np.maximum.at(value, parent, -value[child])
        cost, near = np.full(len(self), UNREACHABLE), np.zeros(len(self), np.bool_)
        cost[self._starts], near[self._starts] = 0, True
        for parent, child in layers:
            loss = value[parent] + value[child]
            reached = cost[parent] < UNREACHABLE
            near[child[reached & (loss <= (margin + FULL_SEARCH_MARGIN) * UNITS_PER_DISC)]] = True
            kept = reached & (loss <= margin * UNITS_PER_DISC)
            step = UNITS_PER_DISC + np.rint(loss_plies * loss).astype(np.int64)
            np.minimum.at(cost, child[kept], (cost[parent] + step)[kept])
        return BookCosts(value, cost, near)

    def book(self, margin: float, about: Mapping[str, Any]) -> Book:
        """Return the book: the positions to which moves within the margin lead, with their values."""
        costs = self.propagate(margin)
        rows = np.flatnonzero(costs.in_book)
        rows = rows[np.lexsort((self.opp[rows], self.own[rows]))]
        depth = np.where(self.is_inner, 0, np.minimum(self.depth, 255)).astype(np.uint8)
        lines = np.minimum(self._lines(costs, margin), np.iinfo(np.uint32).max).astype(np.uint32)
        value = costs.value.astype(np.int16)
        checked = np.full(len(rows), UNCHECKED)
        rules = Rules(self.rules.size, self.rules.variant)
        own, opp = self.own[rows], self.opp[rows]
        return Book(rules, own, opp, value[rows], depth[rows], lines[rows], checked, margin, about)

    def _lines(self, costs: BookCosts, margin: float) -> NDArray[np.float64]:
        """Return the number of lines from each position through the book, as floats, which do not overflow."""
        lines = np.where(self.is_inner, 0.0, 1.0)
        for parent, child in reversed(list(self._moves_by_layer())):
            kept = costs.value[parent] + costs.value[child] <= margin * UNITS_PER_DISC
            np.add.at(lines, parent[kept], lines[child[kept]])
        return lines

    def _moves_by_layer(self) -> Iterator[tuple[Rows, Rows]]:
        """Yield parents and children of all moves, layer by layer."""
        order = np.argsort(self._layer[self._parent], kind="stable")
        borders = np.flatnonzero(np.diff(self._layer[self._parent[order]])) + 1
        for moves in np.split(order, borders):
            yield self._parent[moves], self._child[moves]
