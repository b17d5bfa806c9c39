"""The study of the levels for people, on the smallest board."""

import pytest

from studies import levels

pytestmark = pytest.mark.slow


def test_every_level_meets_the_one_below_and_greedy_play():
    found = levels.measure(levels.LadderOptions(4, games=2))
    assert [one["level"] for one in found["levels"]] == list(range(1, 11))
    assert all(one["greedy"]["games"] == 2 and "elo" in one for one in found["levels"])
    assert all(one["below"]["games"] == 2 for one in found["levels"][1:])
    [table] = [block for block in levels.section([found]).blocks if isinstance(block, levels.Table)]
    assert [row[1] for row in table.rows] == [level.title for level in levels.LEVELS]
    assert all(len(row) == len(table.columns) for row in table.rows)
