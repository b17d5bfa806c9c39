"""Episodes: passes, ends of games, rewards, colours, start positions, seeds."""

import itertools
from functools import partial

import numpy as np
import pytest

from reversi_env import BLACK, WHITE, Position, Rules
from reversi_env.envs import ReversiEnv, ReversiVectorEnv, SettingsError
from reversi_env.envs import pettingzoo as aec
from tests.oracles.games import (
    ENDINGS,
    PASS_AFTER,
    LastLegal,
    board_of,
    draw_legal,
    last_legal,
    mask_of,
    moves_of,
    number_of,
    play_out,
    position_after,
    result_of,
    scripted_game,
    two_player,
)

NORMAL4, NORMAL8 = Rules(4), Rules(8)


def test_pass_is_the_only_legal_action_without_moves():
    """After e6f6c4e7e8d8g7f8 black has no move: only the pass is legal, and white moves next."""
    env = two_player(NORMAL8)
    _, _, terminated, _, info = play_out(env, moves_of(PASS_AFTER, NORMAL8))
    assert (terminated, info["to_move"]) == (False, number_of(BLACK))
    assert np.flatnonzero(info["action_mask"]).tolist() == [env.sample_legal()] == [64]
    observation, reward, terminated, _, info = env.step(64)
    after = position_after(PASS_AFTER, NORMAL8).play("pass")
    assert (reward, terminated, info["illegal_action"]) == (0.0, False, False)
    assert info["to_move"] == number_of(WHITE)
    assert np.array_equal(observation, board_of(after))
    assert np.array_equal(info["action_mask"], mask_of(after))
    start = position_after(PASS_AFTER, NORMAL8)
    _, info = ReversiEnv(opponent=None, start=start).reset(seed=1)
    assert np.flatnonzero(info["action_mask"]).tolist() == [64]
    for opponent in ("random", last_legal):  # the agent is white, and black's pass was already played
        env = ReversiEnv(opponent=opponent, start=start, colour="white")
        env.reset(seed=1)
        assert env.position() == after


@pytest.mark.parametrize(("game", "rules"), ENDINGS.values(), ids=ENDINGS)
@pytest.mark.parametrize(("reward", "observation"), [("win", "planes"), ("discs", "flat")])
def test_end_of_game_gives_result_and_score(game, rules, reward, observation):
    actions, final = moves_of(game, rules), position_after(game, rules)
    env = two_player(rules, **(options := {"reward": reward, "observation": observation}))
    results = [env.step(action) for action in actions]
    assert [terminated for _, _, terminated, _, _ in results] == [False] * (len(actions) - 1) + [True]
    assert {(received, info["rewards"]) for _, received, _, _, info in results[:-1]} == {(0.0, (0.0, 0.0))}
    assert "score" not in results[-2][-1]
    rewards = str((result_of(final, BLACK, reward), result_of(final, WHITE, reward)))
    assert str(results[-1][-1]["rewards"]) == rewards
    check_end(results[-1], final, options, final.turn.other, final.turn)
    for agent in (BLACK, WHITE):
        env, actions = scripted_game(game, rules, agent, **options)
        env.reset(seed=1)
        result = play_out(env, actions)
        check_end(result, final, options, agent, agent)
        assert (result[-1]["agent"], result[-1]["opponent"]) == (number_of(agent), 0)


def check_end(result, final, options, rewarded, viewer):
    observation, received, terminated, truncated, info = result
    assert (terminated, truncated) == (True, False)
    assert received == result_of(final, rewarded, options["reward"])
    winner = -1 if final.winner() is None else number_of(final.winner())
    assert (info["score"], info["winner"]) == (final.score(rewarded), winner)
    assert info["to_move"] == number_of(viewer)
    assert np.array_equal(observation, board_of(final, options["observation"], own=viewer))
    assert np.flatnonzero(info["action_mask"]).tolist() == [final.rules.pass_action]


@pytest.mark.parametrize("reward", ["win", "discs"])
def test_illegal_action_loses_the_episode(reward):
    for text, action in (("", 64), (PASS_AFTER, 0)):  # an illegal pass, and a move where only a pass is legal
        _, received, terminated, _, info = play_out(two_player(NORMAL8), [*moves_of(text, NORMAL8), action])
        assert (received, terminated, info["illegal_action"]) == (-1.0, True, True)
    env = two_player(NORMAL4, reward=reward)
    env.step(env.sample_legal())
    before = env.position()
    observation, received, terminated, _, info = env.step(5)
    assert (received, terminated, info["illegal_action"]) == (-1.0, True, True)
    assert info["rewards"] == (1.0, -1.0)
    assert (info["to_move"], info["score"], info["winner"]) == (1, -16, 0)
    assert np.array_equal(observation, board_of(before))
    assert np.flatnonzero(info["action_mask"]).tolist() == [16]
    game = aec.env(size=4, reward=reward)
    game.reset(seed=1)
    game.step(0)
    assert game.rewards == {"player_0": -1.0, "player_1": 1.0}
    lost, won = {"illegal_action": True, "score": -16}, {"illegal_action": False, "score": 16}
    assert game.infos == {"player_0": lost | {"winner": 1}, "player_1": won | {"winner": 1}}


