"""Perft equals the published tables: the move generator neither misses nor invents a move, a pass or an end."""

import json
from importlib.resources import files

import pytest

from reversi_env import Position, Rules
from reversi_env.errors import RulesError

TABLE = json.loads(files("reversi_env").joinpath("data/perft.json").read_text("utf-8"))["leaves"]
QUICK = 30_000_000
CASES = [
    pytest.param(int(size), depth, leaves, marks=[pytest.mark.slow] * (leaves >= QUICK))
    for size, row in TABLE.items()
    for depth, leaves in enumerate(row, start=1)
]


@pytest.mark.parametrize(("size", "depth", "leaves"), CASES)
def test_perft_equals_the_table(size, depth, leaves):
    assert Position.initial(Rules(size)).perft(depth) == leaves


def test_the_table_reaches_as_deep_as_promised():
    assert {size: len(row) for size, row in TABLE.items()} == {"4": 14, "6": 11, "8": 11}


def test_a_pass_is_a_ply_and_a_finished_game_is_not_counted():
    must_pass = Position.from_text("XO-- ---- ---- ----")
    assert must_pass.perft(0) == 1
    assert must_pass.perft(1) == 1
    white_passes = must_pass.play("c1")
    assert white_passes.is_over()
    assert white_passes.perft(1) == 0
    assert white_passes.perft(3) == 0
    only_opponent = Position.from_text("OX-- ---- ---- ----")
    assert only_opponent.legal_moves() == ["pass"]
    assert only_opponent.perft(1) == 1
    assert only_opponent.perft(2) == 1
    assert only_opponent.perft(3) == 0


def test_perft_agrees_with_play_through_positions():
    """The counting kernel and `Position.play` are two paths through the same rules."""

    def count(position, depth):
        if depth == 0:
            return 1
        return sum(count(position.play(move), depth - 1) for move in position.legal_moves())

    for size in (4, 6, 8):
        for start in ("standard", "parallel"):
            position = Position.initial(Rules(size, start=start))
            assert position.perft(4) == count(position, 4)


@pytest.mark.parametrize("depth", [-1, 1.5, "3", True])
def test_a_bad_depth_is_named(depth):
    with pytest.raises(RulesError, match="expected integers"):
        Position.initial().perft(depth)
