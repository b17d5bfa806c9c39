"""The study of AlphaZero and alpha-beta at equal time, with players that take none."""

import pytest

from search import agents
from studies.players import bridge
from train.evaluation import endgames

pytestmark = pytest.mark.slow


def test_ways_are_judged_and_meet_at_equal_time(monkeypatch, tmp_path):
    options = bridge.BridgeOptions(simulations=32, depth=2, compiled_depth=4)
    specs = bridge.ways(options)
    assert [len(settings) for settings in specs.values()] == [1, 2, 2, 2]
    assert all(agents.make_agent(spec).check(options.rules) is None for settings in specs.values() for spec in settings)
    monkeypatch.setattr(endgames, "cache_folder", lambda part: tmp_path)
    monkeypatch.setattr(bridge, "ways", lambda _: {"by lot": ["random"], "discs": ["greedy", "discs:depth=1"]})
    found = bridge.measure(bridge.BridgeOptions(4, positions=3, empties=(9, 10), games=2))
    assert {one["agent"] for one in found["players"]} == {"random", "greedy", "discs:depth=1"}
    assert [one["seconds"] for one in found["equal"]][-1] == 1.0
    assert {one["way"]: one["agent"] for one in found["equal"][-1]["players"]}.keys() == {"by lot", "discs"}
    assert all("elo" in one for equal in found["equal"] for one in equal["players"])
    told = bridge.section([found])
    assert next(len(block.rows) for block in told.blocks if isinstance(block, bridge.Table)) == 3
    told.figures[0].save(tmp_path / "bridge.svg")
    assert (tmp_path / "bridge.svg").read_text().count("<svg") == 1