@pytest.mark.parametrize("opponent", [None, "random", last_legal])
def test_illegal_action_is_replaced_with_option_random(opponent):
    env = ReversiEnv(size=4, opponent=opponent, illegal="random")
    for seed in range(20):
        env.reset(seed=seed)
        before = env.position()
        _, _, terminated, _, info = env.step(5)
        assert (terminated, info["illegal_action"]) == (False, True)
        assert env.position().empties in (before.empties - 1, before.empties - 2)
        assert env.step(env.sample_legal())[-1]["illegal_action"] is False
    game = aec.env(size=4, illegal="random")
    game.reset(seed=1)
    for replaced in (True, False):
        game.step(5 if replaced else game.sample_legal())
        assert game.infos == {"player_0": {"illegal_action": replaced}, "player_1": {"illegal_action": False}}
    assert game.agents == ["player_0", "player_1"]


def potential(position, agent):
    """Return the shaping potential as the docstring defines it, from the position alone."""
    if position.is_over():
        return 0.0
    counts = {}
    for colour in (BLACK, WHITE):
        seen = position if colour == position.turn else Position(position.rules, position.opp, position.own, colour)
        counts[colour] = seen.legal_board().bit_count()
    mine, theirs = counts[agent], counts[agent.other]
    return (mine - theirs) / (2 * (mine + theirs))


@pytest.mark.parametrize("illegal", [False, True], ids=["legal play", "an illegal action at the end"])
@pytest.mark.parametrize("discount", [1.0, 0.9])
@pytest.mark.parametrize("opponent", ["random", "greedy", last_legal, LastLegal(), ["random", last_legal]])
def test_shaped_rewards_sum_to_result_minus_first_potential(opponent, discount, illegal):
    """The discounted sum of the shaped rewards of an episode is the discounted result minus the first potential."""
    env = ReversiEnv(size=6, opponent=opponent, colour="random", reward="shaped", discount=discount)
    rng, shaped = np.random.default_rng(1), 0
    for seed in range(12):
        _, info = env.reset(seed=seed, options={"opening_plies": 3})
        agent = BLACK if info["agent"] == 0 else WHITE
        first, last_turn = potential(env.position(), agent), rng.integers(3, 12)
        total = result = 0.0
        for t in itertools.count():
            before = potential(env.position(), agent)
            lost = bool(illegal and t == last_turn)
            action = np.argmin(info["action_mask"]) if lost else draw_legal(rng, info["action_mask"])
            _, reward, terminated, _, info = env.step(action)
            after = 0.0 if terminated else potential(env.position(), agent)
            plain = 0.0 if not terminated else -1.0 if lost else result_of(env.position(), agent)
            assert reward == pytest.approx(plain + discount * after - before, abs=1e-15)
            total += discount**t * reward
            result += discount**t * plain
            shaped += reward != plain
            if terminated:
                break
        assert total == pytest.approx(result - first, abs=1e-12)
    assert shaped > 50


@pytest.mark.parametrize("opponent", ["random", last_legal])
def test_colour_option_decides_the_agents_colour(opponent):
    for colour, expected in (("black", [0] * 8), ("white", [1] * 8), ("alternate", [0, 1] * 4)):
        env = ReversiEnv(size=4, opponent=opponent, colour=colour)
        infos = [env.reset(seed=1)[1], *(env.reset()[1] for _ in range(7))]
        assert [info["agent"] for info in infos] == [info["to_move"] for info in infos] == expected
    env = ReversiEnv(size=4, opponent=opponent, colour="random")
    assert 160 < sum(env.reset(seed=seed)[1]["agent"] for seed in range(400)) < 240
    options = {"size": 4, "opponent": opponent, "colour": "alternate", "empties": 2}
    env, envs = ReversiEnv(**options), ReversiVectorEnv(1, autoreset_mode="SAME_STEP", **options)
    assert [env.reset(seed=seed)[1]["agent"] for seed in (7, None, 7, 8, None, None)] == [0, 1, 0, 0, 1, 0]
    assert [env.reset()[1]["agent"] for _ in range(30)] == [1, 0] * 15
    agents = [envs.reset(seed=1)[1]["agent"][0]]
    for _ in range(60):
        _, _, terminated, _, infos = envs.step(envs.sample_legal())
        agents += infos["agent"][terminated].tolist()
    assert len(agents) > 20
    assert agents == ([0, 1] * len(agents))[: len(agents)]


