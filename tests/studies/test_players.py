"""Studies of players: AlphaZero and alpha-beta at equal time, levels for people, game clocks, endgame selectivity levels."""

import re

import pytest

from play.time_control import TimeControl
from reversi_env import Position, Rules
from reversi_env.rules import BLACK, WHITE
from search import agents
from search.engine.engine import Engine
from search.engine.probcut import EXACT, SELECTIVITIES
from studies.players import bridge, levels
from studies.players.clocks import WAYS, equal_shares, play_game
from studies.players.ladder_steps import Task, climb, of_tournaments, summary
from tests.conftest import REPOSITORY
from tests.oracles.strategies import random_moves, wthor_file, wthor_record
from train.evaluation import endgames
from train.fitting.probcut import own_positions


@pytest.mark.slow
def test_ways_are_judged_and_meet_at_equal_time(monkeypatch, tmp_path):
    options = bridge.BridgeOptions(simulations=32, depth=2, compiled_depth=4)
    specs = bridge.ways(options)
    assert [len(settings) for settings in specs.values()] == [1, 2, 2, 2]
    assert all(agents.make_agent(spec).check(options.rules) is None for settings in specs.values() for spec in settings)
    monkeypatch.setattr(endgames, "cache_folder", lambda part: tmp_path)
    monkeypatch.setattr(bridge, "ways", lambda _: {"by lot": ["random"], "discs": ["greedy", "discs:depth=1"]})
    result = bridge.measure(bridge.BridgeOptions(4, positions=3, empties=(9, 10), games=2))
    assert {one["agent"] for one in result["players"]} == {"random", "greedy", "discs:depth=1"}
    assert [one["seconds"] for one in result["equal"]][-1] == 1.0
    assert {one["way"]: one["agent"] for one in result["equal"][-1]["players"]}.keys() == {"by lot", "discs"}
    assert all("elo" in one for equal in result["equal"] for one in equal["players"])
    section = bridge.section([result])
    assert next(len(block.rows) for block in section.blocks if isinstance(block, bridge.Table)) == 3
    section.figures[0].save(tmp_path / "bridge.svg")
    assert (tmp_path / "bridge.svg").read_text().count("<svg") == 1


@pytest.mark.slow
def test_every_level_meets_the_one_below_and_greedy_play():
    result = levels.measure(levels.LadderOptions(4, games=2))
    assert [one["level"] for one in result["levels"]] == list(range(1, 11))
    assert all(one["greedy"]["games"] == 2 and "elo" in one for one in result["levels"])
    assert all(one["below"]["games"] == 2 for one in result["levels"][1:])
    [table] = [block for block in levels.section([result]).blocks if isinstance(block, levels.Table)]
    assert [row[1] for row in table.rows] == [level.title for level in levels.LEVELS]
    assert all(len(row) == len(table.columns) for row in table.rows)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("level", "expected"), [(1, (88, 5, 107)), (3, (177, 4, 19))])
def test_levels_meet_greedy_play_as_the_documented_table_says(level, expected):
    """Won, drawn and lost; from the third level on nobody loses all."""
    result = levels.match(levels.LadderOptions(), f"human:level={level}", levels.GREEDY)
    assert (result.wins, result.draws, result.losses) == expected
    assert level < 3 or result.discs.min() > -64
    text = (REPOSITORY / "docs" / "playing.md").read_text()
    assert re.search(f"^\\| {level} \\|.*\\| {'–'.join(map(str, expected))} \\|", text, re.MULTILINE)


@pytest.mark.parametrize("way", WAYS)
def test_a_game_under_clocks(way):
    engines = [Engine("six-factor", Rules(4), megabytes=1) for _ in range(2)]
    ways = {BLACK: (WAYS[way], engines[0]), WHITE: (equal_shares, engines[1])}
    score, clocks = play_game(ways, 100.0, Position.initial(Rules(4)))
    assert -16 <= score <= 16
    assert all(0 < clock.left < 100 for clock in clocks.values())


def test_equal_shares_are_equal():
    position, clock = Position.initial(), TimeControl(600.0)
    first = equal_shares(clock, position).time
    clock = clock.after(first)
    assert first == pytest.approx(equal_shares(clock, position.play("d3").play("c3")).time, rel=0.02)


def test_steps_are_held_against_the_solver():
    rules = Rules(6)
    results = [
        climb(rules, EXACT, task)
        for task in (Task(p.own, p.opp, None) for p in own_positions("network", rules, (14, 14), 3, 1))
    ]
    rows = summary(results)
    assert [row["confidence"] for row in rows] == [step.confidence for step in SELECTIVITIES[:EXACT]]
    assert all(0 <= row["exact"] <= row["near"] <= 100 and row["nodes"] > 0 for row in rows)
    assert rows[-1]["nodes"] >= rows[0]["nodes"]


def test_scores_of_tournament_games_are_those_of_the_side_to_move(tmp_path):
    moves = random_moves(Position.initial(), 3)
    (tmp_path / "a.wtb").write_bytes(wthor_file(wthor_record(moves, 40, 38), wthor_record(["f5"], 0, 64)))
    (task,) = of_tournaments(tmp_path, 5, seed=0)
    position = Position.initial()
    for move in moves:
        if position.empties == 24 and not position.must_pass():
            break
        position = position.play(move)
    assert (task.own, task.opp) == (position.own, position.opp)
    assert task.score == (12 if position.turn == BLACK else -12)
