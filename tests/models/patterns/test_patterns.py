"""The geometry of the patterns: squares, instances, and shared weights."""

from itertools import pairwise

import numpy as np
import pytest

from models.kernels.patterns import patterns_of
from reversi_env import Rules
from reversi_env.batch import SYMMETRIES
from reversi_env.kernels.symmetry import transform
from tests.oracles.patterns import SIZES, digits_of

every_size = pytest.mark.parametrize("size", SIZES)


def cells(size, pattern):
    """Return the squares of the pattern as (row, column) of the board."""
    rules = Rules(size)
    return {divmod(rules.action_of(sq), size) for sq in pattern.squares}


@every_size
def test_patterns_match_their_names_and_have_distinct_instances(size):
    last, patterns = size - 1, patterns_of(size)
    cells_by_name = {p.name: cells(size, p) for p in patterns.patterns}
    assert cells_by_name["edge and X"] == {(0, c) for c in range(size)} | {(1, 1), (1, last - 1)}
    assert cells_by_name[f"diagonal of {size}"] == {(i, i) for i in range(size)}
    assert cells_by_name["diagonal of 4"] == {(i, i + size - 4) for i in range(4)}
    if size > 4:
        assert cells_by_name["corner 3x3"] == {(r, c) for r in range(3) for c in range(3)}
        assert cells_by_name["corner 2x5"] == {(r, c) for r in range(2) for c in range(5)}
        assert len(cells_by_name["corner triangle"]) == 10
    assert len(patterns.instances) == {4: 14, 6: 38, 8: 50}[size]
    for number, pattern in enumerate(patterns.patterns):
        places = [frozenset(pattern.image(symmetry)) for n, symmetry in patterns.instances if n == number]
        assert set(places) == {frozenset(pattern.image(symmetry)) for symmetry in range(SYMMETRIES)}
        assert len(places) == len(set(places)) in (1, 2, 4, 8)
        assert all(1 << sq & Rules(size).playable for place in places for sq in place)


@every_size
def test_pattern_image_equals_pattern_of_transformed_board(size):
    generator, patterns = np.random.default_rng(size), patterns_of(size)
    assert patterns.digit_weights.shape == (64, len(patterns.instances))
    for column, (number, symmetry) in enumerate(patterns.instances):
        pattern = patterns.patterns[number]
        board, image = int(generator.integers(0, 2**63)) & Rules(size).playable, pattern.image(symmetry)
        moved = int(transform(np.uint64(board), symmetry))
        assert digits_of(board, 0, image) == digits_of(moved, 0, pattern.squares)
        assert patterns.digit_weights[list(image), column].tolist() == [3**k for k in range(len(image))]
        assert np.count_nonzero(patterns.digit_weights[:, column]) == len(image)


@every_size
def test_only_symmetric_states_share_a_weight(size):
    patterns = patterns_of(size)
    assert np.array_equal(np.unique(patterns.weight_index), np.arange(patterns.weight_count))
    parts = np.split(patterns.weight_index, patterns.offsets[1:-1])
    assert all(a.max() < b.min() for a, b in pairwise(parts))
    for pattern, offset in zip(patterns.patterns, patterns.offsets, strict=False):
        orders = set(pattern.digit_orders())
        states = np.random.default_rng(size).integers(0, pattern.state_count, 50)
        tied = patterns.weight_index[offset : offset + pattern.state_count]
        for state in states.tolist():
            digits = [state // 3**k % 3 for k in range(len(pattern.squares))]
            symmetric = {sum(digits[source] * 3**k for k, source in enumerate(order)) for order in orders}
            assert set(np.flatnonzero(tied == tied[state]).tolist()) == symmetric
