"""`TorchVectorEnv` on the CPU: the same games as `ReversiVectorEnv`, resets, errors, and the `VectorEnv` interface."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.utils.passive_env_checker import check_action_space, check_obs, check_observation_space
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import ArrayConversion

from reversi_env import WHITE, Position, Rules, batch
from reversi_env.envs import ReversiVectorEnv, SettingsError, TorchVectorEnv
from tests.oracles.games import GAMES

COUNT = 32


def make(count=COUNT, *, seed=11, **options):
    envs = TorchVectorEnv(count, device="cpu", **options)
    envs.reset(seed=seed)
    return envs


def make_ref(count=COUNT, *, seed=11, **options):
    ref = ReversiVectorEnv(count, autoreset_mode="SAME_STEP", **options)
    ref.reset(seed=seed)
    return ref


def assert_same_step(result, expected):
    for one, other in zip(result[:4], expected[:4], strict=True):
        assert np.array_equal(one.numpy(), other.astype(np.float32) if other.dtype == np.float64 else other)
    assert np.array_equal(result[4]["action_mask"].numpy(), expected[4]["action_mask"] != 0)
    assert np.array_equal(result[4]["to_move"].numpy(), expected[4]["to_move"])
    if (ended := expected[2]).any():
        for name, final in (("final_score", "score"), ("winner", "winner")):
            assert np.array_equal(result[4][name].numpy()[ended], expected[4]["final_info"][final][ended])
        last = batch.planes(*result[4]["final_boards"].numpy().view(np.uint64).T, Rules(expected[0].shape[-1]))
        assert np.array_equal(last[ended], np.stack(list(expected[4]["final_obs"][ended])))


STEP_OPTIONS = [
    {"opponent": "greedy", "reward": "shaped", "discount": 0.9, "colour": "alternate"},
    {"opponent": "random", "reward": "discs", "opening_plies": 3},
    {"opponent": None, "empties": 5, "illegal": "random"},
    {"opponent": "random", "start": "parallel", "colour": "white"},
]


@pytest.mark.parametrize(("size", "variant"), GAMES)
def test_children_are_all_positions_after_one_move(size, variant):
    envs, rules = make(size=size, variant=variant, opponent=None, opening_plies=5), Rules(size, variant)
    states = envs.get_state()
    (own, opp), flipped = (numbers.numpy() for numbers in envs.children())
    expected = batch.expand(states["own"], states["opp"], rules)
    actions = [rules.action_of(int(sq)) for sq in expected.square]
    assert np.count_nonzero(opp) == len(actions) > COUNT
    assert np.array_equal(own[expected.parent, actions].view(np.uint64), expected.own)
    assert np.array_equal(opp[expected.parent, actions].view(np.uint64), expected.opp)
    assert np.array_equal(flipped > 0, opp != 0)


@pytest.mark.parametrize(
    "options", [{"opponent": None}, {"opponent": "random"}, {"opponent": "greedy"}, *STEP_OPTIONS], ids=str
)
@pytest.mark.parametrize(("size", "variant"), GAMES)
def test_steps_match_reversi_vector_env(size, variant, options):
    wild, options = options in STEP_OPTIONS, {"size": size, "variant": variant, "colour": "random"} | options
    envs, ref, ended, rng = make(parallel=wild, **options), make_ref(**options), 0, np.random.default_rng(1)
    for _ in range(2 * size * size):
        actions = ref.sample_legal()
        if wild:
            actions = np.where(rng.random(COUNT) < 0.1, rng.integers(0, size * size + 1, COUNT), actions)
            envs.set_state(ref.get_state())  # `sample_legal` has advanced the random streams
        expected = ref.step(actions)
        assert_same_step(envs.step(torch.from_numpy(actions)) if wild else envs.random_step(), expected)
        ended += int(expected[2].sum())
    assert (envs.get_state() == ref.get_state()).all()
    assert ended > COUNT


def test_all_layouts_show_the_same_games():
    planes, half, packed = (make(size=6, layout=layout) for layout in ("planes", "half", "packed"))
    squares = torch.tensor(list(Rules(6).squares()))
    for _ in range(50):
        seen = [envs.random_step()[0] for envs in (planes, half, packed)]
        assert seen[1].dtype == torch.float16
        assert torch.equal(seen[0].half(), seen[1])
        bits = ((seen[2][:, :, None] >> squares) & 1).view(COUNT, 2, 6, 6)
        assert torch.equal(seen[0], bits.to(torch.uint8))
        assert torch.equal(planes.legal, packed.legal)
        masks = planes.infos["action_mask"]
        assert torch.equal(masks[:, :36], (planes.legal[:, None] >> squares) & 1 == 1)
        assert torch.equal(masks[:, 36], planes.legal == 0)
    assert "action_mask" not in packed.infos


@pytest.mark.parametrize("action", [0, -1, 65, 2**40, -(2**63)])
def test_illegal_or_nonexistent_action_loses_the_episode(action):
    envs = make(4)
    legal = int(envs.infos["action_mask"][0].to(torch.uint8).argmax())
    _, rewards, terminated, _, infos = envs.step(torch.tensor([legal, action, legal, action]))
    assert rewards.tolist() == [0, -1, 0, -1]
    assert terminated.tolist() == infos["illegal_action"].tolist() == [False, True, False, True]
    assert infos["final_score"].tolist() == [0, -64, 0, -64]
    assert infos["winner"].tolist() == [0, 1, 0, 1]  # white wins both games that ended
    assert infos["to_move"].tolist() == [1, 0, 1, 0]


def test_results_are_views_of_reused_memory():
    envs = make(8)
    first, *_ = envs.random_step()
    kept, address = first.clone(), first.data_ptr()
    second, *_ = envs.random_step()
    assert second.data_ptr() == address
    assert not torch.equal(kept, second)
    assert envs.boards.data_ptr() == envs.infos["boards"].data_ptr()


def test_seed_may_be_int_or_list():
    envs, single = make(3, seed=[5, 2**64 - 1, 7]), make(1, seed=7)
    for _ in range(100):
        observations, *_ = envs.random_step()
        alone, *_ = single.random_step()
        assert torch.equal(observations[2], alone[0])
    state = envs.get_state()
    envs.reset(seed=[5, None, None])
    assert envs.get_state()["random"][1] == state["random"][1]
    assert envs.get_state()["random"][0] == make(1, seed=5).get_state()["random"][0]
    assert not (TorchVectorEnv(2, device="cpu").get_state()["random"] == 0).any()


def test_partial_reset_with_options_matches_vector_env():
    envs, ref = make(6, size=6, opponent="random"), make_ref(6, size=6, opponent="random")
    before, which = envs.get_state(), np.array([True, False] * 3)
    options = {"reset_mask": which, "empties": 10, "colour": "white"}
    envs.reset(options=options | {"reset_mask": torch.from_numpy(which)})
    ref.reset(options=options)
    assert (envs.get_state() == ref.get_state()).all()
    assert ((envs.get_state() == before) == ~which).all()


def test_states_are_exchanged_with_vector_env():
    envs, ref = make(opponent="greedy"), make_ref(opponent="greedy", seed=3)
    for _ in range(7):
        ref.step(ref.sample_legal())
    envs.set_state(ref.get_state())
    for _ in range(70):
        assert_same_step(envs.random_step(), ref.step(ref.sample_legal()))
    with pytest.raises(SettingsError, match="opponent"):
        make(opponent="random").set_state(ref.get_state())


@pytest.mark.parametrize("way", [copy.deepcopy, copy.copy, lambda envs: pickle.loads(pickle.dumps(envs))])
@pytest.mark.parametrize("layout", ["planes", "half", "packed"])
def test_copy_continues_identically_and_independently(layout, way):
    """The tensors of the copy are views of its own games, not of the original's."""
    envs = make(size=4, opponent="greedy", layout=layout)
    for _ in range(12):
        last = envs.random_step()
    ref = way(envs)
    assert same_tensors(last, (ref.observations, ref._batch.rewards, ref._terminated, ref._truncated, ref.infos))
    states = envs.get_state()
    steps = [copy.deepcopy(ref.random_step()) for _ in range(20)]
    assert (envs.get_state() == states).all()
    for expected in steps:
        assert same_tensors(envs.random_step(), expected)


