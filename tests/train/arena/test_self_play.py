"""Games of an agent against itself as data: columns that follow the rules and the results."""

import numpy as np
import pytest

from reversi_env import Position, ReversiError, Rules
from search.agents.spec import make_agent
from train import self_play


@pytest.mark.parametrize("agent", ["random", "six-factor:depth=1,seed=1", make_agent("greedy:seed=3")])
def test_positions_follow_each_other_and_know_how_the_game_ended(agent):
    rules = Rules(4, "reversed")
    played = self_play(agent, 6, rules, opening_plies=2, seed=4)
    assert set(np.unique(played.game)) == set(range(6))
    for game in range(6):
        rows = np.flatnonzero(played.game == game)
        assert played.ply[rows].tolist() == list(range(len(rows)))
        positions = [Position(rules, int(played.own[row]), int(played.opp[row])) for row in rows]
        for before, after, first, second in zip(positions, positions[1:], rows, rows[1:], strict=False):
            followers = [before.play(action) for action in before.legal_actions()]
            passes = [child.play("pass") for child in followers if child.must_pass()]
            passed = (after.own, after.opp) in {(child.own, child.opp) for child in passes}
            assert passed or (after.own, after.opp) in {(child.own, child.opp) for child in followers}
            assert played.score[second] == (1 if passed else -1) * played.score[first]
        ends = [child for child in map(positions[-1].play, positions[-1].legal_actions()) if child.is_over()]
        assert int(played.score[rows[-1]]) in {-child.score() for child in ends}


def test_the_seed_decides():
    first, again, other = (self_play("greedy", 4, Rules(6), seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.own, again.own)
    assert not np.array_equal(first.own, other.own)
    assert len(first) == len(first.score) > 4 * 20


@pytest.mark.parametrize(("games", "plies", "seed"), [(0, 2, 0), (2, -1, 0), (2, 60, 0), (2, 2, -1)])
def test_bad_input(games, plies, seed):
    with pytest.raises(ReversiError, match="expected|no random game"):
        self_play("random", games, Rules(4), opening_plies=plies, seed=seed)
