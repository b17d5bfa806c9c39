"""The patterns of the networks, derived from the geometry of a board; kernels are generated from them.

A *pattern* is a set of squares. Its state is a number in base 3, with one digit per square in ascending order: 0 empty, 1 own disc
(of the side to move), 2 opponent's. An *instance* is a pattern under one of the eight symmetries: all four corners share weights.
If a symmetry maps a pattern onto itself, equivalent states share one weight (`weight_index`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from reversi_env import Rules
from reversi_env.batch import SYMMETRIES, square_image
from reversi_env.kernels.symmetry import INVERSE_SYMMETRY


@dataclass(frozen=True)
class Pattern:
    """A set of squares of the 8x8 frame, lowest first."""

    name: str
    squares: tuple[int, ...]

    @property
    def state_count(self) -> int:
        return int(3 ** len(self.squares))

    @property
    def search_places(self) -> tuple[int, ...]:
        """The place of every square's digit in the search's states: squares near the centre have the lowest digits.

        They change most between the positions of a search, and states that differ in low digits are close in memory.
        """
        order = sorted(self.squares, key=lambda sq: (abs(2 * (sq // 8) - 7) + abs(2 * (sq % 8) - 7), sq))
        return tuple(order.index(sq) for sq in self.squares)

    def image(self, symmetry: int) -> tuple[int, ...]:
        """Return the squares of the board that *symmetry* maps onto this pattern's squares."""
        undone = int(INVERSE_SYMMETRY[symmetry])
        return tuple(square_image(sq, undone) for sq in self.squares)

    def digit_orders(self) -> Iterator[tuple[int, ...]]:
        """Return the orders of digits under all symmetries that map the pattern onto itself."""
        for symmetry in range(SYMMETRIES):
            image = self.image(symmetry)
            if set(image) == set(self.squares):
                yield tuple(self.squares.index(sq) for sq in image)


def _shapes(size: int) -> dict[str, list[tuple[int, int]]]:
    """Return all patterns of a board as (row, column) pairs, each in one orientation."""
    last, half = size - 1, size // 2
    shapes = {"edge and X": [(0, c) for c in range(size)] + [(1, 1), (1, last - 1)]}
    if size >= 6:
        shapes["corner 3x3"] = [(r, c) for r in range(3) for c in range(3)]
        shapes["corner 2x5"] = [(r, c) for r in range(2) for c in range(5)]
        shapes["corner triangle"] = [(r, c) for r in range(4) for c in range(4) if r + c < 4]
    else:
        shapes["half board"] = [(r, c) for r in range(2) for c in range(4)]
    shapes |= {f"row {r + 1}": [(r, c) for c in range(size)] for r in range(1, half)}
    shapes |= {f"diagonal of {n}": [(i, size - n + i) for i in range(n)] for n in range(size, 3, -1)}
    return shapes


@dataclass(frozen=True)
class PatternSet:
    """The patterns of one board size and the tables derived from them.

    A row has the weights of one phase: of the states of the first pattern, then of the second, and so on.
    """

    size: int
    patterns: tuple[Pattern, ...]

    @cached_property
    def offsets(self) -> np.ndarray:
        """The first state of each pattern, and at the end the number of all states."""
        return np.concatenate([[0], np.cumsum([pattern.state_count for pattern in self.patterns])])

    @property
    def state_count(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def instances(self) -> tuple[tuple[int, int], ...]:
        """(pattern, symmetry) of every instance, sorted by symmetry: each set of squares of the board once."""
        instances = []
        for number, pattern in enumerate(self.patterns):
            seen: set[frozenset[int]] = set()
            for symmetry in range(SYMMETRIES):
                squares = frozenset(pattern.image(symmetry))
                if squares not in seen:
                    seen.add(squares)
                    instances.append((number, symmetry))
        return tuple(sorted(instances, key=lambda instance: instance[1]))

    @cached_property
    def digit_weights(self) -> np.ndarray:
        """``(64, instances)``: the weight of a square's digit in each instance's state."""
        return self._digit_weights([range(len(pattern.squares)) for pattern in self.patterns])

    @cached_property
    def search_digit_weights(self) -> np.ndarray:
        """`digit_weights` for the search's states."""
        return self._digit_weights([pattern.search_places for pattern in self.patterns])

    def _digit_weights(self, places: list[Sequence[int]]) -> np.ndarray:
        weights = np.zeros((64, len(self.instances)), np.float32)
        for column, (number, symmetry) in enumerate(self.instances):
            for place, sq in zip(places[number], self.patterns[number].image(symmetry), strict=True):
                weights[sq, column] = 3**place
        return weights

    @cached_property
    def weight_index(self) -> np.ndarray:
        """The number of the weight, below `weight_count`, of every state of every pattern."""
        numbers = np.empty(self.state_count, np.int32)
        first = 0
        for pattern, offset in zip(self.patterns, self.offsets, strict=False):
            lowest = _lowest_equivalent(pattern)
            kept = lowest == np.arange(pattern.state_count)
            numbers[offset : offset + pattern.state_count] = first + (np.cumsum(kept, dtype=np.int32) - 1)[lowest]
            first += int(np.count_nonzero(kept))
        return numbers

    @cached_property
    def search_weight_index(self) -> np.ndarray:
        """`weight_index` for the search's states."""
        parts = []
        for pattern, part in zip(self.patterns, np.split(self.weight_index, self.offsets[1:-1]), strict=True):
            last = len(pattern.squares) - 1
            axes = [last - pattern.search_places.index(last - axis) for axis in range(last + 1)]
            parts.append(part.reshape((3,) * (last + 1)).transpose(axes).reshape(-1))  # the digits as axes
        return np.concatenate(parts)

    @cached_property
    def weight_count(self) -> int:
        return int(self.weight_index.max()) + 1


def _lowest_equivalent(pattern: Pattern) -> np.ndarray:
    """Return for every state of the pattern the lowest equivalent one under the pattern's symmetries."""
    lowest = np.arange(pattern.state_count, dtype=np.int32)
    shape = (3,) * len(pattern.squares)  # the digits as axes, the last square's first
    for order in pattern.digit_orders():
        axes = [len(order) - 1 - source for source in reversed(order)]
        images = np.arange(pattern.state_count, dtype=np.int32).reshape(shape).transpose(axes).reshape(-1)
        np.minimum(lowest, images, out=lowest)
    return lowest


@lru_cache
def patterns_of(size: int) -> PatternSet:
    """Return the patterns of the board of that size.

    >>> [(p.name, len(p.squares)) for p in patterns_of(8).patterns][:3]
    [('edge and X', 10), ('corner 3x3', 9), ('corner 2x5', 10)]
    >>> len(patterns_of(8).instances)
    50
    """
    rules = Rules(size)
    patterns = (
        Pattern(name, tuple(sorted(rules.square_of(size * row + column) for row, column in cells)))
        for name, cells in _shapes(size).items()
    )
    return PatternSet(size, tuple(patterns))
