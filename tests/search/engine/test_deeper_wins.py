"""Searching deeper wins, and every published heuristic knows more than chance: what a sign or scale gone wrong would spoil.

Matches of single-threaded agents of fixed depth over fixed openings, each from both sides, come out the same every time.
"""

import pytest

from reversi_env import Rules
from search import evaluators
from search.agents.spec import make_agent
from train.arena.match import play_match


def score(spec, other_spec, name):
    """In the game that the heuristic was written for."""
    rules = Rules(8, evaluators.get_evaluator(name).written_for or "normal")
    return play_match(make_agent(spec), make_agent(other_spec), 40, rules, opening_plies=8, seed=1).score


@pytest.mark.slow
@pytest.mark.parametrize("name", evaluators.formulas())
def test_six_plies_beat_two(name):
    assert score(f"{name}:depth=6,table=4", f"{name}:depth=2,table=4", name) >= 0.75


@pytest.mark.slow
@pytest.mark.parametrize("name", evaluators.published_names())
def test_every_published_heuristic_beats_chance(name):
    assert score(f"{name}:depth=4,table=4", "random:seed=1", name) >= 0.95
