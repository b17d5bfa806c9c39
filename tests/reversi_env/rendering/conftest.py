"""Positions to render: starts, middles and ends of random games of all sizes, each with its last move."""

import pytest

from reversi_env import WHITE, Position, Rules
from tests.oracles.strategies import random_moves


@pytest.fixture(params=[(size, plies) for size in (4, 6, 8) for plies in (0, 1, 6, 11, 27, 100)], ids=str)
def game(request):
    """A position after that many random moves, or at the end of the game, and the last move."""
    size, plies = request.param
    start = Position.initial(Rules(size))
    moves = random_moves(start, size, plies)
    return start.play_all(moves), start.rules.action_from_name(moves[-1]) if moves else None


@pytest.fixture
def position(game):
    return game[0]


@pytest.fixture
def last_move(game):
    return game[1]


@pytest.fixture
def before_pass():
    """White has no move, black has one."""
    return Position.from_text("XO-- ---- ---- ----", WHITE)
