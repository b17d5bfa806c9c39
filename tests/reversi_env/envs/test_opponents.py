"""Opponents of every kind, alone or in an `OpponentPool` that changes during training."""

import pickle
from functools import partial

import gymnasium
import numpy as np
import pytest

from reversi_env import Position
from reversi_env.envs import OpponentPool, ReversiEnv, ReversiVectorEnv, SettingsError
from reversi_env.errors import IllegalMoveError, ReversiError
from search import make_agent
from tests.oracles.games import LastLegal, last_legal


class Model:
    """A model with the interface of SB3, without masks. It plays the lowest legal action of a dict observation."""

    def __init__(self):
        self.seen = []

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        self.seen.append((observation, observation["action_mask"]))
        return observation["action_mask"].argmax(-1), None


class MaskedModel(Model):
    """A model with the interface of sb3-contrib, with masks."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False, action_masks=None):
        self.seen.append((observation, action_masks))
        return last_legal(observation, action_masks), None


class CountingPolicy:
    """A batch policy that records the number of games of every call."""

    def __init__(self):
        self.batches = []

    def __call__(self, boards, masks):
        assert boards.shape[1:] == (2, 4, 4)
        assert masks.shape == (len(boards), 17)
        self.batches.append(len(boards))
        return last_legal(boards, masks)


def whole_game(env, seed=1):
    env.reset(seed=seed)
    while not (result := env.step(env.sample_legal()))[2]:
        pass
    return result


def test_agent_spec_works_as_opponent():
    assert ReversiEnv(opponent="greedy:")
    env = ReversiEnv(opponent="greedy:seed=3")
    agent = env.opponents.player(0)._agent
    assert type(agent).__name__ == "GreedyAgent"
    assert env.opponents[0] == "greedy:seed=3"
    whole_game(env)
    assert whole_game(gymnasium.make("Reversi-v0", opponent="random:seed=1").unwrapped)[1] in (-1.0, 0.0, 1.0)


def test_builtin_opponents_do_not_load_agents(monkeypatch):
    """The registry of agents is not used before an agent is needed."""

    def fail_to_load(path):
        raise AssertionError("asked for agents")

    monkeypatch.setattr("reversi_env.loading.load", fail_to_load)
    for opponent in (None, "random", "greedy", last_legal, LastLegal()):
        whole_game(ReversiEnv(size=4, opponent=opponent))
    with pytest.raises(AssertionError, match="asked"):
        ReversiEnv(opponent="somebody")


NAMES = ["gredy", "", "greedy:depth=x", "Random", "six factor"]
NOT_OPPONENTS = [3, 2.5, object(), LastLegal, {"random": 1}, [3], lambda board: 0, [], (), OpponentPool()]


@pytest.mark.parametrize("opponent", [*NAMES, *NOT_OPPONENTS, [OpponentPool(["random"])]])
def test_invalid_opponent_is_rejected(opponent):
    for make in (ReversiEnv, ReversiVectorEnv):
        with pytest.raises(SettingsError, match="opponent"):
            make(opponent=opponent)


def test_agent_without_support_for_the_game_is_rejected_early():
    """The package has no network for 4x4."""
    agent = make_agent("network")
    for opponent in ("network", "network:depth=1", agent, ["random", "network"], OpponentPool([agent])):
        for make in (ReversiEnv, ReversiVectorEnv):
            with pytest.raises(ReversiError, match="4x4"):
                make(size=4, opponent=opponent)
            assert make(size=6, opponent=opponent)
    assert ReversiEnv(size=4, opponent=LastLegal())  # without a check of games


@pytest.mark.parametrize("observation", ["planes", "flat", "dict"])
def test_callable_opponent_sees_the_board_from_its_side(observation):
    seen = []

    def reply(board, mask):
        seen.append((board, mask))
        return int(mask.argmax())

    env = ReversiEnv(opponent=reply, observation=observation)
    env.reset(seed=1)
    env.step(37)
    env.step(env.sample_legal())
    board, mask = seen[0]
    white = Position.initial().play("f5")
    own, opp = (int(part.sum()) for part in (board if observation != "flat" else (board == 1, board == -1)))
    assert (own, opp) == (1, 4)
    assert np.flatnonzero(mask).tolist() == white.legal_actions()
    assert board.shape == ((64,) if observation == "flat" else (2, 8, 8))


@pytest.mark.parametrize(
    ("model", "observation", "shape"),
    [(Model, "dict", (2, 4, 4)), (MaskedModel, "flat", (16,)), (MaskedModel, "planes", (2, 4, 4))],
)
def test_model_opponent_gets_environments_observation_and_mask(model, observation, shape):
    alone, many = model(), model()
    whole_game(ReversiEnv(size=4, opponent=alone, observation=observation))
    envs = ReversiVectorEnv(3, size=4, opponent=many, observation=observation)
    envs.reset(seed=1)
    envs.step(envs.sample_legal())
    for called, axes in ((alone, ()), (many, (3,))):
        seen, mask = called.seen[0]
        assert (seen["observation"] if observation == "dict" else seen).shape == (*axes, *shape)
        assert mask.shape == (*axes, 17)
        assert (mask.dtype == np.bool_) == (model is MaskedModel)


class ModelWithoutMasks:
    """A model that takes no masks."""

    def predict(self, observation):
        return np.full(observation.shape[:-1], 5), None


def failing_opponent(board, mask):
    raise ZeroDivisionError("tired")


def illegal(move):
    """Return an opponent that plays *move*; in a batch, its move in the first game is legal."""
    return lambda board, mask: move if mask.ndim == 1 else np.array([mask[0].argmax(), move, move])


FAILING_OPPONENTS = [
    *((illegal(move), IllegalMoveError, f"played {move}") for move in (5, 16, 17, -1, 1000)),
    (ModelWithoutMasks(), IllegalMoveError, "played 5.*mask"),
    *((lambda *_, answer=answer: answer, SettingsError, "opponent") for answer in (None, 1.0, "a1", [1, 2], [], True)),
    (failing_opponent, ZeroDivisionError, "tired"),
]


@pytest.mark.parametrize(("opponent", "error", "message"), FAILING_OPPONENTS)
def test_opponent_error_is_raised_and_step_is_undone(opponent, error, message):
    for make in (ReversiEnv, partial(ReversiVectorEnv, 3)):
        env = make(size=4, opponent=opponent, observation="flat")
        env.reset(seed=1)
        states, masks, actions = env.get_state(), env.action_masks(), [1, 1, 1]
        with pytest.raises(error, match=message):
            env.step(actions if make is not ReversiEnv else 1)
        assert np.array_equal(env.get_state(), states)
        assert np.array_equal(env.action_masks(), masks)


def test_opponent_error_in_reset_leaves_no_episode():
    white = ReversiEnv(opponent=failing_opponent, colour="white")
    with pytest.raises(ZeroDivisionError):
        white.reset(seed=1)
    with pytest.raises(gymnasium.error.ResetNeeded):
        white.step(19)


def test_opponent_may_write_into_its_observation():
    def writing_opponent(board, mask):
        action = last_legal(board, mask)
        board[...] = 7
        mask[...] = 7
        return action

    unchanged, written = (ReversiEnv(size=4, opponent=opponent) for opponent in (last_legal, writing_opponent))
    unchanged.reset(seed=1)
    written.reset(seed=1)
    for _ in range(4):
        action = unchanged.sample_legal()
        written.sample_legal()
        assert np.array_equal(unchanged.step(action)[0], written.step(action)[0])


@pytest.mark.parametrize(
    ("mode", "colour", "calls_per_step"),
    [("NEXT_STEP", "black", 1), ("DISABLED", "black", 1), ("NEXT_STEP", "white", 1), ("SAME_STEP", "white", 2)],
)
def test_batch_opponent_is_called_once_per_step(mode, colour, calls_per_step):
    opponent, begins = CountingPolicy(), colour == "white"
    envs = ReversiVectorEnv(16, size=4, opponent=opponent, colour=colour, autoreset_mode=mode)
    envs.reset(seed=1)
    assert opponent.batches == [16] * begins
    for step in range(1, 5 if mode == "DISABLED" else 60):
        envs.step(envs.sample_legal())
        assert len(opponent.batches) <= calls_per_step * step + begins
        assert step > 4 or len(opponent.batches) == step + begins
    assert opponent.batches[0] == 16


def test_pool_gives_each_opponent_its_own_games():
    counting = [CountingPolicy(), CountingPolicy()]
    envs = ReversiVectorEnv(64, size=4, opponent=[*counting, "random"])
    envs.reset(seed=1)
    envs.step(envs.sample_legal())
    counts = np.bincount(envs.get_state()["opponent"], minlength=3)
    assert [opponent.batches for opponent in counting] == [[counts[0]], [counts[1]]]
    assert counts.min() > 8


def test_opponents_are_drawn_in_proportion_to_weights():
    pool, shares = OpponentPool(), np.array([1 / 8, 3 / 8, 0, 4 / 8])
    for weight, opponent in ((1.0, "random"), (3, "greedy"), (0.0, last_legal), (np.float32(4.0), LastLegal())):
        pool.add(opponent, weight)
    envs = ReversiVectorEnv(5000, size=4, opponent=pool, colour="random")
    envs.reset(seed=1)
    states = envs.get_state()
    counts = np.bincount(2 * states["opponent"] + states["agent"], minlength=8)
    assert counts / 5000 == pytest.approx(np.repeat(shares, 2) / 2, abs=0.03)


def test_pool_changes_apply_from_the_next_episode():
    pool = OpponentPool(["random"])
    env = ReversiEnv(size=4, opponent=pool)
    env.reset(seed=1)
    assert pool.add(last_legal, weight=1e9) == 1
    for running, drawn_next in ((0, 1), (1, 0)):
        env.step(env.sample_legal())
        assert env.get_state()["opponent"][0] == running
        env.reset()
        assert env.get_state()["opponent"][0] == drawn_next
        pool.set_weight(1, 0.0)
    assert (len(pool), pool[0], pool[1]) == (2, "random", last_legal)


def test_pool_can_be_shared_and_pickled():
    pool = OpponentPool(["random", last_legal])
    first, second = ReversiEnv(size=4, opponent=pool), ReversiVectorEnv(2, size=4, opponent=pool)
    third = ReversiEnv(size=4, opponent=pool)
    pool.add("greedy", weight=1e9)
    first.reset(seed=1)
    second.reset(seed=1)
    assert first.get_state()["opponent"][0] == 2
    assert second.get_state()["opponent"].tolist() == [2, 2]
    third.set_state(first.get_state())
    assert third.get_state()["opponent"][0] == 2
    copied = pickle.loads(pickle.dumps(pool))
    assert [copied[i] for i in range(3)] == ["random", last_legal, "greedy"]
    assert np.array_equal(copied.records(), pool.records())


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf"), "heavy", None, True])
@pytest.mark.parametrize("number", [-1, 1, "random", None])
def test_invalid_pool_weight_or_index_is_rejected(weight, number):
    pool = OpponentPool(["random"])
    weight_changes = [("weight", lambda: pool.add("greedy", weight)), ("weight", lambda: pool.set_weight(0, weight))]
    for message, change in (*weight_changes, ("opponent", lambda: pool.set_weight(number, 1.0))):
        with pytest.raises(SettingsError, match=message):
            change()
    assert pool.records()["cumulative_share"].tolist() == [1.0]


def test_pool_with_zero_weights_is_rejected_at_reset():
    pool = OpponentPool(["random"])
    env = ReversiEnv(size=4, opponent=pool)
    env.reset(seed=1)
    pool.set_weight(0, 0.0)
    before = env.get_state()
    with pytest.raises(SettingsError, match="weight"):
        env.reset()
    assert env.get_state() == before
    env.step(env.sample_legal())