def same_tensors(left, right):
    pairs = [*zip(left[:4], right[:4], strict=True), *((left[4][name], right[4][name]) for name in left[4])]
    return left[4].keys() == right[4].keys() and all(torch.equal(one, other) for one, other in pairs)


BAD_OPTIONS = {"num_envs": 0, "layout": "float", "illegal": "raise", "observation": "flat", "colour": "green"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *BAD_OPTIONS.items(),
        *(("opponent", opponent) for opponent in ("six-factor", ["random"])),
        *(("device", device) for device in ("tpu", "meta")),
        *(("reward", "shaped"), ("autoreset_mode", "NEXT_STEP"), ("max_episode_steps", 20)),
    ],
)
def test_invalid_option_is_rejected(name, value):
    with pytest.raises(SettingsError, match=name):
        gymnasium.make_vec("TorchReversi-v0", **{"num_envs": 2, "device": "cpu"} | {name: value})


ACTIONS = ([1], [0.5, 0.5], [True, True], "ab", [[1, 2], [3]], torch.zeros(2, 1, dtype=torch.int64))
BAD_CALLS = [
    *((InvalidAction, "2", lambda envs, actions=actions: envs.step(actions)) for actions in ACTIONS),
    *((SettingsError, "seed", lambda envs, seed=seed: envs.reset(seed=seed)) for seed in (-1, [1], [1, -2], [1, 0.5])),
    *(
        (SettingsError, "reset_mask", lambda envs, mask=mask: envs.reset(options={"reset_mask": mask}))
        for mask in ([True], [False, False], [1, 0])
    ),
]


