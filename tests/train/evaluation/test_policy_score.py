"""`score_policy` measures callables and models like built-in players with the same moves; the ladder of baselines."""

import numpy as np
import pytest

from reversi_env import ReversiError, Rules, batch
from reversi_env.envs import SettingsError
from reversi_env.errors import IllegalMoveError, TrainError
from search.agents.spec import make_agent
from train import PolicyScore, score_policy
from train.arena.batch import AgentPlayer, EvaluatorPlayer, RandomPlayer, play_games
from train.evaluation.endgames import noisy_endgames
from train.evaluation.exam import packaged_endgames
from train.evaluation.ladder import Ladder, default_baselines, ladder_figure
from train.evaluation.options import EndgameOptions
from train.evaluation.policy_score import ObservingPlayer

RULES, BASELINES = Rules(4, "reversed"), ("random", "greedy")
OPTIONS = {"games": 12, "opponents": BASELINES, "seed": 3}


class LastMove:
    """A player of the last legal square, without observations."""

    def choose(self, own, opp, games, states):
        return np.array([int(board).bit_length() - 1 for board in batch.legal_moves(own, opp, RULES)])


@pytest.fixture(scope="module")
def solved():
    return noisy_endgames(EndgameOptions(4, "reversed", positions=5, empties=(3, 5)))


def last_legal(boards, masks):
    return masks.shape[-1] - 1 - masks[..., ::-1].argmax(-1)


class Model:
    def predict(self, observation, action_masks):
        assert set(observation) == {"observation", "action_mask"}
        return last_legal(observation["observation"], action_masks.astype(np.int8)), None


def checker(shape, low, dtype="int8"):
    def policy(boards, masks):
        assert boards.shape == (len(masks), *shape)
        assert (boards.dtype, boards.min()) == (dtype, low)
        assert np.abs(boards).reshape(len(boards), -1).sum(1).max() <= 16 + 12 * (shape[-1] == 3)
        return last_legal(boards, masks)

    return policy


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (checker((2, 4, 4), 0), {}),
        (checker((16,), -1), {"observation": "flat"}),
        (checker((4, 4, 3), 0, "float32"), {"dtype": "float32", "channels_last": True, "extra_planes": ["legal"]}),
        (Model(), {"observation": "dict"}),
        (lambda board, mask: last_legal(board[None], mask[None])[0], {"batched": False}),
    ],
)
def test_a_policy_scores_like_a_player_with_the_same_moves(policy, options, solved):
    score = score_policy(policy, RULES, endgames=solved, **OPTIONS, **options)
    expected = PolicyScore(RULES, Ladder(RULES, 12, 3, BASELINES).measure(LastMove()), solved.batch_regret(LastMove()))
    assert score.as_dict() == expected.as_dict()
    assert score.elo == expected.standing.elo
    assert str(score) == str(expected)


@pytest.mark.parametrize(("opponents", "zero"), [(("random",), "random"), (("greedy",), "mean")])
def test_elo_is_above_random_only_if_random_played(solved, opponents, zero):
    score = score_policy(last_legal, RULES, games=10, opponents=opponents, endgames=solved)
    assert zero in next(line for line in str(score).splitlines() if line.startswith("Elo above"))


@pytest.mark.slow
def test_agents_and_callables_can_be_opponents():
    rules, none = Rules(6), {"games": 2, "endgames": packaged_endgames(Rules(6))}

    def first_legal(boards, masks):
        return masks.argmax(-1)

    opponents = ("random", "greedy-invincible:seed=1", "zero", "zero:simulations=2", "rl", first_legal)
    score = score_policy(first_legal, rules, opponents=opponents, **none)
    assert [*score.standing.scores] == [*opponents[:-1], "first_legal"]
    assert all(result.games == 2 for result in score.standing.scores.values())
    assert score.standing.scores["first_legal"].score == 0.5  # the same policy from both sides of each opening
    player = ObservingPlayer(first_legal, rules)
    for spec, single in (("zero", "zero:exact=0"), ("zero:simulations=2", "zero:simulations=2,exact=0"), ("rl", "rl")):
        # Seeds of openings and games depend on the place in the ladder.
        places = {name: RandomPlayer(rules) for name in opponents} | {spec: AgentPlayer(make_agent(single), rules)}
        alone = Ladder(rules, 2, 0, places).measure(player).scores[spec]
        assert alone.discs.tolist() == score.standing.scores[spec].discs.tolist()
    with pytest.raises(TrainError, match="'greedy'"):
        score_policy(first_legal, rules, opponents=("greedy", "greedy"), **none)


def test_stronger_baselines_follow_after_a_win(tmp_path):
    rules, further = Rules(6), ("six-factor:depth=1", "six-factor:depth=2", "six-factor:depth=3")
    weak, strong = RandomPlayer(rules), EvaluatorPlayer("six-factor", rules, 2, threads=1)
    ladder = Ladder(rules, 60, 3, BASELINES, stronger=further)
    before, all_met, after = (ladder.measure(player) for player in (weak, strong, weak))
    assert tuple(before.scores) == BASELINES
    assert tuple(all_met.scores)[:3] == (*BASELINES, further[0])
    assert all(result.score > 0.5 for result in list(all_met.scores.values())[:-1])
    assert before.as_dict() == after.as_dict()
    rows = [{"steps": number, **one.as_dict()} for number, one in enumerate((before, all_met))]
    ladder_figure(rows, "6x6").save(tmp_path / "curve.svg")


@pytest.mark.parametrize(
    ("error", "name", "policy", "options"),
    [
        (IllegalMoveError, "0", lambda boards, masks: np.zeros(len(masks), np.int64), OPTIONS),
        *((SettingsError, "3", lambda board, mask: 3, OPTIONS), (TrainError, "games=3", last_legal, {"games": 3})),
        (TrainError, "greedy", "greedy", {}),
        (TrainError, "variant", last_legal, {"variant": "reversed"}),
    ],
)
def test_invalid_policies_and_options_are_refused(solved, error, name, policy, options):
    with pytest.raises(error, match=name):
        score_policy(policy, RULES, endgames=solved, **options)


def test_ladder_measures_elo_above_random():
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


def test_pairings_of_the_ladder_use_different_seeds(monkeypatch):
    all_results = []

    def recording(*args, **kwargs):
        all_results.append(play_games(*args, **kwargs))
        return all_results[-1]

    monkeypatch.setattr("train.evaluation.ladder.play_games", recording)
    Ladder(Rules(6), 40, baselines=("random", "greedy")).measure(RandomPlayer(Rules(6)))
    between_baselines, _, of_the_policy = all_results
    assert not np.array_equal(between_baselines.discs, of_the_policy.discs)
