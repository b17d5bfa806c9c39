"""Self-play: games checked by rules and solver, value targets, the greedy opponent."""

from functools import partial

import numpy as np
import pytest
import torch

from models.bitboards import bit_counts, board_planes, legal_moves
from reversi_env import Position, Rules, functional
from search.engine.solver import solve_batch
from train.alphazero import self_play
from train.alphazero.options import SelfPlayOptions

pytestmark = pytest.mark.usefixtures("one_torch_thread")

CPU = torch.device("cpu")


def solver(rules):
    return partial(solve_batch, rules=rules, threads=1)


def disc_difference(own, opp):
    return torch.zeros(len(own), 36), (bit_counts(own) - bit_counts(opp)).float()


@pytest.mark.parametrize(
    ("variant", "search"),
    [
        ("reversed", "gumbel"),
        pytest.param("normal", "gumbel", marks=pytest.mark.slow),
        pytest.param("reversed", "puct", marks=pytest.mark.slow),
    ],
)
def test_positions_have_legal_policies_and_game_results(variant, search):
    shape = {"games": 40, "exact": 9, "td_lambda": 1.0, "simulations": 4, "greedy_share": 0.0}
    options = SelfPlayOptions(6, variant, search=search, **shape)
    rules, solve = options.rules, solver(options.rules)
    tree_search = self_play.make_search(disc_difference, options, CPU)
    positions = self_play.play_generation(tree_search, solve, options, 3, CPU)
    own, opp = (side.numpy().view(np.uint64) for side in (positions.own, positions.opp))
    scores, empties = positions.score.numpy(), rules.square_count - np.bitwise_count(own | opp)
    solved = empties <= 9
    assert solved.sum() > 80
    assert (scores[solved] == solve(own[solved], opp[solved])).all()
    assert set(np.unique(empties)) >= {8, 9, 10, 20}
    assert set(np.abs(scores[~solved])) <= set(np.abs(scores[solved]))
    legal = board_planes(legal_moves(positions.own, positions.opp, rules.playable), 6).flatten(1).numpy() > 0
    policy = positions.policy.numpy().astype(int)
    assert not policy[~legal].any()
    assert (np.abs(policy.sum(1) - 255 * legal.any(1)) <= 15).all()
    again = self_play.play_generation(tree_search, solve, options, 3, CPU)
    assert all(torch.equal(one, other) for one, other in zip(positions, again, strict=True))


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_an_early_end_sets_all_value_targets(variant):
    """The last move captures all discs, with 23 squares empty. The searched values differ from that result."""
    rules, moves = Rules(6, variant), iter([22, 28, 8, 9, 10, 16, 34, 7, 0])

    def choose(state, games):
        return self_play.ChosenMoves.zeros(1, rules, CPU)._replace(
            action=torch.tensor([next(moves)]), value=torch.tensor([5.0])
        )

    plies, final_state = self_play.play_games(functional.init(1, rules, device="cpu"), choose, rules)
    positions = self_play.value_targets(plies, final_state, solver(rules), rules, exact=4, td_lambda=1.0)
    assert positions.score.tolist() == [rules.sign * 36.0 * (-1) ** number for number in range(9)]


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_greedy_opponents_play_greedily_and_never_lower_targets(variant):
    options = SelfPlayOptions(6, variant, games=4, greedy_share=0.5)
    rules, rng, seen = options.rules, torch.Generator().manual_seed(5), []

    def choose(state, games):
        moves = self_play.ChosenMoves.zeros(len(games), rules, CPU)
        moves.action[:], moves.value[:] = self_play.random_actions(state, rng), torch.randn(len(games), generator=rng)
        self_play.apply_greedy_opponent(moves, state, games, options, rng)
        columns = (games, state.turn, *state[:2], moves.action, moves.is_greedy)
        seen.extend(zip(*(column.tolist() for column in columns), strict=True))
        return moves

    plies, final_state = self_play.play_games(functional.init(3, rules, device="cpu"), choose, rules)
    for game, turn, own, opp, action, is_greedy in seen:
        assert is_greedy == (game < 2 and turn == game)
        if is_greedy:
            position = Position(rules, own, opp)
            best = max(-rules.sign * position.play(move).disc_difference() for move in position.legal_actions())
            assert -rules.sign * position.play(action).disc_difference() == best
    positions = self_play.value_targets(plies, final_state, solver(rules), rules, exact=0, td_lambda=0.9)
    scores = iter(positions.score.split([int(ply.active.sum()) for ply in reversed(plies)]))
    target = functional.score(final_state).float()
    for _, moves, active in reversed(plies):
        for row, score in zip(active.nonzero().squeeze(1).tolist(), next(scores).tolist(), strict=True):
            value, later = float(moves.value[row]), -float(target[row])
            expected = max(value, later) if moves.is_greedy[row] else 0.9 * later + 0.1 * value
            assert score == pytest.approx(expected, abs=1e-4)
            target[row] = score


@pytest.mark.parametrize("method", ["gumbel", "puct"])
def test_temperature_scales_the_noise(method):
    options = SelfPlayOptions(size=6, search=method, simulations=12, exact=0)
    search = self_play.make_search(disc_difference, options, CPU)
    states = functional.init(50, options.rules, seed=1, opening_plies=8, device="cpu")

    def moves(temperature, seed):
        return self_play.search_positions(search, states, 50, torch.Generator().manual_seed(seed), temperature)

    cold = moves(0.0, 1)
    if method == "gumbel":
        assert (cold.action == self_play.search_positions(search, states, 50).action).all()
    else:
        best = cold.policy.max(1).values
        assert (cold.policy[range(50), cold.action] == best).all()
        nearly_cold = moves(0.01, 1)  # no power of a small share underflows
        assert (nearly_cold.policy[range(50), nearly_cold.action] == best).all()
        assert (nearly_cold.policy == cold.policy).all()
    assert (moves(1.0, 1).action != moves(1.0, 2).action).any()
