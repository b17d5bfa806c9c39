"""Symmetry wrappers: a wrapped episode is a symmetric image of the unwrapped one."""

import gymnasium
import numpy as np
import pytest
from gymnasium.error import InvalidAction

from reversi_env import Rules
from reversi_env.batch import action_images
from reversi_env.envs import ReversiEnv, ReversiVectorEnv, SettingsError
from reversi_env.envs.wrappers import (
    CanonicalPositions,
    SymmetryAugmentation,
    VectorCanonicalPositions,
    VectorSymmetryAugmentation,
)
from tests.oracles.games import (
    ENDS_AFTER_A_PASS,
    GAMES,
    board_of,
    draw_legal,
    last_legal,
    mask_of,
    moves_of,
)

SYMMETRIC, VECTOR = [SymmetryAugmentation, CanonicalPositions], [VectorSymmetryAugmentation, VectorCanonicalPositions]


def board_in(observation):
    return observation["observation"] if isinstance(observation, dict) else observation


@pytest.mark.parametrize("wrapper", SYMMETRIC)
@pytest.mark.parametrize("observation", ["planes", "flat", "dict"])
@pytest.mark.parametrize(("size", "variant"), GAMES)
def test_wrapped_episode_is_symmetric_image_of_plain_episode(size, variant, observation, wrapper):
    options = {"size": size, "variant": variant, "observation": observation, "opponent": "random", "colour": "random"}
    wrapped, plain = wrapper(ReversiEnv(**options)), ReversiEnv(**options)
    images, rng, symmetries = action_images(size), np.random.default_rng(1), set()
    for seed in range(3):
        seen, info = wrapped.reset(seed=seed)
        plain.reset(seed=seed)
        terminated = False
        while True:
            symmetry, position = wrapped.symmetry, plain.position()
            symmetries.add(symmetry)
            image = position.transformed(symmetry)
            assert np.array_equal(board_in(seen), board_of(image, observation.replace("dict", "planes")))
            assert seen in wrapped.observation_space
            if terminated:
                break
            assert np.array_equal(info["action_mask"], mask_of(image))
            assert np.array_equal(wrapped.action_masks(), mask_of(image).astype(bool))
            if observation == "dict":
                assert np.array_equal(seen["action_mask"], info["action_mask"])
            if wrapper is CanonicalPositions:
                assert image == position.canonical()
            action = int(draw_legal(rng, info["action_mask"]))
            original = int(np.flatnonzero(images[symmetry] == action)[0])
            result = wrapped.step(np.array(action))  # the type that SB3's `predict` returns
            seen, reward, terminated, _, info = result
            assert (reward, terminated) == plain.step(original)[1:3]
    assert len(symmetries) > 1


@pytest.mark.parametrize("wrapper", VECTOR)
@pytest.mark.parametrize(
    ("mode", "form"),
    [
        *(("NEXT_STEP", {"observation": "flat"}), ("SAME_STEP", {"observation": "dict"})),
        *(("SAME_STEP", {"channels_last": True, "dtype": "float32"}), ("DISABLED", {"extra_planes": ("legal",)})),
    ],
)
def test_wrapped_batch_is_symmetric_image_of_plain_batch(mode, form, wrapper):
    options = {"size": 4, "opponent": "greedy", "colour": "random", "autoreset_mode": mode, **form}
    wrapped, plain = wrapper(ReversiVectorEnv(5, **options)), ReversiVectorEnv(5, **options)
    (seen, infos), (shown, _) = wrapped.reset(seed=3), plain.reset(seed=3)
    images, rng, ends, symmetries = action_images(4), np.random.default_rng(1), 0, set()
    over = np.zeros(5, bool)
    for _ in range(40):
        before, mask = wrapped.symmetries.copy(), infos["action_mask"]
        symmetries |= set(before.tolist())
        for i, position in enumerate(plain.positions()):
            assert is_image(game_of(seen, i), game_of(shown, i), images[before[i]], form)
            assert np.array_equal(mask[i][images[before[i]]], plain.action_masks()[i])
            if wrapper is VectorCanonicalPositions:
                assert position.transformed(int(before[i])) == position.canonical()
        assert np.array_equal(wrapped.action_masks(), mask.astype(bool))
        assert np.array_equal(infos["symmetry"], before)
        actions = draw_legal(rng, mask)
        originals = [np.flatnonzero(images[k] == action)[0] for k, action in zip(before, actions, strict=True)]
        seen, rewards, terminated, _, infos = wrapped.step(actions)
        shown, expected, ended, _, plain_infos = plain.step(originals)
        assert (rewards.tolist(), terminated.tolist()) == (expected.tolist(), ended.tolist())
        begun, over = (ended if mode == "SAME_STEP" else over), ended & (mode == "NEXT_STEP")
        if wrapper is VectorSymmetryAugmentation:  # the symmetry is fixed until the episode ends
            assert np.array_equal(wrapped.symmetries[~begun], before[~begun])
        for i in np.flatnonzero(ended):
            ends += 1
            if mode == "SAME_STEP":
                assert is_image(infos["final_obs"][i], plain_infos["final_obs"][i], images[before[i]], form)
        if mode == "DISABLED" and ended.any():
            again = {"options": {"reset_mask": ended.tolist()}}
            (seen, infos), (shown, _) = wrapped.reset(**again), plain.reset(**again)
    assert ends > 10
    assert len(symmetries) > 4