def test_start_option_sets_the_first_position():
    board = Position.initial().play_all(["f5", "d6", "c3", "d3"])
    parallel = Position.initial(Rules(start="parallel"))
    for start, expected in (("standard", Position.initial()), ("parallel", parallel), (board.to_text(), board)):
        assert two_player(NORMAL8, start=start).position() == expected
    white_to_move = Position.initial().play("f5")
    env, game = ReversiEnv(opponent=None, start=white_to_move), aec.env(start=white_to_move)
    _, info = env.reset()
    game.reset()
    assert env.position() == white_to_move
    assert (info["to_move"], game.agent_selection) == (1, "player_1")


@pytest.mark.parametrize(
    ("options", "empties", "different"),
    [*(({"empties": count}, count, 4) for count in (1, 2, 10, 59)), ({"opening_plies": 6}, 54, 8)],
)
def test_random_starts_have_requested_empties_or_plies(options, empties, different):
    env, games = ReversiEnv(opponent=None, **options), aec.env(**options)
    agent = ReversiEnv(colour="random", **options)
    starts = set()
    for seed in range(10):
        for one in (env, games, agent):
            one.reset(seed=seed)
        assert env.position() == games.position()
        assert env.position().empties == empties
        assert not env.position().is_over()
        starts.add(env.position())
        assert empties - 1 <= agent.position().empties <= empties
    assert len(starts) >= different


def test_reset_options_apply_to_one_episode():
    env = ReversiEnv(size=6, opponent="random")
    start = Position.initial(Rules(6)).play_all(["c2", "d2"])
    _, info = env.reset(seed=1, options={"start": start, "colour": "white"})
    assert info["agent"] == 1
    assert env.position().empties == 29
    assert env.reset()[1]["agent"] == 0
    assert env.position() == Position.initial(Rules(6))
    env.reset(options={"empties": 5})
    assert env.position().empties in (4, 5)
    env.reset(options={"opening_plies": 4})
    assert env.position().empties == 28
    game = aec.env(size=6)
    game.reset(options={"start": start, "colour": "white", "something else": 1})
    assert game.position() == start
    envs = ReversiVectorEnv(3, size=6, opponent=None)
    envs.reset(options={"start": start})
    assert envs.positions() == [start] * 3
    envs.reset()
    assert envs.positions() == [Position.initial(Rules(6))] * 3


@pytest.mark.parametrize("opponent", [None, "random", last_legal])
def test_start_position_without_choice_is_rejected(opponent):
    """With one empty square, the opponent's move or an opening of one ply always ends the game."""
    start = Position.from_text("-X" + "O" * 14, WHITE)
    options = {"size": 4, "start": start, "opening_plies": int(opponent is None)}
    envs = [make(opponent=opponent, **options) for make in (ReversiEnv, partial(ReversiVectorEnv, 2))]
    if opponent is None:
        envs.append(aec.env(**options))
    for env in envs:
        with pytest.raises(SettingsError, match="start"):
            env.reset(seed=1)


def trajectory(env, seed, episodes=3):
    """Return all observations, masks and rewards of some episodes, of which only the first is seeded."""
    shown = []
    for number in range(episodes):
        observation, info = env.reset(seed=seed if number == 0 else None)
        terminated = False
        while not terminated:
            shown.append((observation.tobytes(), info["action_mask"].tobytes(), info["to_move"]))
            observation, reward, terminated, _, info = env.step(env.sample_legal())
            shown.append(reward)
    return shown


@pytest.mark.parametrize("opponent", [None, "random", "greedy", last_legal, ["random", "greedy", last_legal]])
def test_seed_determines_all_following_episodes(opponent):
    """A reset without a seed continues the random stream and does not repeat it."""
    options = {"size": 6, "opponent": opponent, "colour": "random", "opening_plies": 2}
    env, other = ReversiEnv(**options), ReversiEnv(**options)
    first = trajectory(env, 5)
    assert first == trajectory(env, 5) == trajectory(other, 5)
    assert first != trajectory(env, 6)
    assert trajectory(env, 5, 1) * 3 != first


def test_unseeded_environments_differ():
    games = [trajectory(ReversiEnv(opponent=None), None, 1) for _ in range(2)]
    assert games[0] != games[1]
    words = [ReversiVectorEnv(2, opponent=None).get_state()["random"].tolist() for _ in range(2)]
    assert len({*words[0], *words[1]}) == 4


def test_batch_seed_may_be_int_or_list():
    """Game i gets seed + i (see also `test_same_games`), or item i of a list; None keeps the game's stream."""
    envs = ReversiVectorEnv(3, size=4, opponent=None, opening_plies=4)
    envs.reset(seed=5)
    counted = envs.positions()
    envs.reset(seed=[5, 6, 7])
    assert envs.positions() == counted
    envs.reset(seed=[7, 6, 5])
    assert envs.positions() == counted[::-1]
    before = envs.get_state()["random"]
    envs.reset(seed=[None, 6, None])
    assert envs.positions()[1] == counted[1]
    assert envs.get_state()["random"][0] not in before
