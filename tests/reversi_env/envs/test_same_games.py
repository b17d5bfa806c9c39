"""One game in five clothes: the single, AEC and vector environment (serial and parallel) and pure states play the same games.

A batch is played with random legal actions and recorded; each of its games is then played again in a single environment
(and in the AEC environment) with the same seed and actions, and followed by a `Position`, whose rules have tests of
their own.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from reversi_env import BLACK, WHITE, Position, Rules, functional
from reversi_env.envs import OpponentPool, ReversiEnv, ReversiVectorEnv
from reversi_env.envs import pettingzoo as aec
from tests.oracles.games import GAMES, LastLegal, draw_legal, last_legal, mask_of, result_of

PLAYERS = (BLACK, WHITE)
STARTS = {
    "standard": {},
    "parallel": {"start": "parallel"},
    "opening": {"opening_plies": 5},
    "endgame": {"empties": 7},
}
#: Made anew for every environment: an opponent of one's own may have a state.
OPPONENTS = {
    "random": lambda: "random",
    "greedy": lambda: "greedy",
    "callable": lambda: last_legal,
    "agent": lambda: LastLegal(),
    "pool": lambda: OpponentPool(["random", last_legal, "greedy", LastLegal()]),
}


@dataclass
class Step:
    """What a step (or, as the first one, the reset) returned, an array each, and the actions that were played."""

    observations: np.ndarray
    masks: np.ndarray
    to_move: np.ndarray
    actions: np.ndarray | None = None
    rewards: np.ndarray | None = None
    terminated: np.ndarray | None = None


def record(count, steps, seed, **options):
    """A batch of games, played at random but legally."""
    envs, rng = ReversiVectorEnv(count, **options), np.random.default_rng(seed)
    observations, infos = envs.reset(seed=seed)
    recorded = [Step(observations, infos["action_mask"], infos["to_move"])]
    for _ in range(steps):
        actions = draw_legal(rng, infos["action_mask"])
        observations, rewards, terminated, _, infos = envs.step(actions)
        recorded.append(Step(observations, infos["action_mask"], infos["to_move"], actions, rewards, terminated))
    return recorded


def assert_same_records(left, right):
    for one, other in zip(left, right, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(vars(one).values(), vars(other).values(), strict=True))


def replay(recorded, i, env, seed):
    """Play game *i* again in a single environment; every step with the position before and after it."""
    observation, info = env.reset(seed=seed)
    assert_shows(recorded[0], i, observation, info)
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
        assert_shows(step, i, observation, info)
        assert (reward, terminated) == (step.rewards[i], step.terminated[i])
        yield before, action, env.position(), (reward if terminated else None)


def assert_shows(step, i, observation, info):
    assert np.array_equal(observation, step.observations[i])
    assert np.array_equal(info["action_mask"], step.masks[i])
    assert info["to_move"] == step.to_move[i]
    assert step.masks[i].any()


def by_colour(position):
    return position.black, position.white


def successors(position, agent):
    """The boards that can lie when *agent* is to move again, after one move of the opponent or its pass."""
    if position.turn == agent or position.is_over():
        return {by_colour(position)}
    return {by_colour(position.play(action)) for action in position.legal_actions()}


# --- two players ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "count", "steps"),
    [*((start, 8, 90) for start in STARTS), pytest.param("standard", 200, 130, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(("size", "variant"), GAMES)
def test_two_player_games_are_the_same_everywhere(size, variant, start, count, steps):
    assert check_two_player_games(size, variant, start, count, steps) >= count


def check_two_player_games(size, variant, start, count, steps):
    options = {"size": size, "variant": variant, "opponent": None, **STARTS[start]}
    seed, finished = 1000 * size, 0
    recorded = record(count, steps, seed, **options)
    assert_same_records(recorded, record(count, steps, seed, parallel=True, **options))
    env = ReversiEnv(**options)
    for i in range(count):
        for before, action, after, reward in replay(recorded, i, env, seed + i):
            if before is not None:
                position = before.play(action)
                assert (after.own, after.opp, after.turn) == (position.own, position.opp, position.turn)
                assert (reward is not None) == after.is_over()
            if reward is not None:
                finished += 1
                assert reward == result_of(after, before.turn)
        check_aec_game(recorded, i, seed + i, options)
    check_positions(recorded, Rules(size, variant), count)
    for device in (None, "cpu"):
        check_pure_states(recorded, Rules(size, variant, STARTS[start].get("start", "standard")), seed, start, device)
    return finished


def check_pure_states(recorded, rules, seed, start, device):
    """`functional` plays the first episode of every game: what it shows, whose turn it is, and what the last move earns."""
    random_play = {name: value for name, value in STARTS[start].items() if name != "start"}
    state = functional.init(len(recorded[0].masks), rules, seed, device=device, **random_play)
    running = np.ones(state.shape, bool)
    for step in recorded:
        if step.actions is not None:
            state = functional.step(state, step.actions if device is None else torch.from_numpy(step.actions))
            assert np.array_equal(np.asarray(functional.reward(state))[running], step.rewards[running])
            over = np.asarray(functional.is_over(state))
            assert np.array_equal(over[running], step.terminated[running])
        assert np.array_equal(np.asarray(functional.observe(state))[running], step.observations[running])
        assert np.array_equal(np.asarray(functional.legal(state))[running], step.masks[running] != 0)
        assert np.array_equal(np.asarray(state.turn)[running], step.to_move[running])
        running &= ~np.asarray(functional.is_over(state))
    assert not running.any()


def check_positions(recorded, rules, count):
    """What the recorded observations show is what positions with those discs say about legal moves and the end."""
    for step, i in itertools.product(recorded[::7], range(0, count, 5)):
        own, opp = (sum(1 << rules.square_of(int(a)) for a in np.flatnonzero(plane)) for plane in step.observations[i])
        position = Position(rules, own, opp, PLAYERS[step.to_move[i]])
        assert np.array_equal(mask_of(position), step.masks[i])
        assert position.is_over() == bool(step.terminated is not None and step.terminated[i])


def check_aec_game(recorded, i, seed, options):
    """The AEC environment plays the first episode of game *i*; both rewards come at the end, and nowhere before."""
    env = aec.env(**{key: value for key, value in options.items() if key != "opponent"})
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
            assert env.rewards == {agent: step.rewards[i], other: -step.rewards[i]}
            assert env.terminations == {"player_0": True, "player_1": True}
            return
    raise AssertionError("the game did not end")


# --- against an opponent --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("colour", "start", "count", "steps"),
    [
        ("black", "standard", 3, 40),
        ("alternate", "opening", 3, 40),
        ("random", "endgame", 3, 40),
        pytest.param("random", "opening", 30, 100, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("opponent", OPPONENTS)
@pytest.mark.parametrize(("size", "variant"), GAMES)
def test_games_against_opponents_are_the_same_everywhere(size, variant, opponent, colour, start, count, steps):
    assert check_games_against(OPPONENTS[opponent], size, variant, colour, start, count, steps) >= count


def check_games_against(opponent, size, variant, colour, start, count, steps):
    options = {"size": size, "variant": variant, "colour": colour, "reward": "discs", **STARTS[start]}
    seed, finished = 77 * size, 0
    recorded = record(count, steps, seed, opponent=opponent(), **options)
    assert_same_records(recorded, record(count, steps, seed, opponent=opponent(), parallel=True, **options))
    env = ReversiEnv(opponent=opponent(), **options)
    for i in range(count):
        for before, action, after, reward in replay(recorded, i, env, seed + i):
            if before is not None:
                assert by_colour(after) in successors(before.play(action), before.turn)
                assert after.turn == before.turn
                assert (reward is not None) == after.is_over()
            if reward is not None:
                finished += 1
                assert reward == result_of(after, before.turn, "discs")
    return finished


@pytest.mark.parametrize(("size", "variant"), GAMES)
def test_greedy_takes_a_best_move(size, variant):
    """The compiled opponent turns most discs, in the reversed game the fewest."""
    rules, env = Rules(size, variant), ReversiEnv(size=size, variant=variant, opponent="greedy")
    for seed in range(8):
        _, info = env.reset(seed=seed)
        terminated, rng = False, np.random.default_rng(seed)
        while not terminated:
            before, action = env.position(), int(draw_legal(rng, info["action_mask"]))
            _, _, terminated, _, info = env.step(action)
            moved = before.play(action)
            if moved.is_over() or moved.must_pass():
                continue
            children = [moved.play(reply) for reply in moved.legal_actions()]
            best = max(-rules.sign * child.disc_difference() for child in children)
            replies = [child for child in children if by_colour(child) == by_colour(env.position())]
            assert -rules.sign * replies[0].disc_difference() == best
