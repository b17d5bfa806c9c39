"""Modules of users inside alpha-beta: the values of plain negamax, legal games, matches, and clear errors."""

import copy
import pickle
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from models.bitboards import board_planes, board_tensor
from models.patterns.trainable import Trainable
from models.torch_evaluator import TorchAgent, TorchEvaluator
from reversi_env import Position, ReversiError, Rules
from search import Engine, Limits
from search.agents.spec import make_agent
from search.engine.solver import solve
from studies.textbook import negamax
from tests.oracles.patterns import some_boards
from train.arena.match import play_match


class TinyNet(nn.Module):
    """One convolution, one linear layer, values between -1 and 1; it has a mode, to be put into evaluation mode."""

    def __init__(self, size):
        super().__init__()
        self.convolution = nn.Conv2d(2, 4, 3, padding=1)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(4 * size * size, 1)

    def forward(self, x):
        return torch.tanh(self.head(self.drop(torch.relu(self.convolution(x))).flatten(1)))


def tiny(size, variant="normal", seed=0):
    torch.manual_seed(seed)
    return TorchEvaluator(TinyNet(size), Rules(size, variant), scale=size * size)


def positions_of(rules, seed=0):
    """Positions of a random game that leave something to play, passes among them."""
    dice, found = np.random.default_rng(seed), []
    for _ in range(4):
        position = Position.initial(rules)
        while not position.is_over():
            found.append(position)
            position = position.play(int(dice.choice(position.legal_actions())))
    return found


@pytest.mark.parametrize("size", [4, 6, 8])
def test_planes_show_the_board(size):
    rules, boards = Rules(size), some_boards(size, 20)
    planes = board_planes(torch.stack([board_tensor(side) for side in boards], dim=1), size).numpy()
    expected = [[side >> np.uint64(sq) & np.uint64(1) for sq in rules.squares()] for side in boards]
    assert np.array_equal(planes.reshape(-1, 2, size * size), np.transpose(expected, (2, 0, 1)))


def test_values_do_not_depend_on_the_batch_and_stay_inside_the_range():
    evaluator, (own, opp) = tiny(6), some_boards(6, 100)
    values = evaluator.static_values(own, opp)
    alone = [evaluator.static_value(Position(Rules(6), int(a), int(b))) for a, b in zip(own, opp, strict=True)]
    np.testing.assert_allclose(values, alone, atol=1e-4)
    assert np.array_equal(values, evaluator.static_values(own, opp))  # no dropout
    loud = TorchEvaluator(evaluator.module, Rules(6), scale=1e6)
    assert np.abs(loud.static_values(own, opp)).max() == 35.5
    assert evaluator.static_values([], []).size == 0


def test_a_module_of_boards():
    net = Trainable("linear", 4)
    nn.init.normal_(net.weights)
    own, opp = some_boards(4, 30)
    with torch.no_grad():
        expected = np.clip(net(board_tensor(own), board_tensor(opp)).numpy(), -15.5, 15.5)
    found = TorchEvaluator(net, Rules(4), inputs="boards").static_values(own, opp)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_alpha_beta_has_the_value_of_plain_negamax(variant, depth):
    evaluator = tiny(4, variant, seed=depth)
    agent, passes, static_value = TorchAgent(evaluator, depth, exact=0), 0, cache(evaluator.static_value)
    chosen = [p for i, p in enumerate(positions_of(evaluator.rules)) if p.must_pass() or i % 5 == 0]
    for position in chosen:
        found, slow = agent.search(position), negamax(position, depth, static_value)
        assert found.value == pytest.approx(slow.value, abs=1e-3)
        assert found.move in position.legal_moves()
        assert found.nodes > 0
        passes += position.must_pass()
    assert passes


def test_the_end_is_played_perfectly():
    agent = TorchAgent(tiny(6), depth=1, exact=8)
    for position in positions_of(Rules(6))[-20:]:
        if position.empties <= 8 and not position.must_pass():
            found = agent.search(position)
            assert found.exact
            assert found.value == solve(position).score == -solve(position.play(found.move)).score
    over = Position(Rules(6), Rules(6).playable, 0)
    assert agent.search(over).move is None


def test_it_plays_matches_and_can_be_copied():
    agent = TorchAgent(tiny(4), depth=2, exact=4, seed=1)
    result = play_match(agent, make_agent("random:seed=2"), 6, Rules(4), opening_plies=2)
    assert result.games == 6
    position = Position.initial(Rules(4))
    expected = copy.deepcopy(agent).choose(position)
    assert pickle.loads(pickle.dumps(agent)).choose(position) == expected


def test_lots_are_drawn_where_moves_are_equal():
    """At the start the four moves are images of each other; a module that knows no difference plays them all."""

    class Discs(nn.Module):
        def forward(self, x):
            return x[:, 0].sum((1, 2)) - x[:, 1].sum((1, 2))

    evaluator, start = TorchEvaluator(Discs()), Position.initial()
    assert len({TorchAgent(evaluator, seed=seed).choose(start) for seed in range(20)}) == 4
    assert len({TorchAgent(evaluator).choose(start) for _ in range(3)}) == 1


@pytest.mark.parametrize(
    ("use", "name"),
    [
        (lambda: TorchEvaluator(TinyNet(4), Rules(4), inputs="pixels"), "pixels"),
        (lambda: TorchAgent(tiny(4), 0), "depth=0"),
        (lambda: TorchAgent(TinyNet(4)), "TinyNet"),
        (lambda: TorchAgent(tiny(4)).choose(Position.initial(Rules(6))), "size=6"),
        (lambda: tiny(4).static_value(Position.initial(Rules(4, "reversed"))), "reversed"),
        (lambda: TorchEvaluator(nn.Identity(), Rules(4)).static_value(Position.initial(Rules(4))), "shape"),
        (lambda: Engine(tiny(6), Rules(4)), "size=4"),
    ],
)
@pytest.mark.filterwarnings("ignore::search.evaluators.function.SlowEvaluatorWarning")
def test_bad_input_is_named(use, name):
    with pytest.raises(ReversiError, match=name):
        use()


def test_values_that_are_no_numbers_are_refused():
    diverged = tiny(4)
    diverged.module.head.bias.data.fill_(torch.nan)
    for use in (diverged.static_value, TorchAgent(diverged, exact=0).choose):
        with pytest.raises(ReversiError, match=diverged.name):
            use(Position.initial(Rules(4)))


@pytest.mark.filterwarnings("ignore::search.evaluators.function.SlowEvaluatorWarning")
def test_the_engine_searches_with_a_module_too():
    """Position by position, and finds what `TorchAgent` finds with whole families of them."""
    evaluator, start = tiny(6), Position.initial(Rules(6))
    found = Engine(evaluator, Rules(6)).search(start, Limits(depth=3, empties_exact=0))
    assert found.value == pytest.approx(TorchAgent(evaluator, depth=3).search(start).value, abs=0.02)
