"""`score_policy`: a policy of anybody's gets the figures that a player of our own gets for the same moves."""

import numpy as np
import pytest

from reversi_env import Rules, batch
from reversi_env.envs import SettingsError
from reversi_env.errors import IllegalMoveError, TrainError
from train import PolicyScore, score_policy
from train.evaluation.endgames import EndgameOptions, noisy_endgames
from train.evaluation.ladder import Ladder

RULES, BASELINES = Rules(4, "reversed"), ("random", "greedy")
OPTIONS = {"games": 12, "opponents": BASELINES, "seed": 3}


class LastMove:
    """The last legal square, without any observation."""

    def choose(self, own, opp, games, states):
        return np.array([int(board).bit_length() - 1 for board in batch.legal_moves(own, opp, RULES)])


@pytest.fixture(scope="module")
def truth():
    return noisy_endgames(EndgameOptions(4, "reversed", positions=5, empties=(3, 5)))


def last_legal(boards, masks):
    return masks.shape[-1] - 1 - masks[..., ::-1].argmax(-1)


class Model:
    def predict(self, observation, action_masks):
        assert set(observation) == {"observation", "action_mask"}
        return last_legal(observation["observation"], action_masks.astype(np.int8)), None


def checking(shape, low, dtype="int8"):
    def policy(boards, masks):
        assert boards.shape == (len(masks), *shape)
        assert (boards.dtype, boards.min()) == (dtype, low)
        assert np.abs(boards).reshape(len(boards), -1).sum(1).max() <= 16 + 12 * (shape[-1] == 3)
        return last_legal(boards, masks)

    return policy


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (checking((2, 4, 4), 0), {}),
        (checking((16,), -1), {"observation": "flat"}),
        (
            checking((4, 4, 3), 0, "float32"),
            {"dtype": "float32", "channels_last": True, "extra_planes": ["legal"]},
        ),
        (Model(), {"observation": "dict"}),
        (lambda board, mask: last_legal(board[None], mask[None])[0], {"batched": False}),
    ],
)
def test_a_policy_gets_the_figures_of_its_moves(policy, options, truth):
    found = score_policy(policy, RULES, endgames=truth, **OPTIONS, **options)
    expected = PolicyScore(RULES, Ladder(RULES, 12, 3, BASELINES).measure(LastMove()), truth.batch_regret(LastMove()))
    assert found.as_dict() == expected.as_dict()
    assert found.elo == expected.standing.elo
    assert str(found) == str(expected)
    assert f"given away: {expected.regret.overall.regret:.2f} discs a move" in str(found)


@pytest.mark.parametrize(("opponents", "zero"), [(("random",), "random"), (("greedy",), "the mean of these players")])
def test_elo_is_counted_from_random_only_where_it_played(truth, opponents, zero):
    score = score_policy(last_legal, RULES, games=10, opponents=opponents, endgames=truth)
    assert f"\nElo above {zero}: {score.elo:+.0f} (95 % interval " in str(score)


def test_a_policy_that_cannot_play_is_told_so(truth):
    with pytest.raises(IllegalMoveError, match="played 0, which is illegal: expected one of"):
        score_policy(lambda boards, masks: np.zeros(len(masks), np.int64), RULES, endgames=truth, **OPTIONS)
    with pytest.raises(SettingsError, match="expected 6 action number"):
        score_policy(lambda board, mask: 3, RULES, endgames=truth, **OPTIONS)
    with pytest.raises(TrainError, match="games=3: expected an even number"):
        score_policy(last_legal, RULES, games=3)
    with pytest.raises(TrainError, match="policy 'greedy': expected a callable"):
        score_policy("greedy", RULES)
    with pytest.raises(TrainError, match="option 'variant' of a policy's observations: expected some of .*'dtype'"):
        score_policy(last_legal, RULES, variant="reversed")
