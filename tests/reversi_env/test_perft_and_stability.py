"""Perft counts and stable discs."""

import json
from importlib.resources import files
from itertools import product

import numpy as np
import pytest

from reversi_env import Position, Rules, batch
from reversi_env.kernels.stability import EDGE_TABLE, TERNARY
from tests.oracles.rules import safe_on_line

TABLE = json.loads(files("reversi_env").joinpath("data/perft.json").read_text("utf-8"))["leaves"]
QUICK = 30_000_000
CASES = [
    pytest.param(int(size), depth, leaves, marks=[pytest.mark.slow] * (leaves >= QUICK))
    for size, row in TABLE.items()
    for depth, leaves in enumerate(row, start=1)
]


@pytest.mark.parametrize(("size", "depth", "leaves"), CASES)
def test_perft_equals_published_counts(size, depth, leaves):
    assert Position.initial(Rules(size)).perft(depth) == leaves
    assert len(TABLE[str(size)]) == {4: 14, 6: 11, 8: 11}[size]


@pytest.mark.parametrize(("text", "leaves"), [("XO" + "-" * 14, [1, 1, 0]), ("OX" + "-" * 14, [1, 1, 1, 0])])
def test_perft_counts_passes_but_not_finished_games(text, leaves):
    position = Position.from_text(text)
    assert [position.perft(depth) for depth in range(len(leaves))] == leaves
    assert position.perft(10**30) == 0  # no game is so long


def test_edge_table_equals_reference():
    table = np.zeros_like(EDGE_TABLE)
    for margin, size in enumerate((8, 6, 4)):
        for line in product((0, 1, -1), repeat=size):
            sides = (np.flatnonzero(np.equal(line, disc)) for disc in (1, -1))
            own, opp, safe = (sum(1 << (i + margin) for i in squares) for squares in (*sides, safe_on_line(line)))
            table[margin, TERNARY[own] + 2 * TERNARY[opp]] = safe
    assert np.array_equal(EDGE_TABLE, table)


@pytest.mark.parametrize("size", [4, 6, 8])
@pytest.mark.parametrize("seed", range(3))
def test_stable_discs_are_never_flipped_in_play(size, seed):
    rules, games = Rules(size), 10_000
    own, opp = batch.start(games, rules)
    stable_own, stable_opp = np.zeros(games, np.uint64), np.zeros(games, np.uint64)
    generator = np.random.default_rng(seed)
    for _ in range(size * size + 10):
        now_own, now_opp = batch.stable_discs(own, opp, rules), batch.stable_discs(opp, own, rules)
        assert not (stable_own & ~now_own | stable_opp & ~now_opp | now_own & ~own | now_opp & ~opp).any()
        stable_own, stable_opp = now_own, now_opp
        children = batch.expand(own, opp, rules)
        counts = np.bincount(children.parent, minlength=games)
        first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        alive = counts > 0
        chosen = (first + generator.integers(0, np.maximum(counts, 1)))[alive]
        own[alive], opp[alive] = children.own[chosen], children.opp[chosen]
        stable_own[alive], stable_opp[alive] = stable_opp[alive], stable_own[alive]
    assert batch.is_over(own, opp, rules).all()
    assert np.bitwise_count(stable_own | stable_opp).mean() > size * size / 2
