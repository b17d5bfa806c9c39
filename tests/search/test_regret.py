"""`ExactRegret`: the wrapper's regret equals that of the solver."""

import gymnasium
import numpy as np
import pytest
import torch

from reversi_env import ReversiError
from reversi_env.batch import action_images
from reversi_env.envs.wrappers import CanonicalPositions, SymmetryAugmentation
from search.engine.solver import solve_all_moves
from search.regret import ExactRegret


@pytest.mark.parametrize("name", ["Reversi-v0", "ReversedReversi-v0"])
@pytest.mark.parametrize("opponent", [None, "random"])
def test_regret_is_best_value_minus_chosen_value(name, opponent):
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


@pytest.mark.parametrize(("empties", "legal"), [(None, 1), (6, 0)])
def test_early_and_illegal_moves_have_no_regret(empties, legal):
    env = ExactRegret(gymnasium.make("Reversi-v0", size=6, empties=empties), max_empties=8)
    _, info = env.reset(seed=1)
    *_, info = env.step(int(np.flatnonzero(info["action_mask"] == legal)[0]))
    assert info["illegal_action"] == (not legal)
    assert "regret" not in info


@pytest.mark.parametrize(("size", "limit"), [(4, 16), (6, 36), (8, 24)])
def test_too_many_empties_and_other_environments_are_rejected(size, limit):
    env = gymnasium.make("Reversi-v0", size=size)
    again = ExactRegret(env, max_empties=limit).spec.make()
    assert (type(again), again.max_empties) == (ExactRegret, limit)
    for wrong in (limit + 1, 99, -1, 2.5, True, "8"):
        with pytest.raises(ReversiError, match=f"max_empties={wrong!r}"):
            ExactRegret(env, max_empties=wrong)
    with pytest.raises(ReversiError, match="CartPole"):
        ExactRegret(gymnasium.make("CartPole-v1"))


@pytest.mark.parametrize("wrapper", [SymmetryAugmentation, CanonicalPositions])
def test_regret_is_correct_with_symmetry_wrappers(wrapper):
    plain, inside, around = (gymnasium.make("Reversi-v0", size=4, opponent=None, empties=8) for _ in range(3))
    plain, inside, around = ExactRegret(plain), wrapper(ExactRegret(inside)), ExactRegret(wrapper(around))
    transformed = 0
    for seed in range(4):
        for env in (plain, inside, around):
            env.reset(seed=seed)
        over = False
        while not over:
            action, symmetry = plain.unwrapped.sample_legal(), around.get_wrapper_attr("symmetry")
            image = torch.tensor(action_images(4)[symmetry, action])
            transformed += int(image) != action
            _, _, over, _, info = plain.step(action)
            for env in (inside, around):
                wrapped_info = env.step(image)[4]
                assert (wrapped_info["regret"], wrapped_info["exact_score"]) == (info["regret"], info["exact_score"])
    assert transformed > 5


def test_whole_game_has_regret_and_fills_the_cache(tmp_path):
    env = ExactRegret(gymnasium.make("Reversi-v0", size=4, opponent=None), max_empties=12, cache=tmp_path)
    env.reset(seed=2)
    over, scores = False, []
    while not over:
        position = env.unwrapped.position()
        _, _, over, _, info = env.step(env.unwrapped.sample_legal())
        sign = 1 if position.turn == position.initial(position.rules).turn else -1
        scores.append((sign * info["exact_score"], sign * info["regret"]))
    score = scores[0][0]
    for exact, regret in scores:
        assert exact == score
        score -= regret
    assert score == env.unwrapped.position().score(position.initial(position.rules).turn)
    env.close()
    assert [path.stat().st_size > 0 for path in tmp_path.iterdir()] == [True]
