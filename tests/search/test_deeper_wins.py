"""Strength: more depth beats less, and every published heuristic beats chance in the game it was written for."""

import pytest

from reversi_env import Rules
from search import evaluators
from search.agents import make
from train.match import play_match

PUBLISHED = ("position-stability", "six-factor", "ten-weight", "sixteen-weight", "four-attribute", "cell-utility")


def own_game(name):
    return Rules(8, evaluators.get(name).written_for or "normal")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PUBLISHED, "discs", "mobility"])
def test_depth_six_beats_depth_two(name):
    result = play_match(make(f"{name}:depth=6"), make(f"{name}:depth=2"), 100, own_game(name), seed=2)
    assert result.score >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_heuristics_beat_random(name):
    result = play_match(make(f"{name}:depth=6"), make("random:seed=1"), 100, own_game(name), seed=1)
    assert result.score >= 0.95


def test_a_search_beats_greedy():
    """The quick version: thirty games are enough to tell alpha-beta from a one-ply player."""
    assert play_match(make("six-factor:depth=3"), make("greedy"), 30, Rules(6), seed=1).score >= 0.8
