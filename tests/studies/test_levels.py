"""The study of the levels for people, on the smallest board."""

import re

import pytest

from studies.players import levels
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow


def test_every_level_meets_the_one_below_and_greedy_play():
    found = levels.measure(levels.LadderOptions(4, games=2))
    assert [one["level"] for one in found["levels"]] == list(range(1, 11))
    assert all(one["greedy"]["games"] == 2 and "elo" in one for one in found["levels"])
    assert all(one["below"]["games"] == 2 for one in found["levels"][1:])
    [table] = [block for block in levels.section([found]).blocks if isinstance(block, levels.Table)]
    assert [row[1] for row in table.rows] == [level.title for level in levels.LEVELS]
    assert all(len(row) == len(table.columns) for row in table.rows)


@pytest.mark.long
@pytest.mark.parametrize(("level", "expected"), [(1, (88, 5, 107)), (3, (177, 4, 19))])
def test_levels_meet_greedy_play_as_the_documented_table_says(level, expected):
    """Won, drawn and lost; from the third level on nobody loses all."""
    found = levels.match(levels.LadderOptions(), f"human:level={level}", levels.GREEDY)
    assert (found.wins, found.draws, found.losses) == expected
    assert level < 3 or found.discs.min() > -64
    text = (REPOSITORY / "docs" / "playing.md").read_text()
    assert re.search(f"^\\| {level} \\|.*\\| {'–'.join(map(str, expected))} \\|", text, re.MULTILINE)
