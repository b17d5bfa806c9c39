"""Self-play of networks and baselines on the tensor environment: results, positions, seeds, both colours."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from models.boards import board_planes
from reversi_env import Position, ReversiError, Rules
from search import Agent
from train.games.on_gpu import PolicyPlayer, ValuePlayer, play_games, sample
from train.games.playing import play_match


def corners_first(planes):
    """A policy network for 6x6 that likes corners."""
    logits = torch.zeros(len(planes), 37)
    logits[:, [0, 5, 30, 35]] = 5.0
    return logits


def disc_difference(planes):
    """A value network: own discs minus opponent's."""
    return planes[:, 0].sum((1, 2)) - planes[:, 1].sum((1, 2))


def position_of(boards, rules):
    return Position(rules, *(int(board) % 2**64 for board in boards))


def test_results_add_up_and_the_seed_decides():
    first, again, other = (play_games("random", "greedy", 200, Rules(6), seed=seed, device="cpu") for seed in (1, 1, 2))
    assert first.wins + first.draws + first.losses == first.games == 200
    assert np.array_equal(first.discs, again.discs)
    assert not np.array_equal(first.discs, other.discs)
    assert first.score == (first.wins + first.draws / 2) / 200
    assert abs(first.discs_per_game) <= 36


@pytest.mark.parametrize(("variant", "low", "high"), [("normal", 0.25, 0.45), ("reversed", 0.2, 0.48)])
def test_greedy_beats_random_about_as_often_as_in_a_match(variant, low, high):
    result = play_games("random", "greedy", 1000, Rules(8, variant), device="cpu", seed=3)
    assert low < result.score < high


def test_a_player_against_itself_is_even_with_colours_exchanged():
    """At temperature 0 both games of a pair are the same game, A being black in one and white in the other."""
    player = PolicyPlayer(corners_first)
    result = play_games(player, player, 100, Rules(6), device="cpu")
    assert np.array_equal(result.discs[::2], -result.discs[1::2])
    assert result.score == 0.5


def test_the_games_are_those_of_a_match_of_agents():
    """Without random numbers a tensor game is the game that two agents play."""

    class Corners(Agent):
        def choose(self, position):
            legal = position.legal_actions()
            return next((action for action in (0, 5, 30, 35) if action in legal), legal[0])

    rules = Rules(6)
    expected = play_match(Corners(), Corners(), 2, rules, opening_plies=0)
    found = play_games(
        PolicyPlayer(corners_first), PolicyPlayer(corners_first), 2, rules, opening_plies=0, device="cpu"
    )
    assert found.discs.tolist() == expected.discs.tolist()


def test_a_value_player_plays_to_the_least_discs_of_the_opponent():
    """Which is greedy: both give the same distribution of results, and every choice turns the most discs."""
    result = play_games(ValuePlayer(disc_difference), "random", 300, Rules(6), device="cpu", keep_positions=True)
    assert result.score > 0.55
    rules = Rules(6)
    position = position_of(result.positions[0], rules)
    planes = board_planes(result.positions[:1], rules.size)
    assert int(planes[0, 0].sum()) == position.own.bit_count()


def test_positions_are_those_passed_through():
    rules = Rules(4, "reversed")
    result = play_games("random", "random", 40, rules, opening_plies=2, device="cpu", keep_positions=True)
    assert result.positions.shape == (len(result.games_of), 2)
    for game in range(40):
        chosen = result.games_of == game
        positions = [position_of(boards, rules) for boards in result.positions[chosen]]
        for before, after in pairwise(positions):
            after_moves = {(child.own, child.opp) for child in map(before.play, before.legal_actions())}
            assert (after.own, after.opp) in after_moves
        scores = result.scores[chosen]
        assert (scores.abs() == abs(int(result.discs[game]))).all()
        assert torch.equal(scores[1:], -scores[:-1])
        ends = {
            child.score(positions[-1].turn)
            for child in map(positions[-1].play, positions[-1].legal_actions())
            if child.is_over()
        }
        assert int(scores[-1]) in ends
    openings = [result.positions[result.games_of == game][0].tolist() for game in range(40)]
    assert openings[::2] == openings[1::2]


def test_neighbouring_seeds_have_openings_of_their_own():
    first, second = (
        play_games("random", "random", 200, Rules(6), seed=seed, device="cpu", keep_positions=True) for seed in (1, 2)
    )
    openings = [{tuple(boards) for boards in match.positions[:200].tolist()} for match in (first, second)]
    assert len(openings[0] & openings[1]) < len(openings[0]) / 4


def test_temperature():
    generator = torch.Generator().manual_seed(1)
    logits = torch.tensor([[1.0, 2.0, 3.0, 9.0]]).repeat(20_000, 1)
    masks = torch.tensor([[True, True, True, False]]).repeat(20_000, 1)
    assert (sample(logits, masks, 0.0, generator) == 2).all()
    counts = torch.bincount(sample(logits, masks, 2.0, generator), minlength=4) / 20_000
    expected = torch.softmax(torch.tensor([0.5, 1.0, 1.5]), 0)
    assert np.allclose(counts[:3], expected, atol=0.02)
    assert counts[3] == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: play_games("random", "random", 3, device="cpu"), "3 games: expected an even number"),
        (lambda: play_games("random", "edax", 2, device="cpu"), "player 'edax': expected a Player or one of"),
        (lambda: PolicyPlayer(corners_first, -1.0), "temperature=-1.0"),
        (lambda: ValuePlayer(disc_difference, float("nan")), "temperature=nan"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ReversiError, match=message):
        call()
