"""Single, AEC and vector environments (serial and parallel) and `functional` play the same games as `Position`."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from reversi_env import BLACK, WHITE, Rules, functional
from reversi_env.envs import OpponentPool, ReversiEnv, ReversiVectorEnv
from reversi_env.envs import pettingzoo as aec
from tests.oracles.games import GAMES, LastLegal, board_of, draw_legal, last_legal, mask_of, result_of

PLAYERS = (BLACK, WHITE)
STARTS = {"standard": {}, "parallel": {"start": "parallel"}, "opening": {"opening_plies": 5}, "endgame": {"empties": 7}}
#: Functions, because every environment needs its own opponent: a custom opponent may have state.
OPPONENTS = {
    "two players": lambda: None,
    "random": lambda: "random",
    "greedy": lambda: "greedy",
    "callable": lambda: last_legal,
    "agent": lambda: LastLegal(),
    "pool": lambda: OpponentPool(["random", last_legal, "greedy", LastLegal()]),
}


@dataclass
class Step:
    """The arrays that a step returned and the actions that were played; the first one holds the results of `reset`."""

    observations: np.ndarray
    masks: np.ndarray
    to_move: np.ndarray
    actions: np.ndarray | None = None
    rewards: np.ndarray | None = None
    terminated: np.ndarray | None = None


def record(count, steps, seed, **options):
    """Return the steps of a batch of random legal games."""
    envs, rng = ReversiVectorEnv(count, **options), np.random.default_rng(seed)
    observations, infos = envs.reset(seed=seed)
    recorded = [Step(observations, infos["action_mask"], infos["to_move"])]
    for _ in range(steps):
        actions = draw_legal(rng, infos["action_mask"])
        observations, rewards, terminated, _, infos = envs.step(actions)
        recorded.append(Step(observations, infos["action_mask"], infos["to_move"], actions, rewards, terminated))
    return recorded


def replay(recorded, i, env, seed):
    """Replay game *i* in a single environment; yield position, action, next position and final reward of every step."""
    observation, info = env.reset(seed=seed)
    assert_shows(recorded[0], i, observation, info, env.position())
    yield None, None, env.position(), None
    terminated = False
    for step in recorded[1:]:
        if terminated:  # the vector environment ignores this action and begins the next episode
            observation, info = env.reset()
            reward, terminated = 0.0, False
            before, action = None, None
        else:
            before, action = env.position(), int(step.actions[i])
            observation, reward, terminated, _, info = env.step(action)
        assert_shows(step, i, observation, info, env.position())
        assert (reward, terminated) == (step.rewards[i], step.terminated[i])
        yield before, action, env.position(), (reward if terminated else None)


def assert_shows(step, i, observation, info, position):
    assert np.array_equal(observation, step.observations[i])
    assert np.array_equal(info["action_mask"], step.masks[i])
    assert info["to_move"] == step.to_move[i]
    assert np.array_equal(observation, board_of(position, own=PLAYERS[info["to_move"]]))
    assert np.array_equal(info["action_mask"], mask_of(position))


def by_colour(position):
    return position.black, position.white


def successors(position, agent):
    """Return the possible boards when *agent* is to move again, after one move or pass of the opponent."""
    if position.turn == agent or position.is_over():
        return {by_colour(position)}
    return {by_colour(position.play(action)) for action in position.legal_actions()}


LONG = [pytest.mark.slow, pytest.mark.long]
CASES = [
    *(("two players", "black", start, 8, 90) for start in STARTS),
    *(pytest.param(opponent, "black", "standard", 3, 40, marks=pytest.mark.slow) for opponent in list(OPPONENTS)[1:]),
    *((opponent, "alternate", "opening", 3, 40) for opponent in list(OPPONENTS)[1:]),
    *(pytest.param(opponent, "random", "endgame", 3, 40, marks=pytest.mark.slow) for opponent in list(OPPONENTS)[1:]),
    pytest.param("two players", "black", "standard", 200, 130, marks=LONG),
    *(pytest.param(opponent, "random", "opening", 30, 100, marks=LONG) for opponent in list(OPPONENTS)[1:]),
]


@pytest.mark.parametrize(("opponent", "colour", "start", "count", "steps"), CASES)
@pytest.mark.parametrize(("size", "variant"), GAMES)
def test_all_environments_play_the_same_games(size, variant, opponent, colour, start, count, steps):
    options = {"size": size, "variant": variant, "colour": colour, "reward": "discs", **STARTS[start]}
    make, seed, finished, two_players = OPPONENTS[opponent], 77 * size, 0, opponent == "two players"
    recorded = record(count, steps, seed, opponent=make(), **options)
    for one, other in zip(recorded, record(count, steps, seed, opponent=make(), parallel=True, **options), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(vars(one).values(), vars(other).values(), strict=True))
    env = ReversiEnv(opponent=make(), **options)
    for i in range(count):
        for before, action, after, reward in replay(recorded, i, env, seed + i):
            if before is not None:
                moved = before.play(action)
                agent = moved.turn if two_players else before.turn
                assert by_colour(after) in successors(moved, agent)
                assert after.turn == agent
                assert (reward is not None) == after.is_over()
                if opponent == "greedy":
                    check_greedy(moved, after)
            if reward is not None:
                finished += 1
                assert reward == result_of(after, before.turn, "discs")
        if two_players:
            check_aec_game(recorded, i, seed + i, options)
    for device in (None, "cpu") * two_players:
        check_functional(recorded, Rules(size, variant, STARTS[start].get("start", "standard")), seed, start, device)
    assert finished >= count


def check_greedy(moved, after):
    """The greedy opponent flips the most discs, in the reversed game the fewest."""
    if not moved.is_over() and not moved.must_pass():
        children = [moved.play(reply) for reply in moved.legal_actions()]
        margins = {by_colour(child): -child.rules.sign * child.disc_difference() for child in children}
        assert margins[by_colour(after)] == max(margins.values())


def check_functional(recorded, rules, seed, start, device):
    """`functional` plays the first episode of every game: observations, masks, sides to move and last rewards agree."""
    random_play = {name: value for name, value in STARTS[start].items() if name != "start"}
    state = functional.init(len(recorded[0].masks), rules, seed, device=device, **random_play)
    running = np.ones(state.shape, bool)
    for step in recorded:
        if step.actions is not None:
            state = functional.step(state, step.actions if device is None else torch.from_numpy(step.actions))
            rewards = step.rewards.astype(np.float32)
            assert np.array_equal(np.asarray(functional.reward(state, "discs"))[running], rewards[running])
            over = np.asarray(functional.is_over(state))
            assert np.array_equal(over[running], step.terminated[running])
        assert np.array_equal(np.asarray(functional.observe(state))[running], step.observations[running])
        assert np.array_equal(np.asarray(functional.legal(state))[running], step.masks[running] != 0)
        assert np.array_equal(np.asarray(state.turn)[running], step.to_move[running])
        running &= ~np.asarray(functional.is_over(state))
    assert not running.any()


def check_aec_game(recorded, i, seed, options):
    """The AEC environment plays the first episode of game *i*; both agents are rewarded at the end only."""
    env = aec.env(**{key: value for key, value in options.items() if key != "colour"})
    env.reset(seed=seed)
    for before, step in itertools.pairwise(recorded):
        agent = env.agent_selection
        observation, reward, terminated, _, _ = env.last()
        assert agent == f"player_{before.to_move[i]}"
        assert np.array_equal(observation["observation"], before.observations[i])
        assert np.array_equal(observation["action_mask"], before.masks[i])
        assert (reward, terminated) == (0.0, False)
        env.step(int(step.actions[i]))
        if step.terminated[i]:
            other = "player_1" if agent == "player_0" else "player_0"
            check_aec_end(env, {agent: step.rewards[i], other: -step.rewards[i]})
            return
    raise AssertionError("the game did not end")


def check_aec_end(env, rewards):
    """Each agent keeps its reward and its own observation until it is stepped with None."""
    assert env.rewards == rewards
    final = env.position()
    winner = -1 if final.winner() is None else PLAYERS.index(final.winner())
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        colour = PLAYERS[int(agent[-1])]
        assert (reward, terminated, truncated) == (rewards.pop(agent), True, False)
        assert (info["score"], info["winner"]) == (final.score(colour), winner)
        assert np.array_equal(observation["observation"], board_of(final, own=colour))
        assert np.array_equal(observation["action_mask"], mask_of(final))
        env.step(None)
    assert rewards == {}
    assert env.agents == []
