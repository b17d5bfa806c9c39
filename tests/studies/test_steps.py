"""Steps of the ladder held against exact scores."""

from reversi_env import Position, Rules
from reversi_env.rules import BLACK
from search.engine.probcut import EXACT, SELECTIVITIES
from studies.players.ladder_steps import Task, climb, of_tournaments, summary
from tests.oracles.strategies import random_moves, wthor_file, wthor_record
from train.fitting.probcut import own_positions


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