@pytest.mark.parametrize(("error", "message", "call"), BAD_CALLS)
def test_invalid_action_seed_or_reset_mask_is_rejected(error, message, call):
    with pytest.raises(error, match=message):
        call(make(2))


def test_calls_before_first_reset_raise():
    envs = TorchVectorEnv(2, device="cpu")
    some = {"reset_mask": [True, False]}
    for call in (envs.random_step, lambda: envs.step([0, 0]), lambda: envs.reset(options=some)):
        with pytest.raises(ResetNeeded):
            call()


def test_start_position_without_choice_is_rejected():
    start = Position.from_text("X" * 12 + "OXX-", WHITE)
    envs = TorchVectorEnv(2, device="cpu", size=4, opponent=None, start=start, opening_plies=1)
    with pytest.raises(SettingsError, match="start"):
        envs.reset(seed=1)
    with pytest.raises(ResetNeeded):
        envs.random_step()


@pytest.mark.filterwarnings("ignore:.*WARN")
@pytest.mark.parametrize("layout", ["planes", "half", "packed"])
@pytest.mark.parametrize(("name", "variant"), [("TorchReversi-v0", "normal"), ("TorchReversedReversi-v0", "reversed")])
def test_registered_ids_pass_gymnasium_space_checks(name, variant, layout):
    options = {"size": 4, "layout": layout, "autoreset_mode": "SAME_STEP", "max_episode_steps": 99}
    made = gymnasium.make_vec(name, num_envs=16, device="cpu", **options)
    assert made.autoreset_mode is made.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert made.unwrapped.rules.variant == variant
    envs = ArrayConversion(made, env_xp=torch, target_xp=np)
    check_observation_space(envs.single_observation_space)
    check_action_space(envs.single_action_space)
    observations, _ = envs.reset(seed=1)
    for _ in range(30):
        check_obs(observations, envs.observation_space, "step")
        assert observations in envs.observation_space
        observations, _, terminated, truncated, _ = envs.step(envs.action_space.sample())
        assert (terminated.dtype, truncated.dtype) == (np.bool_, np.bool_)
