"""Positions to draw: starts, middles and ends of random games on every board, each with the move that led to it."""

from __future__ import annotations

import random

import pytest

from reversi_env import WHITE, Position, Rules

STAGES = {"start": 0, "first": 1, "early": 6, "middle": 11, "late": 27, "end": 100}


def _random_game(size: int, plies: int) -> tuple[Position, int | None]:
    """The position after *plies* random moves, or at the end of the game, and the last move."""
    dice = random.Random(size)
    position, last_move = Position.initial(Rules(size)), None
    while plies and not position.is_over():
        last_move = dice.choice(position.legal_actions())
        position, plies = position.play(last_move), plies - 1
    return position, last_move


@pytest.fixture(
    params=[(size, stage) for size in (4, 6, 8) for stage in STAGES],
    ids=lambda param: f"{param[0]}x{param[0]}-{param[1]}",
)
def game(request: pytest.FixtureRequest) -> tuple[Position, int | None]:
    size, stage = request.param
    return _random_game(size, STAGES[stage])


@pytest.fixture
def position(game: tuple[Position, int | None]) -> Position:
    return game[0]


@pytest.fixture
def last_move(game: tuple[Position, int | None]) -> int | None:
    return game[1]


@pytest.fixture
def before_pass() -> Position:
    """White has no move, black has one."""
    return Position.from_text("XO-- ---- ---- ----", WHITE)
