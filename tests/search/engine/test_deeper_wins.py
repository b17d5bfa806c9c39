"""Searching deeper wins, and every published heuristic knows more than chance: what a sign or scale gone wrong would spoil.

Matches are between single-threaded agents of fixed depth over fixed openings, each from both sides, so that they come out
the same every time.
"""

import pytest

from reversi_env import Rules
from search import evaluators
from search.agents.spec import make_agent
from train.arena.match import play_match

GAMES = 40
PUBLISHED = ("position-stability", "six-factor", "ten-weight", "sixteen-weight", "four-attribute", "cell-utility")


def own_game(name):
    """The game that the heuristic was written for."""
    return Rules(8, evaluators.get_evaluator(name).written_for or "normal")


def match(spec, other_spec, rules):
    return play_match(make_agent(spec), make_agent(other_spec), GAMES, rules, opening_plies=8, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", evaluators.formulas())
def test_six_plies_beat_two(name):
    result = match(f"{name}:depth=6,table=4", f"{name}:depth=2,table=4", own_game(name))
    assert result.score >= 0.75, (result.wins, result.draws, result.losses)


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_heuristic_beats_chance(name):
    result = match(f"{name}:depth=4,table=4", "random:seed=1", own_game(name))
    assert result.score >= 0.95, (result.wins, result.draws, result.losses)


def test_the_published_heuristics_are_all_checked():
    assert set(evaluators.published_names()) == set(PUBLISHED)


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_a_perfect_player_hardly_loses_to_chance(variant):
    """Quick: the solver's sign is right in both games, on the way through agents and matches."""
    result = play_match(make_agent("exact:table=1"), make_agent("random:seed=2"), 30, Rules(6, variant), seed=6)
    assert result.score >= 0.9
    assert result.discs_per_game > 10
