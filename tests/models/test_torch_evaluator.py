"""Torch modules of users in alpha-beta: equality with plain negamax, matches, copies and errors."""

import copy
import pickle
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from models.bitboards import board_planes, board_tensor
from models.patterns.trainable import PatternModule
from models.torch_evaluator import TorchAgent, TorchEvaluator
from reversi_env import Position, ReversiError, Rules
from search import Engine, Limits
from search.agents.spec import make_agent
from search.engine.solver import solve
from studies.textbook import negamax
from tests.oracles.patterns import some_boards
from train.arena.match import play_match


class TinyNet(nn.Module):
    """One convolution and one linear layer, values between -1 and 1; dropout makes the training mode differ."""

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


def diverged():
    evaluator = tiny(4)
    evaluator.module.head.bias.data.fill_(torch.nan)
    return evaluator


def positions_of(rules, seed=0):
    """Return the unfinished positions of four random games, with positions without moves."""
    rng, sampled = np.random.default_rng(seed), []
    for _ in range(4):
        position = Position.initial(rules)
        while not position.is_over():
            sampled.append(position)
            position = position.play(int(rng.choice(position.legal_actions())))
    return sampled


@pytest.mark.parametrize("inputs", ["planes", "boards"])
@pytest.mark.parametrize("size", [4, 6, 8])
def test_values_equal_module_output_clipped_to_range(size, inputs):
    rules, (own, opp) = Rules(size), some_boards(size, 100)
    boards = [board_tensor(side) for side in (own, opp)]
    planes = board_planes(torch.stack(boards, dim=1), size)
    expected_planes = [[side >> np.uint64(sq) & np.uint64(1) for sq in rules.squares()] for side in (own, opp)]
    assert np.array_equal(planes.numpy().reshape(-1, 2, size * size), np.transpose(expected_planes, (2, 0, 1)))
    module = tiny(size).module if inputs == "planes" else PatternModule("linear", size)
    if inputs == "boards":
        nn.init.normal_(module.weights)
    evaluator = TorchEvaluator(module, rules, scale=3.0, inputs=inputs)  # the evaluator switches dropout off
    with torch.no_grad():
        expected = 3 * (module(planes.float()).flatten() if inputs == "planes" else module(*boards)).numpy()
    values, limit = evaluator.static_values(own, opp), size * size - 0.5
    np.testing.assert_allclose(values, np.clip(expected, -limit, limit), atol=1e-4)
    alone = [evaluator.static_value(Position(rules, int(a), int(b))) for a, b in zip(own, opp, strict=True)]
    np.testing.assert_allclose(values, alone, atol=1e-4)
    loud = TorchEvaluator(module, rules, scale=1e6, inputs=inputs)
    assert np.abs(loud.static_values(own, opp)).max() == limit
    assert evaluator.static_values([], []).size == 0


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_alpha_beta_value_equals_negamax(variant, depth):
    evaluator = tiny(4, variant, seed=depth)
    agent, passes, static_value = TorchAgent(evaluator, depth, exact=0), 0, cache(evaluator.static_value)
    chosen = [p for i, p in enumerate(positions_of(evaluator.rules)) if p.must_pass() or i % 5 == 0]
    for position in chosen:
        result, slow = agent.search(position), negamax(position, depth, static_value)
        assert result.value == pytest.approx(slow.value, abs=1e-3)
        assert result.move in position.legal_moves()
        assert result.nodes > 0
        passes += position.must_pass()
    assert passes


def test_endgame_is_played_perfectly():
    agent = TorchAgent(tiny(6), depth=1, exact=8)
    for position in positions_of(Rules(6))[-20:]:
        if position.empties <= 8 and not position.must_pass():
            result = agent.search(position)
            assert result.exact
            assert result.value == solve(position).score == -solve(position.play(result.move)).score
    over = Position(Rules(6), Rules(6).playable, 0)
    assert agent.search(over).move is None


def test_agent_plays_matches_is_copied_and_breaks_ties_at_random():
    """At the start position the four moves are symmetric; an agent of a symmetric module plays them all."""
    agent, start = TorchAgent(tiny(4), depth=2, exact=4, seed=1), Position.initial(Rules(4))
    assert play_match(agent, make_agent("random:seed=2"), 6, Rules(4), opening_plies=2).games == 6
    expected = copy.deepcopy(agent).choose(start)
    assert pickle.loads(pickle.dumps(agent)).choose(start) == expected

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
        (lambda: diverged().static_value(Position.initial(Rules(4))), "not a number"),
        (lambda: TorchAgent(diverged(), exact=0).choose(Position.initial(Rules(4))), "not a number"),
    ],
)
@pytest.mark.filterwarnings("ignore::search.evaluators.function.SlowEvaluatorWarning")
def test_invalid_input_is_named(use, name):
    with pytest.raises(ReversiError, match=name):
        use()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::search.evaluators.function.SlowEvaluatorWarning")
def test_engine_searches_with_torch_evaluator():
    evaluator, start = tiny(6), Position.initial(Rules(6))
    result = Engine(evaluator, Rules(6)).search(start, Limits(depth=3, empties_exact=0))
    assert result.value == pytest.approx(TorchAgent(evaluator, depth=3).search(start).value, abs=0.02)
