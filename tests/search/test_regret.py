"""ExactRegret: the judge in the environment says what the solver says."""

import gymnasium
import numpy as np
import pytest

import reversi_env  # noqa: F401 - registers the ids
from search.regret import ExactRegret
from search.solver import solve_all_moves


@pytest.mark.parametrize("name", ["Reversi-v0", "ReversedReversi-v0"])
@pytest.mark.parametrize("opponent", [None, "random"])
def test_regret_is_best_minus_chosen(name, opponent):
    env = ExactRegret(gymnasium.make(name, size=6, opponent=opponent, empties=8), max_empties=8)
    judged = regrets = 0
    for seed in range(6):
        env.reset(seed=seed)
        over = False
        while not over:
            position = env.unwrapped.position()
            action = env.unwrapped.sample_legal()
            _, _, over, _, info = env.step(action)
            values = solve_all_moves(position)
            assert info["exact_score"] == max(values.values())
            assert info["regret"] == max(values.values()) - values[position.rules.name_of(action)]
            assert info["optimal"] == (info["regret"] == 0)
            judged += 1
            regrets += info["regret"] > 0
    assert judged > 10
    assert regrets > 0


def test_out_of_range_and_illegal_actions_are_not_judged():
    env = ExactRegret(gymnasium.make("Reversi-v0", size=6), max_empties=8)
    _, info = env.reset(seed=1)
    *_, info = env.step(int(np.flatnonzero(info["action_mask"])[0]))
    assert "regret" not in info
    env = ExactRegret(gymnasium.make("Reversi-v0", size=6, empties=6), max_empties=8)
    _, info = env.reset(seed=1)
    *_, info = env.step(int(np.flatnonzero(info["action_mask"] == 0)[0]))
    assert info["illegal_action"]
    assert "regret" not in info
