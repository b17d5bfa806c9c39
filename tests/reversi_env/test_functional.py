"""`reversi_env.functional`: states as immutable values. `test_same_games` tests the rules of the games."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils import _pytree

from reversi_env import BLACK, Position, ReversiError, Rules, batch, functional
from reversi_env.batch import action_images
from reversi_env.errors import IllegalMoveError
from reversi_env.functional import State

GAMES = [Rules(4), Rules(6, "reversed"), Rules(8)]
#: As numpy arrays and as tensors.
devices = pytest.mark.parametrize("device", [None, "cpu"], ids=["numpy", "torch"])
games = pytest.mark.parametrize("rules", GAMES, ids=lambda rules: f"{rules.size}-{rules.variant}")


def number(values, like):
    """Return *values* as a tensor or array, like those of the state."""
    return torch.as_tensor(values) if isinstance(like.own, torch.Tensor) else np.asarray(values)


def same(left, right):
    """Return whether two states are equal, with their types."""
    pairs = [(np.asarray(one), np.asarray(other)) for one, other in zip(left, right, strict=True)]
    return type(left) is type(right) and all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


def random_state(shape, rules, device=None, seed=1):
    """Return running, finished and forfeited states."""
    state, rng = functional.init(shape, rules, seed, empties=5, device=device), np.random.default_rng(seed)
    for _ in range(5):
        masks = np.asarray(functional.legal(state))
        actions = (rng.random(masks.shape) * masks).argmax(-1)
        actions = np.where(rng.random(actions.shape) < 0.05, 0, actions)
        state = functional.step(state, number(actions, state))
    assert set(np.unique(state.status)) == {0, 1, 2}
    return state


def position_of(state, rules):
    own, opp = (int(board) % 2**64 for board in (state.own, state.opp))
    return Position(rules, own, opp, BLACK.other if int(state.turn) else BLACK)


@devices
@games
def test_step_returns_a_new_state(rules, device):
    state = random_state((40, 3), rules, device)
    kept, actions = functional.clone(state), number(np.arange(120).reshape(40, 3) % (rules.pass_action + 1), state)
    after = functional.step(state, actions)
    assert same(state, kept)
    assert not same(after, kept)
    for row in range(40):  # the result is the same for one row or one game at a time
        assert same(functional.take(after, row), functional.step(functional.take(state, row), actions[row]))
    one = functional.step(functional.take(state, (7, 2)), actions[7, 2])
    assert same(one, functional.take(after, (7, 2)))
    assert one.shape == ()
    out = functional.clone(kept)
    assert functional.step(kept, actions, out=out) is out
    assert same(out, after)
    assert functional.step(kept, actions, out=kept) is kept  # in place on request
    assert same(kept, after)


@devices
@games
def test_step_broadcasts_states_and_actions(rules, device):
    state = random_state(30, rules, device)
    children = functional.step(functional.take(state, np.s_[:, None]), number(np.arange(rules.pass_action + 1), state))
    assert children.shape == (30, rules.pass_action + 1)
    scores, rewards = functional.score(children), functional.reward(children)
    for i in range(30):
        if functional.is_over(state)[i]:
            assert same(functional.take(children, (i, 5)), functional.take(state, i))
            continue
        position = position_of(functional.take(state, i), rules)
        for action in range(rules.pass_action + 1):
            child = functional.take(children, (i, action))
            if action not in position.legal_actions():
                assert (int(child.status), int(child.turn), int(child.legal)) == (2, int(state.turn[i]), 0)
                assert (int(scores[i, action]), float(rewards[i, action])) == (-rules.square_count, -1)
                continue
            after = position.play(action)
            assert position_of(child, rules) == after
            assert int(child.status) == after.is_over()
            if after.is_over():
                assert int(scores[i, action]) == after.score()
                assert float(rewards[i, action]) == np.sign(after.score(position.turn))


@devices
def test_illegal_action_forfeits_and_nonexistent_action_raises(device):
    state = functional.init(4, Rules(6), device=device)
    for wrong in (-1, 37, 2**40):
        with pytest.raises(IllegalMoveError, match=f"action {wrong}"):
            functional.step(state, number([0, wrong, 36, 1], state))
    after = functional.step(state, number([0, 1, 5, 36], state))
    assert np.asarray(after.status).tolist() == [2] * 4
    assert np.asarray(functional.reward(after, "discs")).tolist() == [-1.0] * 4
    assert same(functional.step(after, number(7, state)), after)


@devices
@games
def test_symmetries_commute_with_steps(rules, device):
    state, images = random_state(24, rules, device), action_images(rules.size)
    each = np.arange(24) % 8
    images_of_state = functional.symmetry(state, number(each, state))
    for i in range(24):
        shown = functional.take(images_of_state, i)
        assert position_of(shown, rules) == position_of(functional.take(state, i), rules).transformed(int(each[i]))
        assert same(functional.take(functional.symmetry(state, int(each[i])), i), shown)
    actions = np.asarray(functional.legal(state)).argmax(-1)
    after = functional.step(images_of_state, number(images[each, actions], state))
    assert same(after, functional.symmetry(functional.step(state, number(actions, state)), number(each, state)))


@devices
def test_states_support_indexing_stacking_and_conversion(device):
    rules = Rules(6, "reversed")
    one, two = (random_state(20, rules, device, seed) for seed in (1, 2))
    both = functional.stack([one, two])
    assert both.shape == (2, 20)
    assert same(functional.take(both, 1), two)
    assert same(functional.take(functional.stack([one, two], axis=1), np.s_[:, 0]), one)
    over = functional.is_over(one)
    begun = functional.where(over, functional.init(20, rules, device=device), one)
    assert not np.asarray(functional.is_over(begun)).any()
    assert same(functional.take(begun, ~over), functional.take(one, ~over))
    for copied in (copy.deepcopy(one), pickle.loads(pickle.dumps(one)), _pytree.tree_map(lambda field: field, one)):
        assert same(copied, one)
        assert copied.rules == rules
    there = functional.to(one, "cpu" if device is None else None)
    assert isinstance(there.own, np.ndarray if device else torch.Tensor)
    assert same(functional.to(there, device), one)
    boards = one.own, one.opp, rules, one.turn
    made = functional.from_boards(*boards)
    running = np.asarray(one.status) < 2  # a board does not show that its game was forfeited
    assert same(functional.take(made, running), functional.take(one, running))
    none = functional.take(one, np.zeros(20, bool))  # a batch without games is a state, too
    assert functional.step(none, number(np.zeros(0, np.int64), none)).shape == (0,)
    assert functional.legal(none).shape == (0, 37)
    assert functional.observe(none).shape == (0, 2, 6, 6)
    assert functional.score(none).shape == functional.reward(none).shape == functional.is_over(none).shape == (0,)


@games
def test_init_gives_start_positions(rules):
    """`test_same_games` compares seeded starts with those of the environments."""
    start = functional.init((2, 3), rules)
    assert start.shape == (2, 3)
    assert position_of(functional.take(start, (1, 2)), rules) == Position.initial(rules)
    assert not same(functional.init(30, rules, opening_plies=4), functional.init(30, rules, opening_plies=4))
    assert functional.init(rules=rules).shape == ()
    assert functional.init(0, rules, empties=3).shape == (0,)
    parallel = Rules(rules.size, rules.variant, "parallel")
    assert position_of(functional.init((), parallel), parallel) == Position.initial(parallel)
    assert functional.init(3, None).rules == Rules()
    boards = [board.tolist() for board in functional.init(3)[:2]]
    assert functional.from_boards(*boards, turn=[0, 1, 0]).turn.tolist() == [0, 1, 0]
    tensors = functional.init(5, rules, device="cpu")  # CPU tensors and arrays share their memory
    assert np.shares_memory(functional.to(tensors, None).own, tensors.own.numpy())
    own, opp = batch.start(5, rules)
    assert np.array_equal(functional.to(tensors, None).own, own)
    assert np.array_equal(functional.from_boards(own, opp, rules).legal, batch.legal_moves(own, opp, rules))


@devices
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda state: functional.step(state, number([1.0], state)), "integers"),
        (lambda state: functional.step(state, number([1, 2, 3], state)), r"shape \(2,\) and numbers of shape \(3,\)"),
        (lambda state: functional.step(state, 1, out=functional.init(2, Rules(6))), "out"),
        *((lambda state, image=image: functional.symmetry(state, image), "symmetry") for image in (8, 0.5)),
        (lambda state: functional.reward(state, "shaped"), "kind='shaped'"),
        (lambda state: functional.stack([]), "0"),
        (lambda state: functional.where(True, state, functional.init(2, Rules(6))), "game"),
        (lambda state: functional.init(-1), "shape=-1"),
        (lambda state: functional.from_boards(state.own, state.own), "8x8"),
        (lambda state: functional.from_boards(state.own, state.opp[:1]), r"2.* and .*1"),
        (lambda state: functional.from_boards(state.own == 0, state.own), "bool"),
        (lambda state: functional.from_boards(state.own, state.opp, turn=0.7), "turn"),
        (lambda state: functional.to(state, "nowhere"), "device='nowhere'"),
    ],
)
def test_invalid_arguments_are_rejected(call, message, device):
    with pytest.raises(ReversiError, match=message):
        call(functional.init(2, device=device) if device else State(*functional.init(2)))


def test_unsupported_array_type_is_named():
    state = functional.init(2)._replace(own=SimpleNamespace(shape=(2,)))
    for call in (functional.legal, functional.score, lambda state: functional.step(state, 19)):
        with pytest.raises(ReversiError, match="SimpleNamespace"):
            call(state)


@pytest.mark.slow
def test_torch_compile_needs_no_graph_break():
    """`torch.compile` with `fullgraph=True` succeeds, and its results are equal."""

    def turn(state, weights):
        logits = functional.observe(state).float().flatten(-3) @ weights
        logits = logits.masked_fill(~functional.legal(state), -torch.inf)
        after = functional.symmetry(functional.step(state, logits.argmax(-1)), 3)
        return after, functional.reward(after) + logits.amax(-1)

    compiled = torch.compile(turn, backend="eager", fullgraph=True)
    state, weights = random_state(20, Rules(6), "cpu"), torch.randn(72, 37, generator=torch.Generator().manual_seed(1))
    for _ in range(3):
        (after, values), (expected, others) = compiled(state, weights), turn(state, weights)
        assert same(after, expected)
        assert torch.equal(values, others)
        state = after
