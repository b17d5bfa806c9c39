"""The ladder of baselines: Elo above random, games of its own for every pairing."""

import numpy as np
import pytest

from reversi_env import ReversiError, Rules
from train.arena.batch import EvaluatorPlayer, RandomPlayer, play_games
from train.evaluation.ladder import Ladder, default_baselines


def test_the_ladder_measures_in_elo_above_random():
    rules = Rules(6)
    ladder = Ladder(rules, 200, seed=1, baselines=("random", "greedy"))
    again = ladder.measure(RandomPlayer(rules))
    assert again.low < 0 < again.high
    strong = ladder.measure(EvaluatorPlayer("six-factor", rules, 2, threads=1))
    assert strong.elo > 200
    assert strong.scores["greedy"].games == 200
    assert strong.as_dict()["rungs"]["random"]["wins"] == strong.scores["random"].wins
    assert "network:depth=2" in default_baselines(rules)
    assert "network:depth=2" not in default_baselines(Rules(4))
    with pytest.raises(ReversiError, match="greedy-invincible"):
        Ladder(rules, 2, baselines=("greedy-invincible",))


def test_no_pairing_of_the_ladder_repeats_the_games_of_another(monkeypatch):
    seen = []

    def spy(*args, **kwargs):
        seen.append(play_games(*args, **kwargs))
        return seen[-1]

    monkeypatch.setattr("train.evaluation.ladder.play_games", spy)
    Ladder(Rules(6), 40, baselines=("random", "greedy")).measure(RandomPlayer(Rules(6)))
    between_baselines, _, of_the_policy = seen
    assert not np.array_equal(between_baselines.discs, of_the_policy.discs)