def game_of(observations, i):
    return {name: part[i] for name, part in observations.items()} if isinstance(observations, dict) else observations[i]


def is_image(seen, shown, image, form):
    """Return whether the observation *seen* is the symmetric image of the observation *shown*."""
    if isinstance(seen, dict):
        masks_too = np.array_equal(seen["action_mask"][image], shown["action_mask"])
        return masks_too and is_image(seen["observation"], shown["observation"], image, form)
    shape = (image.size - 1, -1) if "channels_last" in form else (-1, image.size - 1)
    rows, expected = seen.reshape(shape), shown.reshape(shape)
    transformed = rows[image[:-1]] if "channels_last" in form else rows[:, image[:-1]]
    return seen.dtype == shown.dtype and np.array_equal(transformed, expected)


@pytest.mark.parametrize("wrapper", [*SYMMETRIC, *VECTOR])
def test_sampled_actions_are_legal_in_the_wrapped_view(wrapper):
    env = wrapper(ReversiEnv(size=6) if wrapper in SYMMETRIC else ReversiVectorEnv(4, size=6))
    _, info = env.reset(seed=2)
    for _ in range(14):
        actions = env.sample_legal()
        assert np.take_along_axis(info["action_mask"], np.array(actions)[..., None], -1).all()
        _, _, terminated, _, info = env.step(actions)
        if terminated is True:
            _, info = env.reset()


def test_symmetry_is_fixed_per_episode_and_depends_on_seed():
    def drawn():
        for seed in range(100):
            _, info = env.reset(seed=seed)
            _, _, _, _, after = env.step(env.sample_legal())
            assert info["symmetry"] == after["symmetry"] == env.symmetry
            yield env.symmetry

    env = SymmetryAugmentation(ReversiEnv(size=4))
    symmetries = list(drawn())
    assert symmetries == list(drawn())
    assert set(symmetries) == set(range(8))
    for seed in (5, np.int64(5), list(range(8))):
        batches = [VectorSymmetryAugmentation(ReversiVectorEnv(8, size=4)) for _ in range(2)]
        for envs in batches:
            envs.reset(seed=seed)
        assert np.array_equal(*(envs.symmetries for envs in batches))


def test_last_move_plane_is_empty_after_pass_and_transformed():
    env, rules = ReversiEnv(opponent=None, size=4, extra_planes=["last_move"]), Rules(4)
    planes, _ = env.reset(seed=1)
    assert planes.shape == (3, 4, 4)
    assert not planes[2].any()
    for action in moves_of(ENDS_AFTER_A_PASS, rules):
        planes, _, _, _, _ = env.step(action)
        assert np.flatnonzero(planes[2]).tolist() == [action] * (action != rules.pass_action)
        assert np.array_equal(planes[:2], board_of(env.unwrapped.position()))
    against = ReversiEnv(colour="white", extra_planes=["last_move"])  # the opponent's reply is the last move
    for env in (against, SymmetryAugmentation(against)):
        for seed in range(10):
            planes, _ = env.reset(seed=seed)
            (reply,) = np.flatnonzero(planes[2])
            assert planes[1].flat[reply] == 1


@pytest.mark.parametrize("observation", ["planes", "dict"])
@pytest.mark.parametrize(("dtype", "channels_last"), [("int8", False), ("float32", True)])
def test_extra_planes_with_dtype_and_channel_order(observation, dtype, channels_last):
    calls = []

    def opponent(board, mask):
        calls.append((board, mask))
        return last_legal(board, mask)

    form = {"extra_planes": ["last_move", "legal"], "dtype": dtype, "channels_last": channels_last}
    options = {"size": 4, "opponent": opponent, "observation": observation, **form}
    single, plain = ReversiEnv(**options), ReversiEnv(size=4, opponent=last_legal, extra_planes=["last_move"])
    (seen, info), (planes, _) = single.reset(seed=2), plain.reset(seed=2)
    terminated = False
    while True:
        legal = info["action_mask"][None, :-1].reshape(1, 4, 4)
        expected = np.concatenate([planes, legal]).astype(dtype)
        expected = np.moveaxis(expected, 0, -1) if channels_last else expected
        assert (board_in(seen).dtype, board_in(seen).shape) == (expected.dtype, expected.shape)
        assert np.array_equal(board_in(seen), expected)
        assert seen in single.observation_space
        if terminated:
            break
        action = single.sample_legal()
        (seen, _, terminated, _, info), (planes, *_) = single.step(action), plain.step(action)
    for board, mask in calls:
        planes = np.moveaxis(board, -1, 0) if channels_last else board
        assert planes.shape == (4, 4, 4)
        assert np.array_equal(planes[3].reshape(-1), mask[:-1])
        assert planes[2].sum() == 1


@pytest.mark.parametrize("wrapper", SYMMETRIC)
def test_invalid_action_or_other_environment_is_rejected(wrapper):
    env = wrapper(ReversiEnv(size=4))
    env.reset(seed=1)
    for action in (-1, 17, 1.0, "a1", None):
        with pytest.raises(InvalidAction):
            env.step(action)
    with pytest.raises(SettingsError, match="Reversi"):
        wrapper(gymnasium.make("CartPole-v1"))
    with pytest.raises(SettingsError, match="Reversi"):
        VectorCanonicalPositions(gymnasium.make_vec("CartPole-v1", num_envs=2))
